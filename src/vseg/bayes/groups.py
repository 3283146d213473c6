"""Several people about one image: everyone's posterior in the light of what the others see, and groups compared.

The prior of a person is made from the other people's answers alone, so that nobody's answers count twice. Beside the
spatial covariances it has one more: 0.6 of it follows the log-odds of the others' maps, 0.4 is spatial. The evidence
chooses; someone who sees the image differently is left to the spatial ones.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from vseg._support.seeds import Seed, check_seed
from vseg.bayes.hmc import MIN_CHAINS
from vseg.bayes.inference import DRAWS, posterior
from vseg.bayes.posterior import Posterior
from vseg.bayes.priors import Prior, group
from vseg.data.responses import Responses
from vseg.errors import InvalidInput, VsegWarning


def posteriors(
    responses: Responses,
    *,
    segments: Any,
    prior: Any = "group",
    lapses: Any = None,
    catch: Mapping[str, tuple[int, int]] | None = None,
    draws: int = DRAWS,
    image: Any = None,
    seed: Seed,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Posterior]:
    """The posterior of every participant, by default with a prior made from what the others answered.

    Parameters
    ----------
    responses : Responses
        Answers of several people about one image.
    segments : int, "auto" or several
        K; of several it is chosen once, by the evidence of all answers together.
    prior : "group", or what `posterior` takes
        With "group", one participant alone has the spatial prior.
    lapses, draws, image
        As of `posterior`; the image is for the image prior.
    catch : dict of (right, asked), optional
        Catch trials of each participant, as from `vseg.data.dataset.catch_trials`.
    seed : int, SeedSequence or Generator
    threads : int, optional
        How many people are fitted at a time; the results do not depend on it.
    progress : function, optional
        Called with 1 for everyone who is finished.

    Returns
    -------
    dict of Posterior, in the order of the participants' names

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(6), segments=2, entropy=0.2, seed=0)
    >>> pairs = vseg.designs.covering(truth.layout, segments=2, seed=1)
    >>> each = [vseg.simulate(truth, pairs, seed=n, participant=f"P{n}") for n in range(3)]
    >>> people = posteriors(vseg.data.responses.concatenated(each), segments=2, seed=0)
    >>> [(name, one.prior) for name, one in people.items()]
    [('P0', 'group'), ('P1', 'group'), ('P2', 'group')]
    """
    if not isinstance(responses, Responses):
        raise InvalidInput(f"Expected the Responses of several people, got {responses!r:.60}.")
    names, caught = responses.participants, dict(catch or {})
    chance = _spawned(seed, len(names) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)  # said once, for all
        K = _one_count(responses, segments, lapses=lapses, catch=_summed(caught, names), seed=chance[-1])

        settings: dict[str, Any] = {"segments": K, "lapses": lapses, "threads": 1}

        def fit(name: str, own: np.random.SeedSequence) -> Posterior:
            before, after = own.spawn(2)
            known = prior
            if isinstance(prior, str) and prior == "group":
                known = prior_of_others(responses, name, catch=caught, seed=before, **settings)
            found = posterior(
                responses.of(participant=name), prior=known, image=image, catch=caught.get(name), draws=draws,
                seed=after, **settings,
            )  # fmt: skip
            if progress:
                progress(1)
            return found

        with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
            people = dict(zip(names, pool.map(fit, names, chance), strict=False))
    warn_of_poor(people)
    if isinstance(prior, str) and prior == "group" and len(names) == 1:
        warnings.warn(
            f"{names[0]} is the only participant: nobody else makes a group prior, so the prior is spatial.",
            VsegWarning,
            stacklevel=2,
        )
    return people


def prior_of_others(
    responses: Responses, name: str, *, catch: Mapping[str, tuple[int, int]], **settings: Any
) -> Prior | str:
    """What all but this participant see, from their answers alone; "spatial" where there is nobody else."""
    others = responses.where(responses.participant != name)
    if not len(others):
        return "spatial"
    caught = _summed(catch, others.participants)
    return group(others.layout, posterior(others, catch=caught, draws=2 * MIN_CHAINS, **settings).mode)


def warn_of_poor(people: Mapping[str, Posterior]) -> None:
    """One line for all whose chains do not agree."""
    poor = {name: one for name, one in people.items() if not one.converged}
    if poor:
        name, one = next(iter(poor.items()))
        many = f"{len(poor)} of {len(people)} participants, for example {name}" if len(poor) > 1 else name
        warnings.warn(f"{many}: {one.diagnostics.message}", VsegWarning, stacklevel=3)


def _one_count(responses: Responses, segments: Any, **settings: Any) -> int:
    """K, by the evidence of all answers where it is to be chosen."""
    if isinstance(segments, (int, np.integer)) and not isinstance(segments, bool):
        return int(segments)
    return posterior(responses, segments=segments, draws=2 * MIN_CHAINS, **settings).segments


def _summed(catch: Mapping[str, tuple[int, int]], names: Iterable[str]) -> tuple[int, int] | None:
    """The catch trials of several people together."""
    found = [catch[name] for name in names if name in catch]
    return (sum(right for right, _ in found), sum(asked for _, asked in found)) if found else None


def _spawned(seed: Seed, count: int) -> list[np.random.SeedSequence]:
    first = np.random.default_rng(check_seed(seed)).integers(2**63)
    return np.random.SeedSequence(int(first)).spawn(count)
