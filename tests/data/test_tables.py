"""Reading and writing responses as CSV and Parquet; an invalid file gives an error that names the line."""

import numpy as np
import pytest
from hypothesis import given

from servers import STUDY
from strategies import same_rows, some_responses
from vseg.data.layout import Grid
from vseg.data.responses import COLUMNS, MAX_NAME_LENGTH, Responses
from vseg.data.tables import CHUNK_ROWS, load
from vseg.errors import InvalidInput, NotFound


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@given(responses=some_responses())
def test_save_and_load(responses, ending, tmp_path_factory):
    """CSV files have times in tenths of a millisecond."""
    path = tmp_path_factory.mktemp("table") / f"responses.{ending}"
    responses.save(path)
    assert same_rows(load(path, responses.layout), responses)


def test_parquet_keeps_times_exactly_and_csv_to_a_tenth(tmp_path):
    responses = Responses(Grid(3), [0], [1], [1], rt_ms=[512.34567])
    for name, expected in (("a.parquet", 512.34567), ("a.csv", 512.3)):
        responses.save(tmp_path / name)
        assert load(tmp_path / name, Grid(3)).rt_ms.tolist() == [expected]


def test_csv_columns(tmp_path):
    Responses(Grid(3), [0], [4], [True], participant="P1", image="zebra").save(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == ",".join(COLUMNS) + "\nP1,zebra,0,0,0,4,1,\n"


def write_file(tmp_path, text, name="r.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    "text",
    [
        "i,j,same\n0,4,1\n",
        "i,j,same\r\n0,4,TRUE\r\n",
        "\ufeffi,j,same\n0,4,true\n",
        " i , j , same \n 0 , 4 , 1.0 \n",
        "same,comment,j,i\n1,\"a, b\",4,0\n",
        "i,j,same\n\n0,4,1\n\n",
        "i,j,same\n0.0,4.0,1\n",
        "i,j,same,rt_ms\n0,4,1,NA\n",
        "i,j,same\n0,4,1,\n",
    ],
)  # fmt: skip
def test_variants_of_csv(tmp_path, text):
    read = load(write_file(tmp_path, text), Grid(3))
    assert same_rows(read, Responses(Grid(3), [0], [4], [1]))


WHOLE = "; expected a whole number from 0 up."
TIME = "; expected a time in milliseconds from 0 up, or an empty cell."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "{path} is empty; expected a header with the columns i, j, same."),
        ("\n\n", "{path} is empty; expected a header with the columns i, j, same."),
        ("i,j,same\n", "{path} holds no responses; expected one row per trial."),
        ("i,j\n0,1\n", "{path} has no column 'same'; expected i, j, same, found i, j."),
        ("a;b\n", "{path} has no column 'i', 'j', 'same'; expected i, j, same, found a, b."),
        ("i,j,same\n0,1,maybe\n", "{path}, line 2: column same is 'maybe'; expected 0 or 1 (false or true)."),
        ("i,j,same\n0,1,\n", "{path}, line 2: column same is ''; expected 0 or 1 (false or true)."),
        ("i,j,same\n0,1,nan\n", "{path}, line 2: column same is 'nan'; expected 0 or 1 (false or true)."),
        ("i,j,same\n0,1,1\nnan,1,1\n", "{path}, line 3: column i is 'nan'" + WHOLE),
        ("i,j,same\n0,1.5,1\n", "{path}, line 2: column j is '1.5'" + WHOLE),
        ("i,j,same\n0,-1,1\n", "{path}, line 2: column j is '-1'" + WHOLE),
        ("i,j,same,block\n0,1,1,1e30\n", "{path}, line 2: column block is '1e30'" + WHOLE),
        ("i,j,same\n\n\n0,1,1\n\nx,1,1\n", "{path}, line 6: column i is 'x'" + WHOLE),
        (
            "i,j,same,rt_ms\n0,1,1,fast\n",
            "{path}, line 2: column rt_ms is 'fast'" + TIME,
        ),
        ("i,j,same,rt_ms\n0,1,1,5\n0,1,1,-5\n", "{path}, line 3: column rt_ms is '-5'" + TIME),
        ("i,j,same,rt_ms\n0,1,1,inf\n", "{path}, line 2: column rt_ms is 'inf'" + TIME),
        ("i,j,same,trial\n0,1,1,0\n0,1,1,\n", "{path}, line 3: column trial is ''" + WHOLE),
        (
            "i,j,same\n0,8,1\n\n0,9,1\n9,12,0\n",
            "{path}, line 4: location 9 is outside a 3x3 grid, whose locations are 0..8; "
            "give the layout that was used (locations count from 0).",
        ),
        (
            "i,j,same\n1,2,1\n9,1,1\n",
            "{path}, line 3: location 9 is outside a 3x3 grid, whose locations are 0..8; "
            "the file's locations are 1..9, but locations count from 0: subtract 1 from each.",
        ),
        (
            'i,j,same,note\n0,1,1,"two\nlines"\n3,3,1,\n',
            "{path}, line 4: i and j are both location 3, but a pair joins two different locations; "
            "correct or remove the row.",
        ),
        ("i,j,same\n0,1,1\n0,1\n", "{path}, line 3: 2 cells, but the header has 3 columns."),
        ("i,j,same\n0,1,1,1\n", "{path}, line 2: 4 cells, but the header has 3 columns."),
        ("i,j,same,i\n0,1,1,2\n", "{path} has the column 'i' twice; expected each once."),
    ],
)  # fmt: skip
def test_invalid_tables(tmp_path, text, message):
    path = write_file(tmp_path, text)
    with pytest.raises(InvalidInput) as error:
        load(path, Grid(3))
    assert str(error.value) == message.format(path=path)


