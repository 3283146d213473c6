"""The result as people look at it: a table on the terminal, on an HTML page, and in docs/reliability.md."""

import platform
import re
import time
from collections.abc import Sequence
from pathlib import Path

from chaos import wanted
from chaos.rounds import Outcome
from vseg.report import Report

ROOT = Path(__file__).parent.parent.parent
DOCUMENT = ROOT / "docs" / "reliability.md"
PAGE = ROOT / "results" / "chaos.html"
MARKS = "<!-- chaos -->", "<!-- end of chaos -->"
COLUMNS = (
    "fault", "where", "injected", "requests spoilt", "responses", "lost", "doubled", "changed", "invented", "people",
    "came back elsewhere", "went on or clear screen", "server errors", "same map", "longest recovery, s",
    "longest gap of one person, s",
)  # fmt: skip
COUNTS = slice(2, 13)
SAME = {True: "yes", False: "NO", None: ""}
WANTED = ("number", "wanted", "reached", "")


def rows(outcomes: Sequence[Outcome]) -> list[list[str]]:
    """A row a round, and one of them all."""
    found = [_row(outcome) for outcome in outcomes]
    sums = [
        sum(int(count or 0) for count in counts)
        for counts in zip(*(row[COUNTS] for row in found), strict=True)
    ]
    same = all(outcome.map_equal is not False for outcome in outcomes if not outcome.left_out)
    longest = max((s for outcome in outcomes for s in outcome.recoveries_s), default=0.0)
    gap = max((outcome.longest_gap_s for outcome in outcomes), default=0.0)
    return [*found, ["all", "", *map(str, sums), SAME[same], f"{longest:.2f}", f"{gap:.2f}"]]


def _row(outcome: Outcome) -> list[str]:
    if outcome.left_out:
        where = f"{outcome.database}: LEFT OUT, {outcome.left_out}"
        return [outcome.fault, where, *[""] * (len(COLUMNS) - 2)]
    verdict = outcome.verdict
    spoilt = str(outcome.requests_spoilt) if outcome.to_spoil else ""
    numbers = (
        outcome.responses, verdict.lost, verdict.doubled, verdict.changed, verdict.invented, outcome.people,
        outcome.returned, outcome.completed, outcome.tracebacks,
    )  # fmt: skip
    longest = f"{max(outcome.recoveries_s):.2f}" if outcome.recoveries_s else ""
    gap = f"{outcome.longest_gap_s:.2f}" if outcome.longest_gap_s else ""
    return [
        outcome.fault, outcome.database, str(outcome.injected), spoilt, *map(str, numbers), SAME[outcome.map_equal],
        longest, gap,
    ]  # fmt: skip


def markdown(outcomes: Sequence[Outcome]) -> str:
    return _table(COLUMNS, rows(outcomes))


def numbers(outcomes: Sequence[Outcome]) -> str:
    """What was wanted of the whole run, beside what was reached."""
    return _table(WANTED, _numbers(outcomes))


def _numbers(outcomes: Sequence[Outcome]) -> list[list[str]]:
    found = wanted.numbers(outcomes)
    return [[each.what, each.wanted, each.reached, "yes" if each.well else "NO"] for each in found]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def write(outcomes: Sequence[Outcome], minutes: float) -> None:
    """The page, and the table in the document in place of the one before."""
    said = _said(outcomes, minutes)
    report = Report("Under fire", "What was done to vseg while people answered, and what was lost.")
    report.table(COLUMNS, rows(outcomes), caption=said)
    report.table(WANTED, _numbers(outcomes), caption="What the whole run had to reach.")
    wrong = [f"{each.fault}, {each.database}: {one}" for each in outcomes for one in each.wrong]
    if wrong:
        report.section("What should not have been")
        report.text(*wrong)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(report.html(), encoding="utf-8")
    document = DOCUMENT.read_text(encoding="utf-8")
    begin, end = MARKS
    table = f"{begin}\n{markdown(outcomes)}\n\n*{said}*\n\n{numbers(outcomes)}\n{end}"
    renewed, count = re.subn(f"{begin}.*?{end}", lambda _: table, document, flags=re.DOTALL)
    assert count == 1, f"{DOCUMENT} should hold {begin} and {end} once."
    DOCUMENT.write_text(renewed, encoding="utf-8")


def _said(outcomes: Sequence[Outcome], minutes: float) -> str:
    disks = sorted({outcome.how for outcome in outcomes if outcome.how})
    full = f" Full disk: {', '.join(disks)}." if disks else ""
    where = f"{platform.machine()}, Python {platform.python_version()}"
    return f"make chaos, {time.strftime('%Y-%m-%d')}, {minutes:.0f} minutes on {where}.{full}"
