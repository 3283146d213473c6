"""posterior(): maps with intervals, entropy and evidence from same/different answers; and its result, Posterior."""

import json
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg import __version__
from vseg._support.blas import single_blas_thread
from vseg._support.seeds import Seed, check_seed
from vseg.bayes.coarse_grid import coarsen
from vseg.bayes.diagnostics import Convergence
from vseg.bayes.draw_summaries import (
    CONFIDENCE,
    equal_tailed,
    expected_error,
    interval,
    median_maps,
)
from vseg.bayes.entropy_prior import draw_prior_entropies, flatten_prior
from vseg.bayes.evidence import LaplaceFit, initial_fields, search
from vseg.bayes.hmc import align_draws
from vseg.bayes.joint_model import JointModel
from vseg.bayes.joint_sampling import CHAINS, JointDraws, draw_maps, prepare_starts, sample_joint
from vseg.bayes.lapses import (
    CatchOption,
    LapseOption,
    check_catch_counts,
    check_lapse_options,
    check_lapses,
    estimate_lapses,
)
from vseg.bayes.model import AnswerCounts, count_answers
from vseg.bayes.priors import WIDE_SCALES, Prior, make_prior
from vseg.bayes.segment_evidence import SegmentOption, SegmentsTable, check_segment_counts, is_past_peak
from vseg.data.layout import Grid
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.data.responses import Responses, Tally
from vseg.errors import InvalidInput, VsegWarning
from vseg.reconstruction.reconstruct import tally_one_image

