"""How many answers a posterior needs: the precision of a participant's mean entropy and map, by K, N and answers.

Participants are those of the planning simulation (`vseg.planning`): moderate uncertainty that differs between them,
5 % lapses, 20 catch trials, a new pair in every trial. The two constants of `vseg.designs.precision` are fitted to
participants of one seed; the other tables are about participants of another seed, who had no part in the fit.

Run by `make study`; `python benchmarks/answers.py 2` prints the tables from two participants in each cell.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tables import table
from vseg.designs import precision
from vseg.planning import Assumptions
from vseg.planning.simulation import simulate_participant, sweep_setting
from vseg.sweeps import Table, sweep

SEGMENTS, GRIDS, PER_SEGMENT = (2, 3, 5, 8), (8, 16), (32, 64, 128, 256)
TUNING_SEED, HELD_SEED = 0, 1
ENTROPY, LAPSE, CATCH = 0.45, 0.05, 20  # the entropy, as a share of log K, is that of the paper's S2 at σ = 3
HALF_WIDTH_SDS = 1.645  # half of a normal distribution's 90 % interval, in standard deviations
HELD_GRID = 11
SMALL, LARGE = 5, 32
VARIED: dict[str, dict[str, Any]] = {
    "as above": {},
    "5×5 locations": {"grid": SMALL},
    "32×32 locations": {"grid": LARGE},
    "nearly certain (0.15 log K)": {"entropy": 0.15},
    "very uncertain (0.75 log K)": {"entropy": 0.75},
    "no lapses, lapses not estimated": {"lapse": 0.0, "catch": 0},
    "no catch trials": {"catch": 0},
    "15 % lapses": {"lapse": 0.15},
}

COLUMNS = (
    "answers", "half-width, rule", "half-width, median", "error of the entropy, mean", "in ± half-width",
    "error of a probability, rule", "error of a probability, mean",
)  # fmt: skip


def main(repeats: int) -> str:
    """Return the three tables, from `repeats` participants in each cell."""
    return "\n".join([tuning(repeats), held_out(2 * repeats), varied(2 * repeats)])


def tuning(repeats: int) -> str:
    """Fit the constants of `vseg.designs.precision`."""
    cells = [(segments, grid) for segments in SEGMENTS for grid in GRIDS]
    settings = [
        _setting(segments, [segments * each for each in PER_SEGMENT], grid) for segments, grid in cells
    ]
    found = _simulate(settings, repeats, TUNING_SEED)
    rows, entropies, errors = [], [], []
    for segments, grid in cells:
        cells_of_row = []
        for per_segment in PER_SEGMENT:
            part = found.where(segments=segments, grid=grid, trials=segments * per_segment)
            half_width, error = _half_width(part, segments), float(np.mean(part.column("error")))
            entropies.append(half_width * np.sqrt(per_segment))
            errors.append(error * np.sqrt(per_segment))
            cells_of_row.append(f"{half_width:.3f}, {error:.3f}")
        rows.append([str(segments), f"{grid}×{grid}", *cells_of_row])
    expected = [
        f"{precision.ENTROPY_FACTOR / np.sqrt(each):.3f}, {precision.ERROR_FACTOR / np.sqrt(each):.3f}"
        for each in PER_SEGMENT
    ]
    rows.append(["any", "any, by the rule", *expected])
    fitted, spread = zip(*(_fit(values) for values in (entropies, errors)), strict=True)
    note = (
        f"Half-width of the 90 % interval of the mean entropy as a share of log K (median), and error of a probability "
        f"(mean), of {repeats} participants in each cell: mean entropy {ENTROPY} log K ± a third, {LAPSE:.0%} lapses, "
        f"{CATCH} catch trials, a new pair in every trial. Both fall with √(answers ÷ K) and hardly depend on the "
        "number of locations. Fitted constants: "
        f"half-width = {fitted[0]:.2f} log K √(K ÷ answers), error = {fitted[1]:.2f} √(K ÷ answers), with cells that "
        f"differ from these by {spread[0]:.0%} and {spread[1]:.0%} (standard deviation of the logarithm); "
        f"`vseg.designs.precision` uses {precision.ENTROPY_FACTOR} and {precision.ERROR_FACTOR}."
    )
    columns = ["K", "locations", *(f"{each} answers per segment" for each in PER_SEGMENT)]
    return table("Answers and precision: the fit", columns, rows, note)


def held_out(repeats: int) -> str:
    """Compare the rule with other participants, at the advised number of answers, half and twice it."""
    factors = (0.5, 1, 2)
    counts = {k: [int(factor * precision.advised_answers(k)) for factor in factors] for k in SEGMENTS}
    found = _simulate([_setting(k, counts[k], HELD_GRID) for k in SEGMENTS], repeats, HELD_SEED)
    rows = [
        [
            str(k),
            f"{trials} (advised)" if factor == 1 else str(trials),
            *_compare(found.where(segments=k), k, trials),
        ]
        for k in SEGMENTS
        for factor, trials in zip(factors, counts[k], strict=True)
    ]
    note = (
        f"{HELD_GRID}×{HELD_GRID} locations, {repeats} participants in each row, with another seed than the fit. "
        "Half-widths and errors of the entropy are shares of log K; 'in ± half-width' is the share of participants "
        "whose true mean entropy is within the half-width that the rule expects."
    )
    return table("Answers and precision: other participants", ["K", *COLUMNS], rows, note)


def varied(repeats: int) -> str:
    """Compare the rule with participants and studies for which it was not fitted, at the advised number of answers."""
    rows = []
    for name, change in VARIED.items():
        found = _simulate([_setting(3, [precision.advised_answers(3)], **change)], repeats, HELD_SEED)
        rows.append([name, *_compare(found, 3, precision.advised_answers(3))])
    note = (
        f"Three segments, {precision.advised_answers(3)} answers, {HELD_GRID}×{HELD_GRID} locations unless said "
        f"otherwise, {repeats} participants in each row."
    )
    return table("Answers and precision: other conditions", ["participants", *COLUMNS[1:]], rows, note)


def _setting(
    segments: int,
    trials: Sequence[int],
    grid: int = HELD_GRID,
    entropy: float = ENTROPY,
    lapse: float = LAPSE,
    catch: int = CATCH,
) -> dict[str, Any]:
    """Return the arguments of the planning simulation; the entropy is a share of log K."""
    assumptions = Assumptions(
        grid=grid, segments=segments, entropy=entropy * float(np.log(segments)), lapse=lapse, catch=catch
    )
    return dict(sweep_setting(assumptions, tuple(trials), ("posterior",)))


def _simulate(settings: list[dict[str, Any]], repeats: int, seed: int) -> Table:
    return sweep(simulate_participant, settings, repeats=repeats, executor="threads", seed=seed)


def _half_width(rows: Table, segments: int) -> float:
    """Return the median half-width of the 90 % interval of the mean entropy, as a share of log K."""
    return float(HALF_WIDTH_SDS * np.median(rows.column("entropy_spread")) / np.log(segments))


def _fit(values: list[float]) -> tuple[float, float]:
    """Return the geometric mean of these values, and the standard deviation of their logarithms."""
    return float(np.exp(np.mean(np.log(values)))), float(np.std(np.log(values)))


def _compare(found: Table, segments: int, trials: int) -> list[str]:
    """Return the columns that compare the rule with the simulated participants."""
    rows, most = found.where(trials=trials), float(np.log(segments))
    expected = precision.expected_precision(segments, trials)
    assert expected is not None
    errors = rows.column("entropy_error")
    return [
        f"{expected.entropy_half_width / most:.3f}",
        f"{_half_width(rows, segments):.3f}",
        f"{np.mean(errors) / most:.3f}",
        f"{np.mean(errors <= expected.entropy_half_width):.0%}",
        f"{expected.error:.3f}",
        f"{np.mean(rows.column('error')):.3f}",
    ]


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 4)
