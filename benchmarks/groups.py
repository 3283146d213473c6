"""Two groups of 15 participants: false positives and power of compare_groups.

Participants' maps are the paper's S2 fields on 8×8 locations; the standard deviation of the log-odds is 3 in one group
and 3 or 2.3 in the other, and varies between participants by a factor of exp(0.2 z) with z standard normal.
`python benchmarks/study.py --only groups` runs it, `--quick` with fewer participants.
"""

import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from posterior import gp
from tables import table
from vseg import designs, simulate
from vseg.bayes import posterior
from vseg.errors import VsegWarning
from vseg.evaluation.group_tests import welch
from vseg.evaluation.random_effects import Measurement, compare_entropies, compare_uncertain, measure_entropy
from vseg.observers import LapsingObserver
from vseg.sweeps import sweep

GROUP, SIZE = 15, 8
EXPERIMENTS = 1000
DEVIATIONS = {"first": 3.0, "second": 2.3}
BETWEEN = 0.2  # standard deviation of the logarithm of the log-odds' standard deviation between participants
CATCH_TRIALS = 40
SEED = 1  # the comparison was chosen with other participants, outside this study


class Session(NamedTuple):
    """What a participant does: segments, lapses, and the fewest and most answers in blocks of KN²."""

    segments: int
    lapse: float
    fewest: float
    most: float


ADVISED = designs.advised_answers(2) / (2 * SIZE**2)
SESSIONS = {
    "one block": Session(2, 0.0, 1, 1),
    "as advised, 100 per segment": Session(2, 0.0, ADVISED, ADVISED),
    "a quarter to two blocks": Session(2, 0.0, 0.25, 2),
    "one block, K = 3, 5 % lapses estimated": Session(3, 0.05, 1, 1),
    "half a block": Session(2, 0.0, 0.5, 0.5),
}
# Each row of the table: the sessions of the first and of the second group. The last compares unlike sessions.
ROWS = [(name, name) for name in list(SESSIONS)[:4]] + [("half a block", "one block")]
# Participants to fit: those of each session and condition that the rows need.
KINDS = [
    (session, condition)
    for session in SESSIONS
    for condition in DEVIATIONS
    if condition == "first" or session in dict(ROWS).values()
]


class Participant(NamedTuple):
    """A simulated participant: the true mean entropy, and what the posterior says."""

    true: float
    measured: Measurement


def main(people: int, checkpoint: Path | None = None) -> str:
    """Fit `people` participants of each kind once, and draw experiments of two groups from them."""
    found = sweep(
        _fit, {"kind": list(range(len(KINDS)))}, repeats=people, executor="threads", checkpoint=checkpoint, seed=SEED
    )  # fmt: skip
    pools = {
        kind: [
            Participant(row["true"], Measurement(**{name: row[name] for name in Measurement._fields}))
            for row in found.where(kind=at).rows
        ]
        for at, kind in enumerate(KINDS)
    }
    rng = np.random.default_rng(SEED)
    rows = []
    for first, second in ROWS:
        name = first if first == second else f"{first} against {second}"
        for condition in ("first", "second"):
            results = [
                _compare(*_draw_groups(pools[first, "first"], pools[second, condition], rng))
                for _ in range(EXPERIMENTS)
            ]
            ours, own, plain, true, _, holds = np.mean(results, axis=0)
            differences = np.array(results)[:, 4]
            rows.append([
                name, "none" if condition == "first" else f"{differences.mean():+.3f}", f"**{100 * ours:.1f} %**",
                f"{100 * own:.1f} %", f"{100 * plain:.1f} %", f"{100 * true:.1f} %",
                "" if condition == "first" else f"{ours / true:.2f}", f"{100 * holds:.0f} %",
            ])  # fmt: skip
    columns = [
        "answers of a participant", "true difference, nats", "compare_groups", "weighted, posterior's own estimates",
        "Welch, posterior's own estimates", "Welch, true entropies", "power ÷ Welch, true", "95 % interval holds",
    ]  # fmt: skip
    agree = 100 * np.mean([row["agree"] for row in found.rows])
    note = (
        f"Shares of {EXPERIMENTS} experiments with p < 0.05, {GROUP} + {GROUP} participants, {SIZE}×{SIZE} locations. "
        f"{people} participants of each kind were fitted once (chains agree in {agree:.0f} %), and the groups of each "
        "experiment are drawn from them without replacement, so experiments share participants. With no true "
        "difference both groups of like sessions come from the same participants. `compare_groups` weights estimates "
        "under a flat prior; the next two columns take the posterior's own medians, weighted or not. The last "
        "column is the share of experiments whose interval holds the difference between the mean true entropies of all "
        "participants of the two kinds. Targets with like sessions: 3 to 7 % without a difference, and with one at "
        "least 0.6 of the power that Welch's test has on the true entropies. The last two rows show what unequal "
        "numbers of answers do; `compare_groups` warns there."
    )
    return table("Two groups: false positives and power", columns, rows, note)