DRAWS = 200
MIN_DRAWS = 8
BUDGET = 2000  # draws of each chain at most
SHORT_BUDGET = 50  # enough for medians, where many fits are needed and no intervals
MAX_LOCATIONS = 10_000  # 200 draws of eight maps take 128 MB
MAX_COVARIANCE = 4500  # with an image prior or a matrix, which has the square of this many entries


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Maps with their uncertainty, as `posterior` returns them.

    Attributes
    ----------
    maps : Maps
        The posterior median of every probability, renormalised: the estimate to report.
    mode : Maps
        The most probable maps.
    draws : (S, n, K)
        Maps drawn from the posterior, under the labels of the mode: some of all draws, evenly spaced.
    chains : JointDraws
        All draws of the mean entropy, the hyper-parameters and the cost, chain by chain.
    model : JointModel
        The model the chains sample from.
    evidence : float
        Log probability of the answers under the model, in nats; comparable between priors and K.
    objective, penalty : float
        The cost of the mode, and the part of it that comes from the prior.
    prior : str
        The name of the prior.
    kernel : str
        The kind of covariance of highest evidence, around which chains start: for a group prior "group", or one of the
        spatial ones.
    scale, length : float
        s, the standard deviation of the log-odds, and ξ in cells (NaN where the prior has none): posterior medians.
    lapses : (γ₀, γ₁)
        P('same') where all is different, P('different') where all is the same: posterior medians.
    diagnostics : Convergence
        R-hat and effective sample size of quantities that do not depend on labels.
    pairs, trials, locations_tested : int
        How many different pairs, how many trials, and how many locations the answers are about.
    table : SegmentsTable or None
        The evidence of each K, if several were tried.
    seconds : float
        How long it took.
    seed : int or None
        The seed, if it was a number.
    spatial : Posterior or None
        With an image prior: the posterior of the same answers without the image, to be reported beside it.
    """

    maps: Maps
    mode: Maps
    draws: NDArray[np.float64]
    chains: JointDraws
    model: JointModel
    evidence: float
    objective: float
    penalty: float
    prior: str
    kernel: str
    scale: float
    length: float
    lapses: tuple[float, float]
    diagnostics: Convergence
    pairs: int
    trials: int
    locations_tested: int
    table: SegmentsTable | None = None
    seconds: float = 0.0
    seed: int | None = None
    spatial: "Posterior | None" = None

    @property
    def segments(self) -> int:
        """K."""
        return self.maps.segments

    @cached_property
    def _bounds(self) -> NDArray[np.float64]:
        return interval(self.draws)

    @property
    def lower(self) -> NDArray[np.float64]:
        """(n, K) lower ends of the 90 % intervals; 0 where that makes the interval shorter, see `interval`."""
        return self._bounds[0]

    @property
    def upper(self) -> NDArray[np.float64]:
        """(n, K) upper ends of the 90 % intervals; 1 where that makes the interval shorter, see `interval`."""
        return self._bounds[1]

    @property
    def entropies(self) -> NDArray[np.float64]:
        """The mean entropy of every draw of all chains, in nats; these are more than the maps in `draws`."""
        return self.chains.entropies.ravel()

    @property
    def entropy(self) -> float:
        """The mean entropy over locations, in nats: the posterior median."""
        return float(np.median(self.entropies))

    @property
    def entropy_interval(self) -> tuple[float, float]:
        """The 90 % interval of the mean entropy, with 5 % on either side."""
        low, high = equal_tailed(self.entropies)
        return float(low), float(high)

    @cached_property
    def flat_entropy(self) -> tuple[float, float]:
        """The mean entropy and its standard deviation under a flat prior: for averages over participants.

        The prior pulls the estimates of participants with few answers, which averaging does not undo.
        """
        return flatten_prior(self.entropies, draw_prior_entropies(self.model), self.segments)

    @property
    def argmax_probability(self) -> NDArray[np.float64]:
        """(n, K) the probability that segment k wins location i."""
        return np.eye(self.segments)[self.draws.argmax(axis=2)].mean(axis=0)

    @property
    def group_share(self) -> float | None:
        """The share of the other participants' maps in the prior's variance, posterior median; None without a group."""
        return float(np.median(self.chains.share)) if self.prior == "group" else None

    @property
    def expected_error(self) -> float:
        """The expected error of one probability, mean |p - median|: what a stopping rule compares with its target."""
        return expected_error(self.draws, self.maps.probabilities)

    def same_probability(self, pairs: Pairs) -> NDArray[np.float64]:
        """Return P(same) of each pair by the maps (Eq. 2), averaged over the draws, without lapses."""
        if pairs.layout != self.maps.layout:
            raise InvalidInput(
                f"Expected pairs on {self.maps.layout}, as the maps, got pairs on {pairs.layout}."
            )
        q = np.einsum("smk,smk->m", self.draws[:, pairs.i], self.draws[:, pairs.j], optimize=True)
        return np.clip(q / len(self.draws), 0, 1)

    def align_to(self, maps: Maps) -> "Posterior":
        """Return the posterior with its segments in the order of other maps, since labels are arbitrary."""
        if maps.segments != self.segments:
            raise InvalidInput(
                f"The posterior has {self.segments} segments, the maps {maps.segments}; expected as many."
            )
        order = self.maps.matching_order(maps)
        return replace(
            self,
            maps=self.maps.permute(order),
            mode=self.mode.permute(order),
            draws=self.draws[:, :, order],
            spatial=self.spatial and self.spatial._align_if_possible(maps),
        )

    def _align_if_possible(self, maps: Maps) -> "Posterior":
        """Return the aligned posterior; unchanged if, without the image, the evidence chose another K."""
        return self.align_to(maps) if self.segments == maps.segments else self

    @property
    def converged(self) -> bool:
        """Whether the chains agree."""
        return self.diagnostics.is_good

    @property
    def message(self) -> str:
        """One or two sentences on the result."""
        low, high = self.entropy_interval
        lapses = f", lapses {sum(self.lapses):.1%}" if sum(self.lapses) else ""
        plausible = ""
        if self.table is not None and len(self.table.fits) > 1:
            plausible = f" (plausible: {self.table.plausible_text})"
        return (
            f"{self.segments} segments{plausible} from {self.trials} {'trial' if self.trials == 1 else 'trials'} on "
            f"{self.pairs} {'pair' if self.pairs == 1 else 'pairs'}, {self.prior} prior{lapses}, mean entropy "
            f"{self.entropy:.3f} nats, 90 % interval {low:.3f} to {high:.3f}. {self.diagnostics.message}"
        )

    def __repr__(self) -> str:
        return f"<Posterior: {self.message}>"

    def summary(self) -> dict[str, Any]:
        """Return the numbers for summary.json, under the same names as `Reconstruction.summary`."""
        return {
            "method": "posterior",
            "objective": self.objective,
            "data_term": self.objective - self.penalty,
            "penalty": self.penalty,
            "smoothness": None,
            "loss": "cross_entropy",
            "segments": self.segments,
            "segments_won": self.maps.segments_won,
            "iterations": None,
            "draws": len(self.draws),
            "converged": self.converged,
            "message": self.message,
            "mean_entropy": self.entropy,
            "entropy_low": self.entropy_interval[0],
            "entropy_high": self.entropy_interval[1],
            "confidence": CONFIDENCE,
            "expected_error": self.expected_error,
            "evidence": self.evidence,
            "segments_table": None if self.table is None else self.table.rows(),
            "segments_plausible": None if self.table is None else self.table.plausible,
            "prior": self.prior,
            "scale": self.scale,
            "length": None if np.isnan(self.length) else self.length,
            "lapses": list(self.lapses),
            "floor": float(np.median(self.chains.floor)),
            "group_share": self.group_share,
            "rhat": _finite(self.diagnostics.rhat),
            "effective_draws": self.diagnostics.ess,
            "effective_draws_in_tails": self.diagnostics.tail_ess,
            "accepted": self.diagnostics.accepted,
            "seconds": self.seconds,
            "seed": self.seed,
            "version": __version__,
            "solver": "hmc",
            "kernel": self.kernel,
            "kernels_table": None,
            "weights": "trials",
            "pairs": self.pairs,
            "trials": self.trials,
            "locations": len(self.maps.layout),
            "locations_tested": self.locations_tested,
            "held_out": None,
        }

    def save(self, folder: str | Path, about: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Write maps.npz, with `lower`, `upper` and `draws`, and summary.json into a folder.

        With an image prior, the maps without the image are written to maps-spatial.npz.

        Parameters
        ----------
        folder : str or Path
            An existing folder.
        about : dict, optional
            What else summary.json is to contain.
        """
        self._write(Path(folder) / "maps.npz")
        if self.spatial is not None:
            self.spatial._write(Path(folder) / "maps-spatial.npz")
        text = json.dumps({**about, **self.summary()}, indent=2, ensure_ascii=False)
        (Path(folder) / "summary.json").write_text(text + "\n", encoding="utf-8")

    def _write(self, path: Path) -> None:
        layout = self.maps.layout
        rows = (layout.size, layout.size) if isinstance(layout, Grid) else (len(layout),)
        arrays: dict[str, Any] = {
            "probabilities": self.maps.probabilities.reshape(*rows, -1),
            "lower": self.lower.reshape(*rows, -1),
            "upper": self.upper.reshape(*rows, -1),
            "draws": self.draws.astype(np.float32).reshape(len(self.draws), *rows, -1),
        }
        if not isinstance(layout, Grid):
            arrays["positions"] = layout.positions
        with open(path, "wb") as file:
            np.savez_compressed(file, **arrays)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


