"""Two-stage designs: pairs that follow, by Proposition 1 of the paper, from a coarse map of the first answers."""

from vseg._support.seeds import Seed
from vseg.data.pairs import Pairs
from vseg.data.responses import Responses, Tally
from vseg.designs import oracle
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.reconstruct import tally_one_image
from vseg.reconstruction.smoothness_selection import cross_validate
from vseg.reconstruction.solvers import coordinate_descent


def two_stage_pairs(
    responses: Responses | Tally, *, segments: int, trials: int | None = None, seed: Seed
) -> Pairs:
    """Draw the pairs of the second stage from the answers of the first.

    The penalised estimator, with λ by cross-validation, gives a coarse map of the first answers. Each location is then
    paired with locations in its own and in every other segment of that map, as `vseg.designs.oracle` does with true
    labels. Pairs that were asked before are not repeated while there are enough others. The answers of both stages
    together give the final maps.

    Parameters
    ----------
    responses : Responses or Tally
        The answers of the first stage about one image: of one participant, or of all who will answer the second stage.
    segments : int
        The number of segments K.
    trials : int, optional
        The number of pairs to draw; by default as many as the first stage tested.
    seed : int, SeedSequence or Generator
        Seed of the pairs; the coarse map does not depend on it.

    Returns
    -------
    Pairs
        The pairs of the second stage, in random order.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(8), segments=3, entropy=0.1, seed=0)
    >>> first = vseg.simulate(truth, vseg.designs.scattered(truth.layout, trials=96, seed=1), blocks=2, seed=2)
    >>> pairs = two_stage_pairs(first, segments=3, seed=3)
    >>> second = vseg.simulate(truth, pairs, blocks=2, seed=4)
    >>> maps = vseg.reconstruct(vseg.data.responses.concatenate([first, second]), segments=3, seed=5).maps
    >>> len(pairs), set(pairs) & set(first.tally().pairs)
    (96, set())
    """
    tally = tally_one_image(responses)
    strength = cross_validate(tally, segments, seed=0, threads=1).chosen
    coarse = coordinate_descent(build_objective(tally, segments, strength=strength), seed=0)
    return oracle(
        tally.layout,
        labels=coarse.probabilities.argmax(axis=1),
        segments=segments,
        trials=len(tally) if trials is None else trials,
        avoid=[tally.pairs],
        seed=seed,
    )
