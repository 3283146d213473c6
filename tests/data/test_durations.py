"""Durations: medians with intervals, engaged time, and the routes from tables and Responses to them."""

import csv

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import binom

import vseg
from vseg.data.durations import TABLE_COLUMNS, estimate_median, measure_durations, median_ranks
from vseg.errors import InvalidInput, NotFound


def test_ranks_are_those_of_the_binomial_distribution():
    counts = np.arange(3000)
    expected = np.where(counts < 6, 0, binom.ppf(0.025, np.maximum(counts, 1), 0.5))
    assert median_ranks(counts).tolist() == expected.astype(int).tolist()


@given(st.integers(6, 400))
def test_the_interval_covers_the_median_with_the_smallest_probability_from_95_percent(count):
    def coverage(rank):
        return 1 - 2 * binom.cdf(rank - 1, count, 0.5)

    rank = int(median_ranks(count))
    assert coverage(rank) >= 0.95 > coverage(rank + 1)


def test_intervals_of_skewed_times_cover_the_median():
    """950 of 1000 or more; the bound is three standard errors below."""
    rng = np.random.default_rng(0)
    times = rng.lognormal(0, 0.5, (1000, 30))
    estimates = [estimate_median(row) for row in times]
    covered = sum(each.low <= 1 <= each.high for each in estimates)
    assert covered >= 950 - 3 * np.sqrt(1000 * 0.05 * 0.95)


def test_few_values_have_no_interval():
    assert vars(estimate_median([])) == {"median": None, "low": None, "high": None}
    assert vars(estimate_median([1, 2, np.nan])) == {"median": 1.5, "low": None, "high": None}


def make_responses(rt_ms):
    """Return the answers of participants, given their reaction times."""
    names = np.repeat(list(rt_ms), [len(times) for times in rt_ms.values()])
    count = len(names)
    return vseg.Responses(
        vseg.Grid(3), [0] * count, [1] * count, [1] * count, participant=names, rt_ms=np.concatenate([*rt_ms.values()])
    )  # fmt: skip


def test_the_papers_numbers():
    """30 participants with 5 x 242 trials, 600 ms each and a median reaction time of 730 ms: 1.33 s and 27 minutes."""
    shifts = np.linspace(-300, 300, 30)
    table = measure_durations(
        make_responses({f"P{n:02}": np.full(1210, 730 + shift) for n, shift in enumerate(shifts)}),
        presentation_ms=600,
    )
    assert table.study.trial_ms.median == pytest.approx(1330)
    assert table.study.engaged_minutes.median == pytest.approx(1210 * 1.33 / 60, abs=0.001)
    rank = int(median_ranks(30))
    assert table.study.trial_ms.low == pytest.approx(1330 + shifts[rank - 1])
    assert str(table).startswith("Trials take 1.33 s [")
    assert "engaged for 26.8 minutes" in str(table)


def test_an_absence_within_one_trial_is_not_engaged_time():
    times = np.full(99, 400.0)
    attentive, absent = (
        measure_durations(make_responses({"P1": np.append(times, last)}), presentation_ms=600)
        for last in (400.0, 1e6)
    )
    assert attentive.participants["P1"].engaged_minutes == absent.participants["P1"].engaged_minutes


def test_without_the_presentation_only_reaction_times_are_known(tmp_path):
    table = measure_durations(make_responses({"P1": [400.0, 500.0], "P2": [600.0]}))
    assert [own.rt_ms.median for own in table.participants.values()] == [450, 600]
    assert table.study.trial_ms.median is None
    assert str(table) == "Reaction times are 0.53 s (median of 2 participants)."
    table.save(tmp_path / "durations.csv")
    with open(tmp_path / "durations.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == TABLE_COLUMNS
    assert (rows[1]["participant"], rows[1]["median_rt_ms"], rows[1]["engaged_minutes"]) == (
        "P2",
        "600.0",
        "",
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_with_presentations_and_answers_that_do_not_count(tmp_path, suffix):
    rows = [("P1", 1, 400.0, 300.0, 310.0), ("P1", 0, 9000.0, 300.0, 300.0), ("P1", 1, 600.0, 300.0, 290.0)]
    names = ("participant", "used", "rt_ms", "cue_ms", "image_ms")
    path = tmp_path / f"answers{suffix}"
    if suffix == ".csv":
        path.write_text("\n".join(",".join(map(str, row)) for row in (names, *rows)) + "\n")
    else:
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        parquet.write_table(pyarrow.table(columns), path)
    own = measure_durations(path).participants["P1"]
    assert (own.answers, own.answers_used, own.rt_ms.median) == (3, 2, 500.0)
    assert own.trial_ms.median == (1010 + 1190) / 2
    assert own.engaged_minutes == pytest.approx(3 * 1100 / 60_000)


def test_data_without_reaction_times_say_nothing():
    responses = vseg.Responses(vseg.Grid(3), [0], [1], [1])
    assert str(measure_durations(responses)) == ""


def test_wrong_arguments_are_refused(tmp_path):
    with pytest.raises(NotFound, match="No file or folder"):
        measure_durations(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="takes 0 ms or more, got -1"):
        measure_durations(make_responses({"P1": [400.0]}), presentation_ms=-1)
