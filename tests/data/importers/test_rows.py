"""The forms in which jsPsych, JATOS and spreadsheets store data are all read as the same rows."""

import json

import pytest

from vseg.data.importers.rows import RunNumbers, TextFile, read_rows
from vseg.data.importers.trials import find_image_address
from vseg.errors import InvalidInput, VsegWarning

TRIALS = [{"rt": 512, "response": "f"}, {"rt": None, "response": None}]


def read(text: str, **options) -> list:
    return list(read_rows(TextFile("data", text, **options), RunNumbers()))


def test_many_results_in_one_file():
    """The time grows with their number: this took minutes when each was compared with all others."""
    results = [[{"time_elapsed": 1}, {"time_elapsed": number}] for number in range(60_000)]
    assert len(read("\n".join(map(json.dumps, results)))) == 120_000


def test_markup_without_an_address():
    """The time grows with its length: this took minutes when each tag was read to the end of the text."""
    markup = 200_000 * "<img "
    assert find_image_address(markup) == markup


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        (json.dumps(TRIALS), [1, 1]),
        (json.dumps(TRIALS, indent=2), [1, 1]),
        ("\ufeff" + json.dumps({"trials": TRIALS}), [1, 1]),
        ("\n".join(json.dumps(trial) for trial in TRIALS), [1, 1]),
        ("".join(json.dumps(trial) for trial in TRIALS), [1, 1]),
        (json.dumps([[TRIALS[0]], [TRIALS[1]]]), [1, 2]),
        (json.dumps([TRIALS[0]]) + "\n" + json.dumps([TRIALS[1]]), [1, 2]),
        (json.dumps([TRIALS[0]]) + json.dumps([TRIALS[1]]), [1, 2]),
        (json.dumps([{"trials": [TRIALS[0]]}, {"trials": [TRIALS[1]]}]), [1, 2]),
    ],
)
def test_every_form_of_json(text, runs):
    """One list, jatos.appendResultData without line breaks, one document per participant, lists of lists."""
    found = read(text)
    assert [row.cells for row in found] == TRIALS
    assert [row.run for row in found] == runs
    assert [row.source for row in found] == ["data, trial 1", "data, trial 2"]


def test_values_around_the_trials_are_added_to_each_trial():
    found = read(json.dumps([{"subject": "ann", "trials": TRIALS}, {"subject": "bo", "trials": TRIALS}]))
    assert [row.cells["subject"] for row in found] == ["ann", "ann", "bo", "bo"]


def test_a_result_that_was_stored_twice_is_read_once():
    """jatos.appendResultData followed by jatos.endStudy with all data leaves them twice in one result."""
    run = [trial | {"time_elapsed": 1000 * number} for number, trial in enumerate(TRIALS)]
    with pytest.warns(
        VsegWarning, match="data holds the same 2 trials twice, with the same times; read once"
    ):
        found = read(json.dumps(run) + json.dumps(run))
    assert [row.cells for row in found] == run


def test_csv_of_jspsych():
    """All cells are quoted, nested values are JSON, lines end in CRLF, and null is a missing answer."""
    text = '"rt","stimulus","dots"\r\n"512","img/a.png","[{""x"":1,""y"":2}]"\r\n"null","","line\nbreak"\r\n'
    first, second = read(text)
    assert first.cells == {"rt": "512", "stimulus": "img/a.png", "dots": '[{"x":1,"y":2}]'}
    assert second.cells == {"rt": "null", "dots": "line\nbreak"}
    assert (first.source, second.source) == ("data, line 2", "data, line 4")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_of_spreadsheets(delimiter):
    (row,) = read(f"x1{delimiter}same\n1.5{delimiter}1{delimiter}\n\n")
    assert row.cells == {"x1": "1.5", "same": "1"}


def test_a_decimal_comma():
    (row,) = read("x1;note\n1,5;a,b\n")
    assert row.cells == {"x1": "1.5", "note": "a,b"}


def test_a_repeated_header_is_not_a_row():
    assert len(read("a,b\n1,2\na,b\n3,4\n")) == 2


def test_extra_cells_do_not_replace_those_of_the_row():
    (row,) = read('[{"rt": 1}]', run="x", extra_cells=(("rt", 0), ("jatos_workerId", 7)))
    assert row.cells == {"rt": 1, "jatos_workerId": 7}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "data is empty; expected JSON, or CSV"),
        ('[{"rt": 1},\n{"rt": ]', "data, line 2: this is not valid JSON"),
        ('[{"rt": 1}, 7]', "data, trial 2: expected an object such as"),
        ("[" * 100_000, "data is nested too deeply"),
        ('[{"rt": ' + "9" * 5000 + "}]", "data, line 1: this is not valid JSON (a number is too long)"),
        ("a,a\n1,2\n", "data has the column 'a' twice"),
        ("a,b\n1,2,3\n", "data, line 2: 3 cells, but the header has 2 columns."),
    ],
)
def test_invalid_text(text, message):
    with pytest.raises(InvalidInput) as error:
        read(text)
    assert str(error.value).startswith(message)
