"""Show the results of `make chaos`: tables on the terminal, on an HTML page and in docs/reliability.md."""

import platform
import re
import time
from collections.abc import Sequence
from pathlib import Path

from chaos import targets
from chaos.checking import Verdict
from chaos.fault_report import FaultReport
from chaos.rounds import Outcome
from chaos.security_counts import Notes

ROOT = Path(__file__).parent.parent.parent
DOCUMENT = ROOT / "docs" / "reliability.md"
PAGE, SHORT_PAGE = ROOT / "results" / "chaos.html", ROOT / "results" / "chaos-short.html"
MARKS = "<!-- chaos -->", "<!-- end of chaos -->"
TITLE = "Fault tests"
LEAD = (
    "Faults of vseg's server, database, network and page while participants took part, and whether any answer was "
    "lost."
)
EXPLAINED = {
    "fault": "What went wrong, repeatedly, while a group of participants took part; one row per group.",
    "where": "The database, and Chromium if the fault affects the page in a real browser.",
    "passed": "No answer was lost, doubled or changed, every participant finished, the map is the same, every fault "
    "had an effect, and the server's log contains no traceback.",
    "times": "How often the fault happened and had an effect. In brackets: how many requests the network between page "
    "and server cut, slowed, doubled, lost or delayed.",
    "responses": "Acknowledged answers. The server may have stored a few more whose acknowledgement was lost.",
    "lost": "Acknowledged answers that are missing in the database or the export.",
    "doubled": "Answers that were stored more than once, and rows that nobody sent.",
    "changed": "Answers that were stored with another pair or another answer than was given.",
    "people": "How many of all participants finished. If the browser stores nothing, those count who were told what to "
    "change before the first question.",
    "map": "Whether the map from the export equals that of the same participants without faults. A dash (–) if the "
    "server chooses pairs from the answers so far, because the maps then need not be equal.",
    "recovery, s": "The longest time in seconds from the end of a fault until an answer of any participant was "
    "accepted (before the first answer: until the first session began). "
    f"The limit of {targets.RECOVERY_S:g} s applies only to SIGKILL of the server or of a worker, and only in a "
    "complete run. A dash (–) without a fault, and for faults of the page, which need no "
    "recovery of the server.",
    "gap, s": "The longest time in seconds that any participant waited between two accepted requests, including the "
    "fault itself. A dash (–) for faults of the page.",
}
COLUMNS = tuple(EXPLAINED)
SHORT = (
    "This was a short run ({}): the targets of a complete run were not checked, and the page of the last complete run "
    "and docs/reliability.md are unchanged."
)
PASSED, BLANK = "Passed:", "–"
SAME = {True: "same", False: "OTHER", None: BLANK}
OVER = {
    False: f" (NOT less than {targets.RECOVERY_S:g})",
    True: f" (over {targets.RECOVERY_S:g}, not checked in a short run)",
}
TARGET_COLUMNS = ("number", "target", "reached", "passed")


def rows(outcomes: Sequence[Outcome], short: str = "") -> list[list[str]]:
    """Return a row for each round and one for all; `short` is the command of a short run, empty for a complete one."""
    tried = [outcome for outcome in outcomes if not outcome.skipped]
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
    passed = all(each.passed for each in tried)
    return [*(_row(each, each.passed, short) for each in outcomes), _row(everything, passed, short)]


def _row(outcome: Outcome, passed: bool, short: str) -> list[str]:
    if outcome.skipped:
        return [
            outcome.fault,
            f"{outcome.database}: SKIPPED, {outcome.skipped}",
            *[""] * (len(COLUMNS) - 2),
        ]
    found = outcome.verdict
    spoilt = f" ({outcome.requests_spoilt:,})" if outcome.to_spoil else ""
    return [
        outcome.fault, outcome.database, _yes(passed),
        f"{outcome.injected:,}{spoilt}", f"{outcome.responses:,}",
        f"{found.lost:,}", f"{found.doubled + found.invented:,}", f"{found.changed:,}",
        f"{outcome.completed:,}/{outcome.people:,}",
        SAME[outcome.map_equal], recovery(outcome, short),
        f"{outcome.longest_gap_s:.2f}" if outcome.longest_gap_s else BLANK,
    ]  # fmt: skip