@pytest.mark.parametrize("rows", [10, CHUNK_ROWS, 2 * CHUNK_ROWS + 5])
def test_long_tables_are_read_in_chunks(tmp_path, rows):
    """Lines are counted over all chunks, and a column may begin with plain numbers and continue with others."""
    lines = [f"0,{1 + row % 8},{row % 2},{row}" for row in range(rows)]
    read = load(
        write_file(tmp_path, "\n".join(["i,j,same,rt_ms", *lines, "0,1,1,NA", "0, 2.0 ,1, 7 "])), Grid(3)
    )
    assert read.rt_ms.tolist()[:-2] == list(range(rows))
    assert np.array_equal(read.rt_ms[-2:], [np.nan, 7], equal_nan=True)
    assert read.j.tolist() == [1 + row % 8 for row in range(rows)] + [1, 2]
    for bad, message in (
        ("0,1,1,fast", "'fast'"),
        ("x,1,1,", "'x'"),
        ("0,1,1", "3 cells"),
        ("0,9,1,", "location 9"),
    ):
        with pytest.raises(InvalidInput, match=rf", line {rows + 3}: .*{message}"):
            load(write_file(tmp_path, "\n".join(["i,j,same,rt_ms", "", *lines, bad])), Grid(3))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_names_keep_their_spaces(tmp_path, ending):
    """Names that differ only in spaces remain different."""
    names = [" A ", "A", "a,b", "", 'say "so"']
    Responses(Grid(3), [0] * 5, [1] * 5, [1] * 5, participant=names).save(tmp_path / f"r.{ending}")
    assert load(tmp_path / f"r.{ending}", Grid(3)).participant.tolist() == names


PLAIN = {"i": [0, 1], "j": [4, 5], "same": [1, 0]}


@pytest.mark.parametrize(
    "columns",
    [
        {"i": ["0", "1"], "same": ["TRUE", "0"]},
        {"i": np.array([0, 1], np.uint8), "j": [4.0, 5.0], "same": [True, False]},
        {"same": [1.0, 0.0], "block": [0, 0], "rt_ms": [None, np.nan]},
        {"participant": [None, None], "rt_ms": [None, None]},
    ],
    ids=str,
)
def test_parquet_columns_of_many_types(tmp_path, columns):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table(PLAIN | columns)
    for at, kind in enumerate(table.schema.types):
        if kind == pyarrow.string():
            table = table.set_column(at, table.column_names[at], table.column(at).dictionary_encode())
    pyarrow.parquet.write_table(table, tmp_path / "r.parquet", row_group_size=1)
    read = load(tmp_path / "r.parquet", Grid(3))
    names = "" if "participant" in columns else "anonymous"
    assert same_rows(read, Responses(Grid(3), **PLAIN, participant=names))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"i": [0, None]}, "line 2: column i is ''; expected a whole number"),
        ({"i": [0.5, 1]}, "line 1: column i is '0.5'; expected a whole number"),
        ({"i": [True, False]}, "line 1: column i is 'True'; expected a whole number"),
        ({"same": [1, 2]}, "line 2: column same is '2'; expected 0 or 1"),
        ({"rt_ms": [1.0, -5.0]}, "line 2: column rt_ms is '-5.0'; expected a time"),
        ({"j": [4, 9]}, "line 2: location 9 is outside a 3x3 grid"),
        ({"j": [4, 1]}, "line 2: i and j are both location 1"),
    ],
)
def test_invalid_parquet_columns(tmp_path, columns, message):
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(PLAIN | columns), tmp_path / "r.parquet")
    with pytest.raises(InvalidInput, match=rf"r\.parquet, {message}"):
        load(tmp_path / "r.parquet", Grid(3))


@pytest.mark.parametrize(
    "column",
    [
        [[0], [1]],
        [{"a": 0}, {"a": 1}],
        np.array(["2020-01-01", "2020-01-02"], "datetime64[s]"),
    ],
    ids=["lists", "structs", "times"],
)
def test_parquet_columns_that_hold_neither_numbers_nor_text(tmp_path, column):
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(PLAIN | {"participant": column}), tmp_path / "r.parquet")
    with pytest.raises(
        InvalidInput, match=r"r\.parquet: column participant holds .*; expected numbers, text"
    ):
        load(tmp_path / "r.parquet", Grid(3))