@single_blas_thread  # draws amplify rounding errors, which depend on the number of BLAS threads
def posterior(
    responses: Responses | Tally,
    *,
    segments: SegmentOption,
    prior: Prior | str | ArrayLike = "spatial",
    lapses: LapseOption = "auto",
    catch: CatchOption = None,
    draws: int = DRAWS,
    budget: int = BUDGET,
    image: ArrayLike | None = None,
    group: Maps | Sequence[Maps] | None = None,
    seed: Seed,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
    warn: bool = True,
) -> Posterior:
    """Infer maps and their uncertainty from same/different answers, all taken as one observer's.

    The log-odds of the segments are Gaussian fields over the image. Their scale and smoothness, and the share of lapses
    if you like, are sampled together with the maps, so that the intervals include what is not known about them. There
    is no smoothness to choose, and no penalty pulls the maps towards uncertainty.

    Parameters
    ----------
    responses : Responses or Tally
        Answers about one image.
    segments : int, "auto" or list of int
        K, or the numbers among which the evidence chooses ("auto": 2 to 8).
    prior : "spatial", "image", "group", a covariance matrix (n, n), or a Prior
        See `vseg.bayes.priors`. With "image" the result's `spatial` holds the maps without the image.
    lapses : "auto", None, "estimate", or (γ₀, γ₁)
        P('same') where all is different and P('different') where all is the same; None means no lapses. "auto"
        estimates them if there are catch trials.
    catch : (right, asked), optional
        Catch trials, whose answer is obvious; they help to estimate lapses.
    draws : int
        Maps to return, 8 or more, evenly spaced over all draws.
    budget : int
        Draws of each of the four chains at most. Chains go on, 100 draws at a time, until R-hat is at most 1.05 and the
        effective sample size at least 100.
    image : (H, W) or (H, W, 3) uint8, optional
        The image, for the image prior.
    group : Maps or list of Maps, optional
        Maps of other participants, for the group prior.
    seed : int, SeedSequence or Generator
        The result depends on it and on the answers alone, not on the number of threads.
    threads : int, optional
        Fits and chains at a time; as many as there are cores by default.
    progress : function, optional
        Called with the number of steps finished: one for each K, and one for the draws. K that are not tried, because
        fewer segments are already too many, count as finished.
    warn : bool
        Whether to warn if the chains do not agree; `diagnostics` and `message` of the result say so in any case.

    Returns
    -------
    Posterior
        The maps, draws from the posterior, and intervals.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(6), segments=2, entropy=0.2, seed=0)
    >>> pairs = vseg.designs.covering(truth.layout, segments=2, seed=1)
    >>> result = posterior(vseg.simulate(truth, pairs, blocks=3, seed=2), segments=2, seed=3)
    >>> result.draws.shape, bool(result.entropy_interval[0] < result.entropy < result.entropy_interval[1])
    ((200, 36, 2), True)
    """
    started = time.perf_counter()
    tally = tally_one_image(responses)
    has_matrix = prior == "image" if isinstance(prior, str) else not isinstance(prior, Prior)
    _check_tally(tally, MAX_COVARIANCE if has_matrix else MAX_LOCATIONS)
    _check_count(draws, "number of draws")
    _check_count(budget, "budget of draws of each chain")
    lapses = check_lapse_options(lapses, catch)
    counts = check_segment_counts(segments, tally.layout)
    chosen_prior = make_prior(prior, tally.layout, image, group, scales=WIDE_SCALES, coarse=True)
    workers, seeds = _check_threads(threads), as_seed_sequence(seed)
    spatial = None
    if chosen_prior.name == "image":
        spatial = posterior(
            tally, segments=counts, lapses=lapses, catch=catch, draws=draws, budget=budget, seed=seed,
            threads=threads,
        )  # fmt: skip
    table, answers, best = search_segments(
        tally, chosen_prior, counts, lapses, catch, seeds=seeds, threads=workers, progress=progress
    )
    result = replace(
        draw_posterior(
            tally,
            answers,
            best,
            chosen_prior,
            draws=draws,
            budget=budget,
            lapses=lapses,
            catch=catch,
            seeds=_derive_seed(seeds, 0),
            threads=workers,
        ),
        table=table if len(counts) > 1 else None,
        spatial=spatial,
        seconds=time.perf_counter() - started,
        seed=int(seed) if isinstance(seed, (int, np.integer)) else None,
    )
    if progress:
        progress(1)
    if warn and not result.diagnostics.is_good:
        warnings.warn(result.diagnostics.message, VsegWarning, stacklevel=3)
    return result


