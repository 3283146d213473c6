import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from vseg.errors import InvalidInput, NotFound
from vseg.sweeps import Table

values = st.one_of(
    st.integers(),
    st.floats(allow_nan=False),
    st.booleans(),
    st.none(),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    st.sampled_from(["1", "-2", "1e5", "nan", "inf", "True", "", '"', "[", "[1]", "1_000", "٣", " 1"]),
    st.tuples(st.integers(), st.text("ab")),
)
ROWS = [{"blocks": b, "repeat": r, "error": 10 * b + r} for b in (1, 2) for r in range(3)]


@given(cells=st.lists(st.tuples(values, values), min_size=1))
def test_saved_values_are_read_back_with_their_types(cells, tmp_path_factory):
    """Test that the string '1' does not become the number 1, nor an empty string None."""
    path = tmp_path_factory.mktemp("table") / "table.csv"
    table = Table({"setting": a, "repeat": n, "result": b} for n, (a, b) in enumerate(cells))
    table.save(path)
    assert [[repr(value) for value in row.values()] for row in Table.load(path).rows] == [
        [repr(value) for value in row.values()] for row in table.rows
    ]


def test_nan_is_read_as_nan(tmp_path):
    Table([{"repeat": 0, "error": math.nan}]).save(tmp_path / "t.csv")
    assert math.isnan(Table.load(tmp_path / "t.csv").rows[0]["error"])


def test_columns_are_settings_then_repeat_then_results():
    """Test rows with different columns; missing values are empty."""
    table = Table([{"a": 1, "repeat": 0, "x": 1}, {"b": 2, "repeat": 0, "y": 2}])
    assert table.columns == ("a", "b", "repeat", "x", "y")
    assert table.settings == ("a", "b")
    assert table.csv().splitlines()[1:] == ["1,,0,1,", ",2,0,,2"]


def test_selecting_rows():
    table = Table(ROWS)
    assert table.column("error", blocks=2).tolist() == [20, 21, 22]
    assert table.where(blocks=1, repeat=2).rows == [{"blocks": 1, "repeat": 2, "error": 12}]
    assert [(key, len(part)) for key, part in table.groups(["blocks"]).items()] == [((1,), 3), ((2,), 3)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (lambda table: table.column("mistake"), "'mistake'.*blocks, repeat, error"),
        (lambda table: table.where(blocks=7), "blocks=7.*1, 2"),
        (lambda table: table.mean_interval("error", by=["size"], seed=0), "'size'"),
    ],
)
def test_missing_columns_and_values_are_named(query, message):
    with pytest.raises(NotFound, match=message):
        query(Table(ROWS))


def test_intervals_agree_with_theory():
    """Test 1000 standard normals: their 95 % interval is ±1.96/√1000 = ±0.062, within 10 %."""
    noise = np.random.default_rng(0).normal(size=1000)
    noise = (noise - noise.mean()) / noise.std()
    rows = [{"b": b, "repeat": r, "x": b + float(noise[r])} for b in (0, 5) for r in range(1000)]
    for row in Table(rows).mean_interval("x", by=["b"], seed=1).rows:
        assert row["mean"] == pytest.approx(row["b"], abs=1e-9)
        assert row["high"] - row["b"] == pytest.approx(0.062, rel=0.1)
        assert row["b"] - row["low"] == pytest.approx(0.062, rel=0.1)
        assert row["count"] == 1000


def test_repetitions_are_resampled_not_rows():
    """Test that a repetition which returns a number four times counts like one that returns it once."""
    numbers = np.random.default_rng(0).normal(size=50).tolist()
    once = Table({"repeat": r, "x": x} for r, x in enumerate(numbers))
    often = Table({"repeat": r, "x": x} for r, x in enumerate(numbers) for _ in range(4))
    assert often.mean_interval("x", seed=0) == once.mean_interval("x", seed=0)


def test_groups_do_not_depend_on_each_other():
    """Test that the interval of a group is the same with and without the others."""
    rng = np.random.default_rng(3)
    rows = [{"b": b, "repeat": r, "x": rng.normal()} for b, n in ((1, 20), (2, 20), (3, 7)) for r in range(n)]
    together = Table(rows).mean_interval("x", by=["b"], seed=0)
    for b in (1, 2, 3):
        alone = Table(rows).where(b=b).mean_interval("x", by=["b"], seed=0)
        assert together.where(b=b).rows[0] == pytest.approx(alone.rows[0], abs=1e-12)


def test_many_repetitions_are_resampled_in_batches():
    """Test more repetitions than fit into memory at once: the interval is ±1.96/√n, within 10 %."""
    noise = np.random.default_rng(0).normal(size=5000)
    noise = (noise - noise.mean()) / noise.std()
    [row] = Table({"repeat": r, "x": x} for r, x in enumerate(noise.tolist())).mean_interval("x", seed=1).rows
    assert row["high"] == pytest.approx(1.96 / np.sqrt(5000), rel=0.1)
    assert row["low"] == pytest.approx(-1.96 / np.sqrt(5000), rel=0.1)


def test_a_missing_number_makes_the_mean_nan():
    [row] = Table([{"repeat": 0, "x": 1.0}, {"repeat": 1, "x": None}]).mean_interval("x", seed=0).rows
    assert all(math.isnan(row[name]) for name in ("mean", "low", "high"))


def test_the_mean_of_words_is_an_error():
    with pytest.raises(InvalidInput, match="'low'"):
        Table([{"repeat": 0, "x": "low"}]).mean_interval("x", seed=0)


def test_an_invalid_level_is_an_error():
    with pytest.raises(InvalidInput, match="95"):
        Table(ROWS).mean_interval("error", level=95, seed=0)


def test_loading_a_damaged_or_missing_file_is_an_error(tmp_path):
    (tmp_path / "t.csv").write_text("repeat,x\n0\n")
    with pytest.raises(InvalidInput, match="header"):
        Table.load(tmp_path / "t.csv")
    with pytest.raises(NotFound, match="nowhere"):
        Table.load(tmp_path / "nowhere.csv")
