"""The table of evidence: what is plausible among the K that were tried, and how it prints."""

from dataclasses import dataclass

import pytest

from vseg.bayes import SegmentsTable


@dataclass(frozen=True)
class Tried:
    """As much of a cell as the table looks at."""

    segments: int
    evidence: float


@pytest.mark.parametrize(
    ("evidence", "chosen", "plausible", "said"),
    [
        ([-50, -10, -11, -13.9, -20], 3, [3, 4, 5], "3, 4, 5"),
        ([-50, -10], 3, [3], "3; more than 3 were not tried"),
        ([-11.5, -10, -10.5], 2, [2, 3, 4], "2, 3, 4; more than 4 were not tried"),
    ],
)
def test_plausible_are_only_those_that_were_tried(evidence, chosen, plausible, said):
    table = SegmentsTable(tuple(Tried(2 + at, value) for at, value in enumerate(evidence)))
    assert (table.chosen, table.plausible, table.plausible_text) == (chosen, plausible, said)
    assert table.has_untried == ("not tried" in said)


def test_a_table_prints_as_a_line_for_each_k():
    table = SegmentsTable((Tried(2, -568.4), Tried(3, -503.4), Tried(4, -505.1)))
    assert repr(table).splitlines() == [
        "<SegmentsTable: K = 3 (plausible: 3, 4; more than 4 were not tried)",
        "   K  log evidence  below the best",
        "   2        -568.4            65.0",
        "   3        -503.4             0.0  chosen",
        "   4        -505.1             1.7  plausible>",
    ]