def _fit(kind: int, *, seed: int) -> dict[str, Any]:
    """Simulate and fit one participant."""
    rng = np.random.default_rng(seed)
    session, condition = KINDS[kind]
    segments, lapse, fewest, most = SESSIONS[session]
    deviation = DEVIATIONS[condition] * np.exp(BETWEEN * rng.standard_normal())
    seeds = [int(number) for number in rng.integers(2**31, size=4)]
    truth = gp(SIZE, segments, "", seeds[0], deviation=deviation, min_area=0.1)
    block = segments * SIZE**2
    trials = round(block * fewest * (most / fewest) ** rng.random())
    pairs = designs.covering(truth.layout, trials=trials, seed=seeds[1])
    answers = simulate(truth, pairs, observer=LapsingObserver(lapse), seed=seeds[2])
    options: dict[str, Any] = {"lapses": None}
    if lapse:
        wrong = int(rng.binomial(CATCH_TRIALS, lapse / 2))
        options = {"lapses": "estimate", "catch": (CATCH_TRIALS - wrong, CATCH_TRIALS)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)
        result = posterior(answers, segments=segments, seed=seeds[3], threads=1, **options)
    return {
        "true": truth.mean_entropy, "agree": float(result.converged), **measure_entropy(result)._asdict(),
    }  # fmt: skip


Group = list[Participant]


def _draw_groups(first: Group, second: Group, rng: np.random.Generator) -> tuple[Group, Group, float]:
    """Draw two groups of different participants; return them with the true difference between the two kinds."""
    difference = float(np.mean([one.true for one in second]) - np.mean([one.true for one in first]))
    if first is second:
        chosen = [first[at] for at in rng.choice(len(first), 2 * GROUP, replace=False)]
        return chosen[:GROUP], chosen[GROUP:], difference
    a, b = ([pool[at] for at in rng.choice(len(pool), GROUP, replace=False)] for pool in (first, second))
    return a, b, difference


def _compare(a: Group, b: Group, difference: float) -> tuple[float, ...]:
    """Return whether each test finds p < 0.05, the true difference, and whether our interval holds it."""
    ours = compare_entropies(
        {f"a{at}": one.measured for at, one in enumerate(a)},
        {f"b{at}": one.measured for at, one in enumerate(b)},
    )
    values, spreads = (
        [[getattr(one.measured, name) for one in group] for group in (a, b)] for name in ("value", "spread")
    )
    own = compare_uncertain(*values, *spreads)
    true = welch([one.true for one in a], [one.true for one in b])
    holds = ours.difference.low <= difference <= ours.difference.high
    return (
        ours.p < 0.05, own.p < 0.05, welch(*values).p < 0.05, true.p < 0.05, difference, float(holds),
    )  # fmt: skip


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["60"])[0]))
