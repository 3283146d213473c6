"""The language of --map, and what is guessed without it."""

import json

import pytest

from vseg.data.importers.mapping import complete_mappings, parse_mappings
from vseg.data.importers.rows import Row
from vseg.errors import InvalidInput

DOTS = {"x1": 1, "y1": 2, "x2": 3, "y2": 4}


def rows_of(*cells: dict) -> list[Row]:
    return [Row(one, "data.json", number, 1, "trial") for number, one in enumerate(cells, 1)]


def value(text: str, cells: dict) -> object:
    (field,) = parse_mappings([text]).values()
    return field.value(rows_of(cells)[0])


@pytest.mark.parametrize(
    ("text", "cells", "found"),
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
def test_where_a_value_is(text, cells, found):
    assert value(text, cells) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("same", "--map is TARGET=COLUMN such as rt_ms=rt or same=response:f, got 'same'."),
        ("same=", "--map is TARGET=COLUMN"),
        ("sme=x", "unknown target 'sme'; did you mean same? There are participant, session,"),
        ("same=response:", "a value is missing behind the colon"),
        ("same=:f", "name the column before the colon, as in same=response:f"),
        ("rt=rt:min", "behind the colon is the unit of the time, s or ms"),
        ("x1=x:3", "for one value in every row write x1=:VALUE"),
        ("different=response", "say what counts as different"),
    ],
)
def test_what_is_no_mapping(text, message):
    with pytest.raises(InvalidInput) as error:
        parse_mappings([text])
    assert message in str(error.value)


def test_a_target_twice():
    with pytest.raises(InvalidInput, match="--map names rt_ms twice"):
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
def test_what_is_guessed(cells, target, column):
    fields = complete_mappings({}, rows_of({**DOTS, "same": 1, **cells}))
    assert (fields[target].column if target in fields else None) == column


@pytest.mark.parametrize(
    "cells",
    [
        {"dots": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]},
        {"points": json.dumps([[1, 2], [3, 4]])},
        {"dot1": {"x": 1, "y": 2}, "dot2": {"x": 3, "y": 4}},
        {"dot1_x": 1, "dot1_y": 2, "dot2_x": 3, "dot2_y": 4},
    ],
)
def test_dots_are_found_in_common_places(cells):
    (row,) = rows_of({**cells, "same": True})
    fields = complete_mappings({}, [row])
    assert [fields[name].value(row) for name in DOTS] == [1, 2, 3, 4]


def test_locations_before_coordinates_unless_these_are_asked_for():
    rows = rows_of({**DOTS, "i": 0, "j": 1, "same": 1})
    assert "x1" not in complete_mappings({}, rows)
    fields = complete_mappings(parse_mappings(["x1=x1"]), rows)
    assert "i" not in fields
    assert fields["y2"].column == "y2"


@pytest.mark.parametrize(
    ("maps", "cells", "message"),
    [
        (
            [],
            {"rt": 1, "answer": "f"},
            "No column gives the two dots: x1, y1, x2, y2 (in pixels or fractions), or the locations i, j, as in "
            "--map x1=COLUMN or --map x1=dots[0].x nor the answer, as in --map same=COLUMN:VALUE. "
            "Found the columns rt, answer.",
        ),
        (["x1=a"], {"a": 1, "same": 1}, "No column gives the two dots: y1, x2, y2, as in --map y1=COLUMN"),
        (["x1=b"], {"a": 1, "same": 1}, "--map x1=b: there is no column 'b'; found a, same."),
        (
            [],
            {**DOTS, "response": "f"},
            "Which answer means 'same'? The column response holds f (1): write --map same=response:VALUE",
        ),
    ],
)
def test_columns_that_do_not_fit(maps, cells, message):
    """It says which columns it found, which it needs, and the --map to write."""
    with pytest.raises(InvalidInput) as error:
        complete_mappings(parse_mappings(maps), rows_of(cells))
    assert str(error.value).startswith(message)
