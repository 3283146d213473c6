"""Test the leaderboard's stored entries and its page."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from vseg import Grid, Maps, figures
from vseg.errors import InvalidInput
from vseg.evaluation.leaderboard import Leaderboard, LeaderboardEntry, _Section

SCORES = {"bits": -0.6, "low": -0.7, "high": -0.5, "normalised": 1.1, "brier": 0.1, "entropy_r": None}
REFERENCES = [
    {"name": "floor", "bits": -0.9, "answers": 50, "said": "the share of 'same'"},
    {"name": "within", "bits": None, "answers": 0, "said": "not available: nobody answered a pair twice"},
]
ENTRY = LeaderboardEntry(
    name="mine", file="a" * 64, dataset="d" * 64, dataset_name="samples", vseg="0.1.0",
    settings={"by": "pairs", "folds": 5, "seed": 0, "segments": 2}, scores=SCORES, slips=[0.1, 0.1],
    references=REFERENCES, answers=50, resampled="pairs", repeatable=True, seconds=1.5,
)  # fmt: skip


@pytest.fixture(scope="module")
def picture():
    halves = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    figure = figures.side_by_side({"coffee": {"people": halves, "mine": halves}})
    figure.set_dpi(40)
    return figure


@pytest.fixture
def board(tmp_path):
    return Leaderboard(tmp_path / "board")


def test_entries_are_stored_and_loaded(board, picture):
    assert board.entries() == []
    assert board.add(ENTRY, picture) is None
    other = replace(ENTRY, name="other", scores=SCORES | {"bits": -0.4, "high": -0.3})
    board.add(other, picture)
    assert board.entries() == [ENTRY, other]
    assert json.loads((board.folder / "leaderboard.json").read_text())["entries"][0]["file"] == "a" * 64


def test_the_same_submission_is_listed_once(board, picture):
    board.add(ENTRY, picture)
    again = replace(ENTRY, seconds=9.0)
    assert board.add(again, picture) == ENTRY
    assert board.entries() == [again]
    board.add(replace(ENTRY, file="b" * 64), picture)
    assert len(board.entries()) == 2


def test_the_page_is_one_file_without_scripts(board, picture):
    board.add(replace(ENTRY, name="<script>alert(1)</script>"), picture)
    board.add(replace(ENTRY, name="better", scores=SCORES | {"bits": -0.2, "high": -0.1}), picture)
    page = (board.folder / "index.html").read_text()
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert page.count("data:image/png;base64,") == 2
    assert page.index("better") < page.index("alert(1)")  # best first
    assert ".peek:focus .maps" in page
    _Balanced().feed(page)


def test_each_dataset_has_its_own_table(board, picture):
    board.add(ENTRY, picture)
    board.add(replace(ENTRY, dataset="e" * 64, dataset_name="other pictures"), picture)
    page = (board.folder / "index.html").read_text()
    assert page.count("<table>") == 2
    assert "<h2>other pictures</h2>" in page


@pytest.mark.parametrize("content", ["", "[]", '{"entries": [{}]}', "nothing"])
def test_a_file_that_is_not_a_leaderboard_is_refused(content, board):
    board.folder.mkdir()
    (board.folder / "leaderboard.json").write_text(content)
    with pytest.raises(InvalidInput, match="not a leaderboard"):
        board.entries()


class _Balanced(HTMLParser):
    """Check that every element is closed in the right order."""

    VOID = ("meta", "img")

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.716, -0.484, ["−0.70", "−0.65", "−0.60", "−0.55", "−0.50"]),
        (-1.04, 0.04, ["−1.0", "−0.5", "0.0"]),
        (-0.60045, -0.59965, ["−0.6004", "−0.6002", "−0.6000", "−0.5998"]),
        (-130.0, -20.0, ["−100", "−50"]),
    ],
)
def test_the_scale_of_the_intervals_has_round_numbers(low, high, expected):
    section = _Section([ENTRY], low, high)
    positions = [float(x) for x, _ in section.ticks]
    texts = [text for _, text in section.ticks]
    assert texts == expected
    for x, text in zip(positions, texts, strict=True):
        assert x == pytest.approx(float(section.x(float(text.replace("−", "-")))), abs=0.1)


def test_the_scale_is_drawn_above_the_intervals(board, picture):
    board.add(ENTRY, picture)
    page = (board.folder / "index.html").read_text()
    axis = re.search(r'<svg class="axis".*?</svg>', page, re.DOTALL).group()
    assert re.findall(r">([−\d.]+)</text>", axis) == ["−0.9", "−0.8", "−0.7", "−0.6", "−0.5"]
