"""Catch trials from a table: only those that were shown right count, for whoever answered them."""

import pytest

from vseg.dataset.catching import catch_trials

ROWS = """participant,i,j,same,catch,correct,flags
Ann,0,1,1,1,1,
Ann,0,1,0,1,0,
Ann,0,1,0,1,0,late
Ann,0,1,1,0,,
Bob,0,1,1,1,1,
Cem,0,1,1,0,,
"""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_right_of_asked(tmp_path, suffix):
    path = tmp_path / f"responses.{suffix}"
    if suffix == "csv":
        path.write_text(ROWS)
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        reader = pytest.importorskip("pyarrow.csv")
        (tmp_path / "rows.csv").write_text(ROWS)
        parquet.write_table(reader.read_csv(tmp_path / "rows.csv"), path)
    assert catch_trials(path) == {"Ann": (1, 2), "Bob": (1, 1)}


def test_a_table_without_them_has_none(tmp_path):
    (tmp_path / "plain.csv").write_text("i,j,same\n0,1,1\n")
    assert catch_trials(tmp_path / "plain.csv") == {}
