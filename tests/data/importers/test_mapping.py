"""Column mappings, and the columns that are guessed without them."""

import json

import pytest

from vseg.data.importers.mapping import complete_mappings, parse_mappings
from vseg.data.importers.rows import Row
from vseg.errors import InvalidInput

DOTS = {"x1": 1, "y1": 2, "x2": 3, "y2": 4}


def make_rows(*cells: dict) -> list[Row]:
    return [Row(row, "data.json", number, 1, "trial") for number, row in enumerate(cells, 1)]


def read_value(text: str, cells: dict) -> object:
    (mapping,) = parse_mappings([text]).values()
    return mapping.value(make_rows(cells)[0])


@pytest.mark.parametrize(
    ("text", "cells", "expected"),
    [
        ("x1=x", {"x": 3}, 3),
        ("x1=dots[0].x", {"dots": [{"x": 3}]}, 3),
        ("x1=dots[0].x", {"dots": json.dumps([{"x": 3}])}, 3),
        ("x1=dots[1][0]", {"dots": [[1, 2], [3, 4]]}, 3),
        ("x1=dots[0].x", {"dots[0].x": 7, "dots": [{"x": 3}]}, 7),
        ("x1=first.x", {"first": {"x": 3}}, 3),
        ("x1=dots[5].x", {"dots": [{"x": 3}]}, None),
        ("x1=dots[0].x", {"dots": "[object Object]"}, None),
        ("x1=dots[0].x", {"dots": "[1"}, None),
        ("rt=rt", {"rt": "null"}, None),
        ("rt=rt", {"rt": float("nan")}, None),
        ("image=:cat", {}, "cat"),
    ],
)
def test_a_mapping_finds_a_value(text, cells, expected):
    assert read_value(text, cells) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("same", "Expected a column mapping TARGET=COLUMN such as rt_ms=rt or same=response:f, got 'same'."),
        ("same=", "Expected a column mapping TARGET=COLUMN"),
        ("sme=x", "unknown target 'sme'; did you mean same? There are participant, session,"),
        ("same=response:", "a value is missing after the colon"),
        ("same=:f", "expected a column before the colon, as in same=response:f"),
        ("rt=rt:min", "expected the unit of the time after the colon, s or ms"),
        ("x1=x:3", "for one value in every row write x1=:VALUE"),
        ("different=response", "expected the values that mean 'different'"),
    ],
)
def test_invalid_mappings(text, message):
    with pytest.raises(InvalidInput) as error:
        parse_mappings([text])
    assert message in str(error.value)


def test_a_target_is_mapped_once():
    with pytest.raises(InvalidInput, match="The target rt_ms is mapped twice"):
        parse_mappings(["rt=a", "rt_ms=b"])


@pytest.mark.parametrize(
    ("cells", "target", "column"),
    [
        ({"subject": "ann"}, "participant", "subject"),
        ({"PROLIFIC_PID": "5f"}, "participant", "PROLIFIC_PID"),
        ({"stimulus": "img/cat.png"}, "image", "stimulus"),
        ({"stimulus": '<img src="a.png">'}, "image", "stimulus"),
        ({"stimulus": "<p>Welcome</p>"}, "image", None),
        ({"rt": 512.5}, "rt_ms", "rt"),
        ({"trial_index": 7}, "trial", "trial_index"),
        ({"correct": "maybe"}, "correct", None),
    ],
)
def test_columns_are_guessed(cells, target, column):
    mappings = complete_mappings({}, make_rows({**DOTS, "same": 1, **cells}))
    assert (mappings[target].column if target in mappings else None) == column


@pytest.mark.parametrize(
    "cells",
    [
        {"dots": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]},
        {"points": json.dumps([[1, 2], [3, 4]])},
        {"dot1": {"x": 1, "y": 2}, "dot2": {"x": 3, "y": 4}},
        {"dot1_x": 1, "dot1_y": 2, "dot2_x": 3, "dot2_y": 4},
    ],
)
def test_dots_are_found_in_common_columns(cells):
    (row,) = make_rows({**cells, "same": True})
    mappings = complete_mappings({}, [row])
    assert [mappings[name].value(row) for name in DOTS] == [1, 2, 3, 4]


def test_locations_are_preferred_to_coordinates_unless_these_are_mapped():
    rows = make_rows({**DOTS, "i": 0, "j": 1, "same": 1})
    assert "x1" not in complete_mappings({}, rows)
    mappings = complete_mappings(parse_mappings(["x1=x1"]), rows)
    assert "i" not in mappings
    assert mappings["y2"].column == "y2"


@pytest.mark.parametrize(
    ("texts", "cells", "message"),
    [
        (
            [],
            {"rt": 1, "answer": "f"},
            "No column gives the two dots: x1, y1, x2, y2 (in pixels or fractions), or the locations i, j, "
            "mapped as in x1=COLUMN or x1=dots[0].x nor the answer, mapped as in same=COLUMN:VALUE. "
            "Found the columns rt, answer.",
        ),
        (["x1=a"], {"a": 1, "same": 1}, "No column gives the two dots: y1, x2, y2, mapped as in y1=COLUMN"),
        (["x1=b"], {"a": 1, "same": 1}, "Column mapping x1=b: there is no column 'b'; found a, same."),
        (
            [],
            {**DOTS, "response": "f"},
            "Which answer means 'same'? The column response holds f (1): map it as same=response:VALUE",
        ),
    ],
)
def test_missing_columns(texts, cells, message):
    """The message lists the columns that were found and that are missing, and the mapping to write."""
    with pytest.raises(InvalidInput) as error:
        complete_mappings(parse_mappings(texts), make_rows(cells))
    assert str(error.value).startswith(message)
