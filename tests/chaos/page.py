"""The result as people look at it: a table on the terminal, on an HTML page, and in docs/reliability.md."""

import platform
import re
import time
from collections.abc import Sequence
from pathlib import Path

from chaos import wanted
from chaos.checking import Verdict
from chaos.counted import Notes
from chaos.rounds import Outcome
from vseg.report import Report

ROOT = Path(__file__).parent.parent.parent
DOCUMENT = ROOT / "docs" / "reliability.md"
PAGE = ROOT / "results" / "chaos.html"
MARKS = "<!-- chaos -->", "<!-- end of chaos -->"
TITLE = "Fault tests"
LEAD = (
    "What was done to vseg's server, database, network and page while people took part, and whether any answer was "
    "lost."
)
EXPLAINED = {
    "fault": "What was done, again and again, while a crowd took part from beginning to end; a row is a crowd.",
    "where": "The database; and Chromium, where the fault is one of the page in a real browser.",
    "passed": "Nothing lost, doubled or changed, everybody at the end, the map the same, every fault felt, and no "
    "unforeseen error in the server's log.",
    "times": "How often it was done and felt. In brackets: how many requests the network between page and server cut, "
    "slowed, doubled, lost or held back.",
    "responses": "Answers of which the server said that it has them. Some may be stored that no page was told of.",
    "lost": "Acknowledged answers that the database or the export does not have.",
    "doubled": "Answers that are there more than once, and rows that nobody has sent.",
    "changed": "Answers that are there with another pair or another answer than was given.",
    "people": "How many came to the end, or saw a clear screen where that is what should come, of how many.",
    "map": "The map from the export, beside that of the same crowd without faults. – where pairs are chosen from the "
    "answers so far, so that no two maps need be equal.",
    "recovery, s": "The longest, in seconds, from the end of a fault to the first answers accepted, of anybody (to the "
    "first session begun, where nobody had one yet). – without a fault, and for faults of the page, where the server "
    "has nothing to recover from.",
    "gap, s": "The longest, in seconds, that any one person waited between two requests of theirs that were accepted, "
    "with the fault itself in it. – for faults of the page.",
}
COLUMNS = tuple(EXPLAINED)
SHORT = (
    "This was a short run ({}): the numbers that the whole of make chaos has to reach were not judged, and "
    "docs/reliability.md was left alone."
)
BLANK = "–"
SAME = {True: "same", False: "OTHER", None: BLANK}
WANTED = ("number", "wanted", "reached", "passed")


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
        outcome.fault, outcome.database, _yes(outcome.well if well is None else well),
        f"{outcome.injected}{spoilt}", str(outcome.responses),
        str(found.lost), str(found.doubled + found.invented), str(found.changed),
        f"{outcome.completed}/{outcome.people}",
        SAME[outcome.map_equal], _recovery(outcome),
        f"{outcome.longest_gap_s:.2f}" if outcome.longest_gap_s else BLANK,
    ]  # fmt: skip


def _recovery(outcome: Outcome) -> str:
    """Marked where it was too long, also in a short run, which does not fail for it."""
    if not outcome.recoveries_s:
        return BLANK
    over = f" (NOT less than {wanted.RECOVERY_S:g})" if wanted.too_slow(outcome) else ""
    return f"{max(outcome.recoveries_s):.2f}{over}"


def _yes(well: bool) -> str:
    return "yes" if well else "NO"


def verdict(outcomes: Sequence[Outcome], missed: str = "") -> str:
    """One sentence of everything; `missed` are the numbers that a whole run has not reached."""
    responses = sum(outcome.responses for outcome in outcomes)
    faults = sum(outcome.injected for outcome in outcomes)
    found = f"{counted(responses, 'response')} acknowledged under {counted(faults, 'fault')}"
    failed = [f"{each.fault}, {each.database}" for each in outcomes if not (each.well or each.left_out)]
    if failed:
        return f"FAILED: {found}; look at {'; '.join(failed)}."
    kept = f"{found}; none lost, doubled or changed, and everybody could go on or was told why not"
    return f"FAILED: {kept}, but not reached: {missed}." if missed else f"Passed: {kept}."


def counted(number: int, noun: str) -> str:
    """With the noun as the number wants it."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def markdown(outcomes: Sequence[Outcome]) -> str:
    return _table(COLUMNS, rows(outcomes))


def numbers(outcomes: Sequence[Outcome], notes: Notes = wanted.NONE) -> str:
    """What was wanted of the whole run, beside what was reached."""
    return _table(WANTED, _numbers(outcomes, notes))


def write(outcomes: Sequence[Outcome], minutes: float, short: str, notes: Notes) -> None:
    """The page; and of a whole run, which no options made short, the table in the document, in place of the last."""
    said = _said(outcomes, minutes, short)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(html(outcomes, said, short, notes), encoding="utf-8")
    if short:
        return
    document = DOCUMENT.read_text(encoding="utf-8")
    begin, end = MARKS
    parts = (
        verdict(outcomes, wanted.missed(outcomes, notes)),
        numbers(outcomes, notes),
        markdown(outcomes),
        f"*{said}*",
    )
    table = "\n\n".join((begin, *parts, end))
    renewed, count = re.subn(f"{begin}.*?{end}", lambda _: table, document, flags=re.DOTALL)
    assert count == 1, f"{DOCUMENT} should hold {begin} and {end} once."
    DOCUMENT.write_text(renewed, encoding="utf-8")


def html(outcomes: Sequence[Outcome], said: str, short: str, notes: Notes) -> str:
    """For whoever has not read anything else."""
    report = Report(TITLE, LEAD)
    report.text(verdict(outcomes, "" if short else wanted.missed(outcomes, notes)), kind="note")
    if short:
        report.text(SHORT.format(short), kind="note")
    else:
        report.table(WANTED, _numbers(outcomes, notes), caption="What the whole run has to reach.")
    report.table(COLUMNS, rows(outcomes), caption=said)
    wrong = [f"{each.fault}, {each.database}: {one}" for each in outcomes for one in each.wrong]
    if wrong:
        report.section("What should not have been")
        report.text(*wrong)
    report.section("What the columns mean")
    report.terms(EXPLAINED)
    return report.html()


def _numbers(outcomes: Sequence[Outcome], notes: Notes) -> list[list[str]]:
    found = wanted.numbers(outcomes, notes)
    return [[each.what, each.wanted, each.reached, _yes(each.well)] for each in found]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _said(outcomes: Sequence[Outcome], minutes: float, short: str) -> str:
    disks = sorted({outcome.how for outcome in outcomes if outcome.how})
    full = f" Full disk: {', '.join(disks)}." if disks else ""
    what = f"tests/chaos/run.py {short}" if short else "make chaos"
    where = f"{platform.machine()}, Python {platform.python_version()}"
    return f"{what}, {time.strftime('%Y-%m-%d')}, {_lasting(minutes)} on {where}.{full}"


def _lasting(minutes: float) -> str:
    return counted(round(minutes), "minute") if minutes >= 1 else "less than a minute"
