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
from chaos.sheet import FaultReport

ROOT = Path(__file__).parent.parent.parent
DOCUMENT = ROOT / "docs" / "reliability.md"
PAGE, SHORT_PAGE = ROOT / "results" / "chaos.html", ROOT / "results" / "chaos-short.html"
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
    "responses": "Answers that the server said it has. It may have a few more, of which a lost reply has told nobody.",
    "lost": "Acknowledged answers that the database or the export does not have.",
    "doubled": "Answers that are there more than once, and rows that nobody has sent.",
    "changed": "Answers that are there with another pair or another answer than was given.",
    "people": "How many of all came to the end. Where the browser keeps nothing, those count who were told what to "
    "change before anything was asked.",
    "map": "The map from the export, beside that of the same crowd without faults. A dash (–) where the server chooses "
    "pairs from the answers so far: no two maps need be equal then.",
    "recovery, s": "The longest, in seconds, from the end of a fault to the first answers accepted, of anybody (to the "
    "first session begun, where nobody had one yet). "
    f"The limit of {wanted.RECOVERY_S:g} s concerns SIGKILL of the server or of a worker only, and only a whole run is "
    "judged by it. A dash (–) without a fault, and for faults of the page, where the server has nothing to recover "
    "from.",
    "gap, s": "The longest, in seconds, that any one person waited between two requests of theirs that were accepted, "
    "with the fault itself in it. A dash (–) for faults of the page.",
}
COLUMNS = tuple(EXPLAINED)
SHORT = (
    "This was a short run ({}): the numbers that a whole run has to reach were not judged, and the page of the last "
    "whole run and docs/reliability.md stay as they were."
)
PASSED, BLANK = "Passed:", "–"
SAME = {True: "same", False: "OTHER", None: BLANK}
OVER = {
    False: f" (NOT less than {wanted.RECOVERY_S:g})",
    True: f" (over {wanted.RECOVERY_S:g}, not judged in a short run)",
}
WANTED = ("number", "wanted", "reached", "passed")


def rows(outcomes: Sequence[Outcome], short: str = "") -> list[list[str]]:
    """A row a round, and one of them all; `short` is the command of a short run."""
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
    well = all(each.well for each in tried)
    return [*(_row(each, each.well, short) for each in outcomes), _row(everything, well, short)]


def _row(outcome: Outcome, well: bool, short: str) -> list[str]:
    if outcome.left_out:
        return [
            outcome.fault,
            f"{outcome.database}: LEFT OUT, {outcome.left_out}",
            *[""] * (len(COLUMNS) - 2),
        ]
    found = outcome.verdict
    spoilt = f" ({outcome.requests_spoilt:,})" if outcome.to_spoil else ""
    return [
        outcome.fault, outcome.database, _yes(well),
        f"{outcome.injected:,}{spoilt}", f"{outcome.responses:,}",
        f"{found.lost:,}", f"{found.doubled + found.invented:,}", f"{found.changed:,}",
        f"{outcome.completed:,}/{outcome.people:,}",
        SAME[outcome.map_equal], recovery(outcome, short),
        f"{outcome.longest_gap_s:.2f}" if outcome.longest_gap_s else BLANK,
    ]  # fmt: skip


def recovery(outcome: Outcome, short: str) -> str:
    """Marked where it was too long, also in a short run, which does not fail for it."""
    if not outcome.recoveries_s:
        return BLANK
    over = OVER[bool(short)] if wanted.too_slow(outcome) else ""
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
    return f"FAILED: {kept}, but not reached: {missed}." if missed else f"{PASSED} {kept}."


def counted(number: int, noun: str) -> str:
    """With the noun as the number wants it."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def markdown(outcomes: Sequence[Outcome], short: str = "") -> str:
    return _table(COLUMNS, rows(outcomes, short))


def numbers(outcomes: Sequence[Outcome], notes: Notes = wanted.NONE) -> str:
    """What was wanted of the whole run, beside what was reached."""
    return _table(WANTED, _numbers(outcomes, notes))


def write(outcomes: Sequence[Outcome], minutes: float, short: str, notes: Notes) -> list[Path]:
    """The page; and of a whole run the table in the document, in place of the last. The files that were written.

    A short run has a page of its own, so that the one of a whole run, which takes long, stays.
    """
    said = _said(outcomes, minutes, short)
    written = SHORT_PAGE if short else PAGE
    written.parent.mkdir(exist_ok=True)
    written.write_text(html(outcomes, said, short, notes), encoding="utf-8")
    if short:
        return [written]
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
    return [written, DOCUMENT]


def html(outcomes: Sequence[Outcome], said: str, short: str, notes: Notes) -> str:
    """For whoever has not read anything else."""
    sheet = FaultReport(TITLE, LEAD)
    judged = verdict(outcomes, "" if short else wanted.missed(outcomes, notes))
    sheet.text(judged, kind="note good" if judged.startswith(PASSED) else "note bad")
    if short:
        sheet.text(SHORT.format(short), kind="note")
    else:
        sheet.table(WANTED, _numbers(outcomes, notes), caption="What the whole run has to reach.")
    sheet.faults(COLUMNS, rows(outcomes, short), caption=said)
    wrong = [f"{each.fault}, {each.database}: {one}" for each in outcomes for one in each.wrong]
    if wrong:
        sheet.section("What should not have been")
        sheet.text(*wrong)
    sheet.section("What the columns mean")
    sheet.terms(EXPLAINED)
    return sheet.html()


def _numbers(outcomes: Sequence[Outcome], notes: Notes) -> list[list[str]]:
    found = wanted.numbers(outcomes, notes)
    return [[each.what, each.wanted, each.reached, _yes(each.well)] for each in found]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _said(outcomes: Sequence[Outcome], minutes: float, short: str) -> str:
    disks = sorted({outcome.how for outcome in outcomes if outcome.how})
    full = f" Full disk: {', '.join(disks)}." if disks else ""
    where = f"{platform.machine()}, Python {platform.python_version()}"
    return f"{short or 'make chaos'}, {time.strftime('%Y-%m-%d')}, {_lasting(minutes)} on {where}.{full}"


def _lasting(minutes: float) -> str:
    return counted(round(minutes), "minute") if minutes >= 1 else "less than a minute"
