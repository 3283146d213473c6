"""posterior(): the front door, from responses to maps with honest intervals."""

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from vseg._support.blas import single_blas_thread
from vseg._support.seeds import Seed, check_seed
from vseg.bayes import lapses as slips, segment_evidence as counting
from vseg.bayes.diagnostics import convergence
from vseg.bayes.evidence import Cell, first_fields, grown, search, spread
from vseg.bayes.hmc import MIN_CHAINS, align_labels, count_chains, sample
from vseg.bayes.model import Answers, answers_of
from vseg.bayes.posterior import Posterior, median_maps
from vseg.bayes.priors import Prior, prior_of
from vseg.data.maps import Maps
from vseg.data.responses import Responses, Tally
from vseg.errors import InvalidInput, VsegWarning
from vseg.reconstruction.reconstruct import about_one_image

DRAWS = 64
MOST_LOCATIONS = 4500  # covariances have the square of it


@single_blas_thread  # draws amplify last digits, which depend on a BLAS's threads
def posterior(
    responses: Responses | Tally,
    *,
    segments: Any,
    prior: Any = "spatial",
    lapses: Any = None,
    catch: tuple[int, int] | None = None,
    draws: int = DRAWS,
    image: Any = None,
    group: Any = None,
    seed: Seed,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Posterior:
    """Maps from same/different answers, all taken as one observer's, with what is not known about them.

    The log-odds of the segments are Gaussian fields over the image; their scale, their smoothness, and if you like the
    number of segments and the share of lapses, are those under which the answers are most probable. Nothing is left to
    set, and no penalty pulls the maps towards uncertainty.

    Parameters
    ----------
    responses : Responses or Tally
        Answers about one image.
    segments : int, "auto" or several
        K, or the numbers among which the evidence chooses ("auto": 2 to 8).
    prior : "spatial", "image", "group", a covariance matrix (n, n), or a Prior
        See `vseg.bayes.priors`. With "image" the result's `spatial` holds the maps without the image.
    lapses : None, "estimate", or (γ₀, γ₁)
        None takes every answer as meant.
    catch : (right, asked), optional
        Catch trials, whose answer is obvious; they help to estimate lapses, so they come with lapses="estimate".
    draws : int
        Maps to draw from the posterior, 8 or more.
    image : (H, W) or (H, W, 3) uint8, for the image prior
    group : Maps or a list of Maps of other people, for the group prior
    seed : int, SeedSequence or Generator
        The result depends on it and on the answers alone, not on the number of threads.
    progress : function, optional
        Called with the number of steps finished: one for each K, and one for the draws. K that are not tried, because
        fewer segments are already too many, count as finished.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(6), segments=2, entropy=0.2, seed=0)
    >>> pairs = vseg.designs.covering(truth.layout, segments=2, seed=1)
    >>> result = posterior(vseg.simulate(truth, pairs, blocks=3, seed=2), segments=2, seed=3)
    >>> result.draws.shape, bool(result.entropy_interval[0] < result.entropy < result.entropy_interval[1])
    ((64, 36, 2), True)
    """
    began = time.perf_counter()
    tally = about_one_image(responses)
    _check(tally, draws)
    slips.check(lapses, catch)
    counts = counting.counts_of(segments, tally.layout)
    known = prior_of(prior, tally.layout, image, group)
    workers, chance = _workers(threads), _sequence(seed)
    spatial = None
    if known.name == "image":
        plain: dict[str, Any] = {"segments": segments, "lapses": lapses, "catch": catch, "draws": draws}
        spatial = posterior(tally, **plain, seed=seed, threads=threads)
    found: dict[int, tuple[Answers, list[Cell]]] = {}
    for count, seeds in zip(counts, chance.spawn(len(counts)), strict=True):
        found[count] = fitted(tally, known, count, lapses, catch, seeds, workers)
        if progress:
            progress(1)
        if counting.enough([cells[0] for _, cells in found.values()]):
            if progress and len(found) < len(counts):
                progress(len(counts) - len(found))
            break
    table = (
        counting.SegmentsTable(tuple(cells[0] for _, cells in found.values())) if len(counts) > 1 else None
    )
    answers, cells = found[counts[0] if table is None else table.chosen]
    result = replace(
        drawn(tally, answers, cells, known, draws, chance.spawn(1)[0], workers),
        table=table,
        spatial=spatial,
        seconds=time.perf_counter() - began,
        seed=int(seed) if isinstance(seed, (int, np.integer)) else None,
    )
    if progress:
        progress(1)
    if not result.diagnostics.good:
        warnings.warn(result.diagnostics.message, VsegWarning, stacklevel=3)
    return result


def fitted(
    tally: Tally,
    prior: Prior,
    segments: int,
    lapses: Any,
    catch: tuple[int, int] | None,
    chance: np.random.SeedSequence,
    threads: int,
) -> tuple[Answers, list[Cell]]:
    """The answers with their lapses, and the scales and lengths looked at for K segments, the best first."""
    first = first_fields(tally, segments, np.random.default_rng(chance))
    if isinstance(lapses, str) and lapses == "estimate":
        return slips.estimate(answers_of(tally), prior, first, catch=slips.catch_of(catch), threads=threads)
    answers = answers_of(tally, *slips.given(lapses))
    return answers, grown(answers, prior, search(answers, prior, first, threads=threads), threads=threads)


def drawn(
    tally: Tally,
    answers: Answers,
    cells: list[Cell],
    prior: Prior,
    draws: int,
    chance: np.random.SeedSequence,
    threads: int,
) -> Posterior:
    """The posterior over these cells, the best first."""
    best, visited = cells[0], spread(cells, count_chains(draws))
    chains = sample(answers, visited, draws=draws, seeds=chance, threads=threads)
    mode = best.probabilities
    found = align_labels(chains.maps.swapaxes(0, 1).reshape(-1, *mode.shape)[:draws], mode)
    places = [cells.index(each) for each in visited]
    return Posterior(
        maps=Maps(tally.layout, median_maps(found)),
        mode=Maps(tally.layout, mode),
        draws=found,
        evidence=best.evidence,
        objective=best.mode.value,
        penalty=0.5 * float(np.sum(best.mode.u**2)),
        prior=prior.name,
        kernel=best.kind,
        scale=best.scale,
        length=best.length,
        lapses=(answers.gamma0, answers.gamma1),
        diagnostics=convergence(chains.maps, chains.costs, chains.accepted, places),
        pairs=len(tally),
        trials=tally.trials,
        locations_tested=int(np.sum(tally.pairs.partners > 0)),
    )


def _check(tally: Tally, draws: int) -> None:
    if not len(tally):
        raise InvalidInput("There are no responses to fit; expected at least one tested pair.")
    if len(tally.layout) > MOST_LOCATIONS:
        raise InvalidInput(
            f"The posterior takes up to {MOST_LOCATIONS} locations, got {len(tally.layout)}; take the answers to a "
            "coarser layout with Responses.on, or use vseg.reconstruct."
        )
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 2 * MIN_CHAINS:
        raise InvalidInput(f"The number of draws is a whole number from {2 * MIN_CHAINS} up, got {draws!r}.")


def _workers(threads: int | None) -> int:
    if threads is None:
        return os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InvalidInput(f"The number of threads is a whole number from 1 up, got {threads!r}.")
    return threads


def _sequence(seed: Seed) -> np.random.SeedSequence:
    known = check_seed(seed)
    if isinstance(known, np.random.SeedSequence):
        # A sequence counts its children.
        return np.random.SeedSequence(known.entropy, spawn_key=known.spawn_key)
    return np.random.SeedSequence(
        int(known.integers(2**63)) if isinstance(known, np.random.Generator) else known
    )
