"""Counting the catch trials of each participant; trials with flags do not count."""

import csv

import pytest

from vseg.data.catch_trials import count_catch_trials
from vseg.errors import InvalidInput

ROWS = """participant,i,j,same,catch,correct,flags
Ann,0,1,1,1,1,
Ann,0,1,0,1,0,
Ann,0,1,0,1,0,late
Ann,0,1,1,0,,
Bob,0,1,1,1,1,
Cem,0,1,1,0,,
"""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_correct_and_total(tmp_path, suffix):
    path = tmp_path / f"responses.{suffix}"
    if suffix == "csv":
        path.write_text(ROWS)
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        reader = pytest.importorskip("pyarrow.csv")
        (tmp_path / "rows.csv").write_text(ROWS)
        parquet.write_table(reader.read_csv(tmp_path / "rows.csv"), path)
    assert count_catch_trials(path) == {"Ann": (1, 2), "Bob": (1, 1)}


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_delimiters_of_spreadsheets(tmp_path, delimiter):
    (tmp_path / "rows.csv").write_text(ROWS.replace(",", delimiter), encoding="utf-8-sig")
    assert count_catch_trials(tmp_path / "rows.csv") == {"Ann": (1, 2), "Bob": (1, 1)}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("latin.csv", ROWS.replace("Ann", "Änne").encode("latin-1"), "is not UTF-8 text; save it as CSV"),
        ("book.csv", b"PK\x03\x04\xff\xfe", "is a zip archive, perhaps an Excel workbook"),
        ("long.csv", (ROWS + "x" * 200_000).encode(), "cannot be read as a CSV file"),
        ("no.parquet", b"nothing", "cannot be read as a Parquet file"),
    ],
)
def test_unreadable_files(tmp_path, name, content, message):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow.parquet")
    (tmp_path / name).write_bytes(content)
    usual = csv.field_size_limit(131_072)  # importers raise the limit for the whole process
    try:
        with pytest.raises(InvalidInput, match=message):
            count_catch_trials(tmp_path / name)
    finally:
        csv.field_size_limit(usual)


def test_a_table_without_catch_trials(tmp_path):
    (tmp_path / "plain.csv").write_text("i,j,same\n0,1,1\n")
    assert count_catch_trials(tmp_path / "plain.csv") == {}
