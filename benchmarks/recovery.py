"""Model recovery: people simulated from each of five families; how often does the right one predict them best?

Every simulated person sees one photograph and answers five blocks; the five families are compared on pairs held out.
`python benchmarks/recovery.py [--quick]` runs it by itself.
"""

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np

from tables import table
from vseg import Grid, Maps, Responses, designs, features, stimuli
from vseg.data.pairs import Pairs
from vseg.evaluation.model_comparison import compare
from vseg.models import Task, discrimination, distance_only, free_maps, logistic
from vseg.stimuli.random_maps import softmax

GRID, SEGMENTS, BLOCKS = Grid(11), 3, 5
PICTURES = ("astronaut", "chelsea", "coffee", "rocket", "immunohistochemistry")
FAMILIES = {
    "colour": logistic("lab", starts=3),
    "texture": logistic("gabor", starts=3),
    "colour difference": discrimination("lab", starts=2),
    "distance": distance_only(starts=2),
    "free maps": free_maps(),
}
Judge = Callable[[Pairs], np.ndarray]


def main(quick: bool = False) -> str:
    runs = 2 if quick else 10
    won: dict[str, Counter[str]] = {}
    for number, family in enumerate(FAMILIES):
        won[family] = Counter(winner(family, 100 * number + run) for run in range(runs))
        print(f"{family}: {dict(won[family])}", flush=True)
    right = sum(won[family][family] for family in FAMILIES) / (runs * len(FAMILIES))
    rows = [[f"**{family}**", *(str(won[family][other]) for other in FAMILIES)] for family in FAMILIES]
    note = (
        f"Rows: the family that answered; columns: the family that predicted best, of {runs} participants each "
        f"({BLOCKS} blocks of {SEGMENTS * len(GRID)} pairs, N = {GRID.size}). The right family won in "
        f"**{100 * right:.0f} %** (target: 90 %)."
    )
    return table("Model recovery", ["answers by", *FAMILIES], rows, note)


def winner(family: str, seed: int) -> str:
    """Return the family that best predicts the answers of a participant of this family."""
    picture = stimuli.load_sample(PICTURES[seed % len(PICTURES)], 256)
    rng = np.random.default_rng(seed)
    judge = person(family, picture, rng)
    pairs = designs.scattered(GRID, segments=SEGMENTS, seed=seed)
    q = np.tile(judge(pairs), BLOCKS)
    answers = Responses(
        GRID,
        np.tile(pairs.i, BLOCKS),
        np.tile(pairs.j, BLOCKS),
        rng.random(len(q)) < q,
        block=np.repeat(np.arange(BLOCKS), len(pairs)),
    )
    task = Task(answers, {"image": picture}, SEGMENTS)
    found = compare(task, FAMILIES, by="pairs", folds=3, seed=seed, resamples=10)
    assert not found.failures, found.failures
    return str(found.table()[0]["model"])


def person(family: str, picture: np.ndarray, rng: np.random.Generator) -> Judge:
    """Return P(same) of a participant who answers by this family, with random parameters."""
    if family in ("colour", "texture"):
        x = features.standardise(
            features.extract({"colour": "lab", "texture": "gabor"}[family], picture, GRID)
        )[0]
        weights = rng.standard_normal((x.shape[1], SEGMENTS)) * 3 / np.sqrt(x.shape[1] / 3)
        return Maps(GRID, softmax(x @ weights)).same_probability
    if family == "colour difference":
        x = features.extract("lab", picture, GRID)
        scale = rng.uniform(0.6, 1.2) * np.median(np.linalg.norm(x - np.roll(x, 40, axis=0), axis=1))
        return lambda pairs: 0.05 + 0.9 * np.exp(-np.linalg.norm(x[pairs.i] - x[pairs.j], axis=1) / scale)
    if family == "distance":
        reach = rng.uniform(0.2, 0.4)
        return lambda pairs: 0.05 + 0.9 * np.exp(-((pairs.distances / reach) ** 2))
    return stimuli.random_maps(GRID, segments=SEGMENTS, entropy=0.2, seed=rng).same_probability


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
