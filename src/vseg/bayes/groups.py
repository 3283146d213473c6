"""posteriors(): the posterior of every participant, with a prior made from the answers of the others.

The prior of a participant is made from the other participants' answers alone, so that no answers count twice. A share
of its variance follows the log-odds of the others' maps, the rest is spatial. The share is sampled for each participant
together with the maps, so it becomes small for a participant who sees the image differently.
"""

import os
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike

from vseg._support.seeds import Seed, check_seed
from vseg.bayes.coarse_grid import choose_layout
from vseg.bayes.lapses import LapseOption, check_lapse_options
from vseg.bayes.posterior import (
    BUDGET,
    DRAWS,
    Posterior,
    as_seed_sequence,
    compare_segments,
    posterior,
    search_segments,
)
from vseg.bayes.priors import WIDE_SCALES, Prior, group, spatial
from vseg.bayes.segment_evidence import SegmentOption, check_segment_counts
from vseg.data.catch_trials import sum_catch_trials
from vseg.data.maps import Maps
from vseg.data.responses import Responses
from vseg.errors import InvalidInput, VsegWarning
from vseg.reconstruction.reconstruct import tally_one_image


def posteriors(
    responses: Responses,
    *,
    segments: SegmentOption,
    segments_by: str = "all",
    prior: Prior | str | ArrayLike = "group",
    lapses: LapseOption = "auto",
    catch: Mapping[str, tuple[int, int]] | None = None,
    draws: int = DRAWS,
    budget: int = BUDGET,
    image: ArrayLike | None = None,
    seed: Seed,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Posterior]:
    """Infer the posterior of every participant, by default with a prior made from the answers of the others.

    Parameters
    ----------
    responses : Responses
        Answers of several participants about one image.
    segments : int, "auto" or list of int
        K; of several numbers one is chosen by the evidence.
    segments_by : "all" or "participant"
        Whether K is chosen once, from all answers together, or for each participant, from their own answers; group
        priors are made with the K of all answers in either case.
    prior : "group", or what `posterior` takes
        With "group", a single participant gets the spatial prior.
    lapses : "auto", None, "estimate", or (γ₀, γ₁)
        As for `posterior`; "auto" estimates the lapses of all if there are catch trials of anyone.
    catch : dict of (right, asked), optional
        Catch trials of each participant, as from `vseg.data.catch_trials.count_catch_trials`.
    draws : int
        Maps to return of each posterior, 8 or more.
    budget : int
        Draws of each chain at most, as for `posterior`.
    image : (H, W) or (H, W, 3) uint8, optional
        The image, for the image prior.
    seed : int, SeedSequence or Generator
        The results depend on it and on the answers alone.
    threads : int, optional
        How many participants are fitted at a time; the results do not depend on it.
    progress : function, optional
        Called with 1 for every participant who is finished.

    Returns
    -------
    dict of Posterior
        By participant, in the order of their names.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(6), segments=2, entropy=0.2, seed=0)
    >>> pairs = vseg.designs.covering(truth.layout, segments=2, seed=1)
    >>> answers = [vseg.simulate(truth, pairs, seed=n, participant=f"P{n}") for n in range(3)]
    >>> results = posteriors(vseg.data.responses.concatenate(answers), segments=2, seed=0)
    >>> [(name, result.prior) for name, result in results.items()]
    [('P0', 'group'), ('P1', 'group'), ('P2', 'group')]
    """
    if not isinstance(responses, Responses):
        raise InvalidInput(f"Expected the Responses of several participants, got {responses!r:.60}.")
    if segments_by not in ("all", "participant"):
        raise InvalidInput(f"K is chosen by 'all' or by 'participant', got {segments_by!r}.")
    has_own_count, has_group_prior = segments_by == "participant", isinstance(prior, str) and prior == "group"
    counts = check_segment_counts(segments, responses.layout)
    names, catch_counts = responses.participants, dict(catch or {})
    pooled = sum_catch_trials(catch_counts, names)
    lapses = check_lapse_options(lapses, pooled)
    seeds = _spawn_seeds(seed, len(names) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)  # one warning for all follows
        if len(counts) > 1 and (has_group_prior or not has_own_count):
            table = compare_segments(responses, segments=counts, lapses=lapses, catch=pooled, seed=seeds[-1])
            common = table.chosen
        else:
            common = counts[0]

        def fit(name: str, own: np.random.SeedSequence) -> Posterior:
            prior_seed, fit_seed = own.spawn(2)
            own_prior = prior
            if has_group_prior:
                own_prior = prior_from_others(
                    responses, name, segments=common, lapses=lapses, catch=catch_counts, seed=prior_seed
                )
            result = posterior(
                responses.select(participant=name), prior=own_prior, lapses=lapses,
                segments=counts if has_own_count and len(counts) > 1 else common,
                catch=catch_counts.get(name), draws=draws, budget=budget, image=image, seed=fit_seed, threads=1,
            )  # fmt: skip
            if progress:
                progress(1)
            return result

        with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
            results = dict(zip(names, pool.map(fit, names, seeds), strict=False))
    warn_about_convergence(results)
    if has_group_prior and len(names) == 1:
        warnings.warn(
            f"{names[0]} is the only participant: nobody else makes a group prior, so the prior is spatial.",
            VsegWarning,
            stacklevel=2,
        )
    return results


def prior_from_others(
    responses: Responses,
    name: str,
    *,
    segments: int,
    lapses: LapseOption = None,
    catch: Mapping[str, tuple[int, int]],
    seed: Seed,
) -> Prior | str:
    """Return a group prior from the answers of all participants but this one; "spatial" if there are no others."""
    others = responses.take(responses.participant != name)
    if not len(others):
        return "spatial"
    tally = tally_one_image(others)
    layout = choose_layout(tally.layout)
    base = spatial(layout, scales=WIDE_SCALES)
    _, _, best = search_segments(
        tally, base, [segments], lapses, sum_catch_trials(catch, others.participants),
        seeds=as_seed_sequence(seed),
    )  # fmt: skip
    return group(layout, Maps(layout, best.probabilities), base=base)


def warn_about_convergence(results: Mapping[str, Posterior]) -> None:
    """Warn once about all participants whose chains do not agree."""
    poor = {name: result for name, result in results.items() if not result.converged}
    if poor:
        name, result = next(iter(poor.items()))
        who = f"{len(poor)} of {len(results)} participants, for example {name}" if len(poor) > 1 else name
        warnings.warn(f"{who}: {result.diagnostics.message}", VsegWarning, stacklevel=3)


def _spawn_seeds(seed: Seed, count: int) -> list[np.random.SeedSequence]:
    first = np.random.default_rng(check_seed(seed)).integers(2**63)
    return np.random.SeedSequence(int(first)).spawn(count)
