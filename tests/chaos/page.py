"""The result as people look at it: a table on the terminal, on an HTML page, and in docs/reliability.md."""

import platform
import re
import time
from collections.abc import Sequence
from pathlib import Path

from chaos import wanted
from chaos.checking import Verdict
from chaos.rounds import Outcome
from vseg.report import Report

ROOT = Path(__file__).parent.parent.parent
DOCUMENT = ROOT / "docs" / "reliability.md"
PAGE = ROOT / "results" / "chaos.html"
MARKS = "<!-- chaos -->", "<!-- end of chaos -->"
COLUMNS = (
    "fault", "where", "times", "responses", "lost, doubled, changed", "people", "map", "recovery, s", "gap, s", "well",
)  # fmt: skip
EXPLAINED = (
    "times: that the fault was felt (and how many requests it spoilt). doubled: also rows that nobody has sent. "
    "people: how many came to the end, or saw a clear screen where that is what should come. map: from the export, "
    "against the one without faults. recovery: the longest from the end of a fault to the first answers accepted (the "
    "first session begun, where nobody had answered yet). gap: the longest that anyone waited between two."
)
SAME = {True: "same", False: "OTHER", None: ""}
WANTED = ("number", "wanted", "reached", "")


def rows(outcomes: Sequence[Outcome]) -> list[list[str]]:
    """A row a round, and one of them all."""
    tried = [outcome for outcome in outcomes if not outcome.left_out]
    everything = Outcome(
        "all", "",
        injected=sum(each.injected for each in tried),
        to_spoil=sum(each.to_spoil for each in tried),
        requests_spoilt=sum(each.requests_spoilt for each in tried),
        responses=sum(each.responses for each in tried),
        verdict=sum((each.verdict for each in tried), start=Verdict()),
        people=sum(each.people for each in tried),
        completed=sum(each.completed for each in tried),
        map_equal=all(each.map_equal is not False for each in tried),
        recoveries_s=[s for each in tried for s in each.recoveries_s],
        longest_gap_s=max(each.longest_gap_s for each in tried),
    )  # fmt: skip
    return [*map(_row, outcomes), _row(everything, well=all(each.well for each in tried))]


def _row(outcome: Outcome, well: bool | None = None) -> list[str]:
    if outcome.left_out:
        return [
            outcome.fault,
            f"{outcome.database}: LEFT OUT, {outcome.left_out}",
            *[""] * (len(COLUMNS) - 2),
        ]
    found = outcome.verdict
    spoilt = f" ({outcome.requests_spoilt})" if outcome.to_spoil else ""
    return [
        outcome.fault, outcome.database, f"{outcome.injected}{spoilt}", str(outcome.responses),
        f"{found.lost}, {found.doubled + found.invented}, {found.changed}", f"{outcome.completed}/{outcome.people}",
        SAME[outcome.map_equal],
        f"{max(outcome.recoveries_s):.2f}" if outcome.recoveries_s else "",
        f"{outcome.longest_gap_s:.2f}" if outcome.longest_gap_s else "",
        "yes" if (outcome.well if well is None else well) else "NO",
    ]  # fmt: skip


def verdict(outcomes: Sequence[Outcome]) -> str:
    """One sentence of everything."""
    responses = sum(outcome.responses for outcome in outcomes)
    faults = sum(outcome.injected for outcome in outcomes)
    found = f"{responses:,} responses acknowledged under {faults} faults"
    unwell = [f"{each.fault}, {each.database}" for each in outcomes if not (each.well or each.left_out)]
    if unwell:
        return f"NOT WELL: {found}; look at {'; '.join(unwell)}."
    return f"Well: {found}; none lost, doubled or changed, and everybody could go on or was told why not."


def markdown(outcomes: Sequence[Outcome]) -> str:
    return _table(COLUMNS, rows(outcomes))


def numbers(outcomes: Sequence[Outcome]) -> str:
    """What was wanted of the whole run, beside what was reached."""
    return _table(WANTED, _numbers(outcomes))


def write(outcomes: Sequence[Outcome], minutes: float, *, whole: bool) -> None:
    """The page; and of a whole run the table in the document, in place of the one before."""
    said = _said(outcomes, minutes)
    report = Report("Under fire", "What was done to vseg while people answered, and what was lost.")
    report.text(verdict(outcomes), kind="note")
    if whole:
        report.table(WANTED, _numbers(outcomes), caption="What the whole run has to reach.")
    report.table(COLUMNS, rows(outcomes), caption=f"{said} {EXPLAINED}")
    wrong = [f"{each.fault}, {each.database}: {one}" for each in outcomes for one in each.wrong]
    if wrong:
        report.section("What should not have been")
        report.text(*wrong)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(report.html(), encoding="utf-8")
    if not whole:
        return
    document = DOCUMENT.read_text(encoding="utf-8")
    begin, end = MARKS
    parts = (verdict(outcomes), numbers(outcomes), markdown(outcomes), f"*{said}*")
    table = "\n\n".join((begin, *parts, end))
    renewed, count = re.subn(f"{begin}.*?{end}", lambda _: table, document, flags=re.DOTALL)
    assert count == 1, f"{DOCUMENT} should hold {begin} and {end} once."
    DOCUMENT.write_text(renewed, encoding="utf-8")


def _numbers(outcomes: Sequence[Outcome]) -> list[list[str]]:
    found = wanted.numbers(outcomes)
    return [[each.what, each.wanted, each.reached, "yes" if each.well else "NO"] for each in found]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _said(outcomes: Sequence[Outcome], minutes: float) -> str:
    disks = sorted({outcome.how for outcome in outcomes if outcome.how})
    full = f" Full disk: {', '.join(disks)}." if disks else ""
    where = f"{platform.machine()}, Python {platform.python_version()}"
    return f"make chaos, {time.strftime('%Y-%m-%d')}, {minutes:.0f} minutes on {where}.{full}"