def recovery(outcome: Outcome, short: str) -> str:
    """Return the longest recovery time; mark one over the limit, also in a short run, which does not fail for it."""
    if not outcome.recoveries_s:
        return BLANK
    over = OVER[bool(short)] if targets.is_too_slow(outcome) else ""
    return f"{max(outcome.recoveries_s):.2f}{over}"


def _yes(passed: bool) -> str:
    return "yes" if passed else "NO"


def verdict(outcomes: Sequence[Outcome], missed: str = "") -> str:
    """Summarise the run in one sentence; `missed` lists the targets that a complete run did not reach."""
    responses = sum(outcome.responses for outcome in outcomes)
    faults = sum(outcome.injected for outcome in outcomes)
    found = f"{format_count(responses, 'response')} acknowledged under {format_count(faults, 'fault')}"
    failed = [f"{each.fault}, {each.database}" for each in outcomes if not (each.passed or each.skipped)]
    if failed:
        return f"FAILED: {found}; look at {'; '.join(failed)}."
    kept = f"{found}; none lost, doubled or changed, and every participant could continue or was told why not"
    return f"FAILED: {kept}, but not reached: {missed}." if missed else f"{PASSED} {kept}."


def format_count(number: int, noun: str) -> str:
    """Return the number with its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def markdown(outcomes: Sequence[Outcome], short: str = "") -> str:
    """Return the results as a Markdown table."""
    return _table(COLUMNS, rows(outcomes, short))


def numbers(outcomes: Sequence[Outcome], notes: Notes = targets.NONE) -> str:
    """Return the targets of a complete run and what was reached, as a Markdown table."""
    return _table(TARGET_COLUMNS, _numbers(outcomes, notes))


def write(outcomes: Sequence[Outcome], minutes: float, short: str, notes: Notes) -> list[Path]:
    """Write the page and, after a complete run, replace the table in the document; return the written files.

    A short run has a page of its own, so that it does not overwrite the page of a complete run, which takes long.
    """
    description = _describe_run(outcomes, minutes, short)
    written = SHORT_PAGE if short else PAGE
    written.parent.mkdir(exist_ok=True)
    written.write_text(html(outcomes, description, short, notes), encoding="utf-8")
    if short:
        return [written]
    document = DOCUMENT.read_text(encoding="utf-8")
    begin, end = MARKS
    parts = (
        verdict(outcomes, targets.describe_missed(outcomes, notes)),
        numbers(outcomes, notes),
        markdown(outcomes),
        f"*{description}*",
    )
    table = "\n\n".join((begin, *parts, end))
    renewed, count = re.subn(f"{begin}.*?{end}", lambda _: table, document, flags=re.DOTALL)
    assert count == 1, f"{DOCUMENT} should contain {begin} and {end} once."
    DOCUMENT.write_text(renewed, encoding="utf-8")
    return [written, DOCUMENT]


def html(outcomes: Sequence[Outcome], description: str, short: str, notes: Notes) -> str:
    """Return the page, which explains everything it shows."""
    report = FaultReport(TITLE, LEAD)
    judged = verdict(outcomes, "" if short else targets.describe_missed(outcomes, notes))
    report.text(judged, kind="note good" if judged.startswith(PASSED) else "note bad")
    if short:
        report.text(SHORT.format(short), kind="note")
    else:
        report.table(TARGET_COLUMNS, _numbers(outcomes, notes), caption="Targets of a complete run.")
    report.faults(COLUMNS, rows(outcomes, short), caption=description)
    wrong = [f"{each.fault}, {each.database}: {one}" for each in outcomes for one in each.wrong]
    if wrong:
        report.section("Unexpected events")
        report.text(*wrong)
    report.section("What the columns mean")
    report.terms(EXPLAINED)
    return report.html()


def _numbers(outcomes: Sequence[Outcome], notes: Notes) -> list[list[str]]:
    found = targets.numbers(outcomes, notes)
    return [[each.name, each.required, each.reached, _yes(each.passed)] for each in found]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _describe_run(outcomes: Sequence[Outcome], minutes: float, short: str) -> str:
    disks = sorted({outcome.how for outcome in outcomes if outcome.how})
    full = f" Full disk: {', '.join(disks)}." if disks else ""
    where = f"{platform.machine()}, Python {platform.python_version()}"
    return (
        f"{short or 'make chaos'}, {time.strftime('%Y-%m-%d')}, {_format_duration(minutes)} on {where}.{full}"
    )


def _format_duration(minutes: float) -> str:
    return format_count(round(minutes), "minute") if minutes >= 1 else "less than a minute"