def test_unused_dictionary_values_are_ignored(tmp_path):
    """A table that was filtered from a larger one has such values."""
    import pyarrow
    import pyarrow.parquet

    def encode(values, rows):
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(rows, pyarrow.int32()), values)

    columns = {
        "participant": encode(["x" * 300, "Ann", "Bob"], [1, None]),
        "i": encode(["0", "?", "1"], [0, 2]),
    }
    pyarrow.parquet.write_table(pyarrow.table(PLAIN | columns), tmp_path / "r.parquet", row_group_size=1)
    read = load(tmp_path / "r.parquet", Grid(3))
    assert (read.participant.tolist(), read.i.tolist()) == (["Ann", ""], [0, 1])


def test_parquet_text_that_is_not_utf_8(tmp_path):
    import pyarrow
    import pyarrow.parquet

    bad = pyarrow.array([b"\xff\xfe", b"a"]).view(pyarrow.string())
    pyarrow.parquet.write_table(pyarrow.table(PLAIN | {"participant": bad}), tmp_path / "r.parquet")
    with pytest.raises(InvalidInput, match=r"r\.parquet cannot be read as a Parquet file \(.*\)\.$"):
        load(tmp_path / "r.parquet", Grid(3))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("column", ["participant", "image"])
def test_the_length_of_names_is_limited(tmp_path, column, ending):
    """Every row of an array is as wide as its longest name, so the length is limited when saving and loading."""
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    path, longest = tmp_path / f"r.{ending}", "é" * MAX_NAME_LENGTH
    responses = Responses(Grid(3), [0, 1], [1, 2], [1, 0], **{column: ["a", longest]})
    responses.save(path)
    assert same_rows(load(path, Grid(3)), responses)
    table = pyarrow.table({"i": [0, 0], "j": [1, 1], "same": [1, 1], column: ["a", longest + "!"]})
    if ending == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)
    line = 3 if ending == "csv" else 2
    message = rf", line {line}: column {column} is 'é+…, a name of 257 characters; expected at most 256: shorten it\.$"
    with pytest.raises(InvalidInput, match=message):
        load(path, Grid(3))
    with pytest.raises(
        InvalidInput, match=f"Column {column} holds names of at most 256 characters, got one of 257"
    ):
        Responses(Grid(3), [0], [1], [1], **{column: longest + "!"})


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_file_that_is_not_utf_8(tmp_path, encoding):
    path = write_file(tmp_path, "participant,i,j,same\nZoë,0,1,1\n", encoding=encoding)
    with pytest.raises(InvalidInput, match=r"r\.csv is not UTF-8 text; save it as CSV \(UTF-8\)"):
        load(path, Grid(3))


def test_a_missing_file(tmp_path):
    path = tmp_path / "nowhere.csv"
    with pytest.raises(NotFound) as error:
        load(path, Grid(3))
    assert str(error.value) == (
        f"No file or folder {path}; expected a CSV or Parquet file with the columns i, j, same, "
        "or a folder written by vseg export."
    )


def test_a_parquet_file_that_is_csv(tmp_path):
    with pytest.raises(InvalidInput, match=r"r\.parquet cannot be read as a Parquet file"):
        load(write_file(tmp_path, "i,j,same\n0,1,1\n", name="r.parquet"), Grid(3))


def test_a_parquet_file_without_a_required_column(tmp_path):
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "r.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"i": [0], "j": [1]}), path)
    with pytest.raises(InvalidInput, match=r"has no column 'same'; expected i, j, same, found i, j\.$"):
        load(path, Grid(3))


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_delimiters_of_spreadsheets(delimiter, tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("i,j,same\n0,1,1\n2,3,0\n".replace(",", delimiter))
    assert load(path, Grid(3)).same.tolist() == [True, False]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"PK\x03\x04\xae\xff", "a zip archive, perhaps an Excel workbook; save it as CSV"),
     ("i,j,same,who\n0,1,1,\u00e9".encode("latin-1"), "is not UTF-8 text; save it as CSV")],
)  # fmt: skip
def test_a_file_that_is_not_text(content, message, tmp_path):
    path = tmp_path / "r.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        load(path, Grid(3))


@pytest.mark.parametrize("which", [0, 1])
def test_tables_of_a_folder_with_different_columns(tmp_path, which):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.toml").write_text(STUDY)
    (tmp_path / "data").mkdir()
    for number in range(2):
        table = tmp_path / "data" / f"study-s_subject-p{number}_session-s{number}_data.csv"
        table.write_text("i,j,same,block\n0,1,1,0\n" if number == which else "i,j,same\n0,1,1\n")
    with pytest.raises(
        InvalidInput, match=f"p{which}_.* has the column 'block', but .*p{1 - which}_.* does not"
    ):
        load(tmp_path)


def test_a_number_is_not_a_layout(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("i,j,same\n0,1,1\n")
    with pytest.raises(InvalidInput, match=r"such as vseg\.Grid\(16\), got 16"):
        load(path, 16)
    with pytest.raises(NotFound, match="is a folder"):
        load(tmp_path, Grid(3))