def search_segments(
    tally: Tally,
    prior: Prior,
    counts: Sequence[int],
    lapses: LapseOption = None,
    catch: CatchOption = None,
    *,
    seeds: np.random.SeedSequence,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> tuple[SegmentsTable, AnswerCounts, LaplaceFit]:
    """Find the scale, length and lapses of highest evidence for each K, without drawing from the posterior.

    Parameters
    ----------
    tally : Tally
    prior : Prior
        If it is on a coarse grid, the answers are moved to its cells.
    counts : list of int
        The K to try, in increasing order. Larger ones are not tried where two in a row are implausible.
    lapses, catch
        As for `posterior`.
    seeds : SeedSequence
    threads : int
        Fits at a time.
    progress : function, optional
        Called with the number of K finished.

    Returns
    -------
    (SegmentsTable, AnswerCounts, LaplaceFit)
        The evidence of each K, and for the chosen K the answers with their lapses and the best fit.
    """
    counted = count_answers(tally)
    if prior.layout != tally.layout:
        tally, counted = coarsen(tally)
    results: dict[int, tuple[AnswerCounts, LaplaceFit]] = {}
    for count in counts:
        first = initial_fields(tally, count, np.random.default_rng(_derive_seed(seeds, count)))
        if isinstance(lapses, str) and lapses == "estimate":
            answers, fits = estimate_lapses(
                counted, prior, first, catch=check_catch_counts(catch), threads=threads
            )
        else:
            gamma0, gamma1 = check_lapses(lapses)
            answers = counted._replace(gamma0=gamma0, gamma1=gamma1)
            fits = search(answers, prior, first, threads=threads)
        results[count] = answers, fits[0]
        if progress:
            progress(1)
        if is_past_peak([fit for _, fit in results.values()]):
            if progress and len(results) < len(counts):
                progress(len(counts) - len(results))
            break
    table = SegmentsTable(tuple(fit for _, fit in results.values()))
    return table, *results[table.chosen]


def compare_segments(
    responses: Responses | Tally,
    *,
    segments: SegmentOption = "auto",
    lapses: LapseOption = "auto",
    catch: CatchOption = None,
    seed: Seed,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> SegmentsTable:
    """Return how probable the answers are under each number of segments, with the spatial prior.

    Parameters
    ----------
    responses : Responses or Tally
        Answers about one image.
    segments : "auto" or list of int
        The K to compare ("auto": 2 to 8).
    lapses, catch
        As for `posterior`.
    seed : int, SeedSequence or Generator
    threads : int, optional
        Fits at a time.
    progress : function, optional
        Called with the number of K finished.

    Returns
    -------
    SegmentsTable
    """
    tally = tally_one_image(responses)
    _check_tally(tally, MAX_LOCATIONS)
    lapses = check_lapse_options(lapses, catch)
    return search_segments(
        tally, make_prior("spatial", tally.layout, scales=WIDE_SCALES, coarse=True),
        check_segment_counts(segments, tally.layout), lapses, catch, seeds=as_seed_sequence(seed),
        threads=_check_threads(threads), progress=progress,
    )[0]  # fmt: skip


def draw_posterior(
    tally: Tally,
    answers: AnswerCounts,
    best: LaplaceFit,
    prior: Prior,
    *,
    draws: int = DRAWS,
    budget: int = BUDGET,
    lapses: LapseOption = None,
    catch: CatchOption = None,
    seeds: np.random.SeedSequence,
    threads: int = 1,
) -> Posterior:
    """Return the posterior by sampling maps and hyper-parameters together, starting from a Laplace fit."""
    start_seeds, chain_seeds = seeds.spawn(2)
    is_coarse = prior.layout != tally.layout
    if is_coarse:
        answers = count_answers(tally, answers.gamma0, answers.gamma1)
    starts = prepare_starts(
        answers, best, prior, estimate_lapses=lapses == "estimate", catch=check_catch_counts(catch),
        rng=np.random.default_rng(start_seeds), layout=tally.layout if is_coarse else None,
    )  # fmt: skip
    chains = sample_joint(
        [starts[chain % len(starts)] for chain in range(CHAINS)], draws=draws, seeds=chain_seeds, threads=threads,
        budget=budget,
    )  # fmt: skip
    mode = draw_maps(starts[0].centre[None], starts[0].shown)[0] if is_coarse else best.probabilities
    aligned = align_draws(chains.maps, mode)
    lapse, bias = float(np.median(chains.lapses)), float(np.median(chains.bias))
    side = np.sqrt(len(tally.layout))
    return Posterior(
        maps=Maps(tally.layout, median_maps(aligned)),
        mode=Maps(tally.layout, mode),
        draws=aligned,
        chains=chains,
        model=starts[0].shown,
        evidence=best.evidence,
        objective=best.mode.cost,
        penalty=0.5 * float(np.sum(best.mode.weights**2)),
        prior=prior.name,
        kernel=best.kind,
        scale=float(np.median(chains.scale)),
        length=float(np.median(chains.length)) * side if prior.has_length else float("nan"),
        lapses=(lapse * bias, lapse * (1 - bias)),
        diagnostics=chains.convergence,
        pairs=len(tally),
        trials=tally.trials,
        locations_tested=int(np.sum(tally.pairs.partners > 0)),
    )


def _check_tally(tally: Tally, most: int) -> None:
    if not len(tally):
        raise InvalidInput("There are no responses to fit; expected at least one tested pair.")
    if len(tally.layout) > most:
        raise InvalidInput(
            f"The posterior takes up to {most} locations, got {len(tally.layout)}; "
            "take the answers to fewer with responses.coarsen(vseg.Grid(32)), or use vseg.reconstruct."
        )


def _check_count(count: int, what: str) -> None:
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < MIN_DRAWS:
        raise InvalidInput(f"The {what} is a whole number from {MIN_DRAWS} up, got {count!r}.")


def _check_threads(threads: int | None) -> int:
    if threads is None:
        return os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InvalidInput(f"The number of threads is a whole number from 1 up, got {threads!r}.")
    return threads


def _derive_seed(seeds: np.random.SeedSequence, purpose: int) -> np.random.SeedSequence:
    """Return the seed of the fit of K = `purpose` segments, or of the draws (0), whatever other K are tried."""
    return np.random.SeedSequence(seeds.entropy, spawn_key=(*seeds.spawn_key, purpose))


def as_seed_sequence(seed: Seed) -> np.random.SeedSequence:
    """Return a seed as a sequence of its own, which may spawn without changing the seed."""
    checked = check_seed(seed)
    if isinstance(checked, np.random.SeedSequence):
        # A copy: a sequence counts the children it has spawned.
        return np.random.SeedSequence(checked.entropy, spawn_key=checked.spawn_key)
    return np.random.SeedSequence(
        int(checked.integers(2**63)) if isinstance(checked, np.random.Generator) else checked
    )
