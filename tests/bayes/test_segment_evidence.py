"""The table of evidence: which K are plausible among those that were tried, and how it prints."""

from dataclasses import dataclass

import pytest

from vseg.bayes import SegmentsTable


@dataclass(frozen=True)
class Fit:
    """The part of a LaplaceFit that the table uses."""

    segments: int
    evidence: float


@pytest.mark.parametrize(
    ("evidence", "chosen", "plausible", "text"),
    [
        ([-50, -10, -11, -13.9, -20], 3, [3, 4, 5], "3, 4, 5"),
        ([-50, -10], 3, [3], "3; more than 3 were not tried"),
        ([-11.5, -10, -10.5], 2, [2, 3, 4], "2, 3, 4; more than 4 were not tried"),
    ],
)
def test_only_tried_k_are_plausible(evidence, chosen, plausible, text):
    table = SegmentsTable(tuple(Fit(2 + at, value) for at, value in enumerate(evidence)))
    assert (table.chosen, table.plausible, table.plausible_text) == (chosen, plausible, text)
    assert table.has_untried == ("not tried" in text)


def test_a_table_prints_as_a_line_for_each_k():
    table = SegmentsTable((Fit(2, -568.4), Fit(3, -503.4), Fit(4, -505.1)))
    assert repr(table).splitlines() == [
        "<SegmentsTable: K = 3 (plausible: 3, 4; more than 4 were not tried)",
        "   K  log evidence  below the best",
        "   2        -568.4            65.0",
        "   3        -503.4             0.0  chosen",
        "   4        -505.1             1.7  plausible>",
    ]
