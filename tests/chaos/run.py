"""Run `make chaos`: every fault many times under load, on SQLite, on PostgreSQL and in a real browser.

It ends with a table, and with exit code 1 if anything was lost, doubled or changed, a participant could not continue,
or a target of targets.py was missed. Short runs do not check the targets; options.py defines which runs are short.
"""

import os
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from chaos import page, security_counts, tabs, targets
from chaos.disks import NO_MOUNT, can_mount
from chaos.faults import BOTH, FAULTS, POSTGRESQL, SQLITE
from chaos.options import Options, parse_options
from chaos.rounds import Crowd, Outcome, Rounds
from chaos.stopping import STOPPED, Stopping
from databases import Postgres, postgres
from proxies import explain_missing, find_proxy

LONG, QUICK = Crowd(people=100, trials=60), Crowd(people=10, trials=40)


def main() -> int:
    names = sorted({*(fault.name for fault in FAULTS), *tabs.FAULTS})
    given = parse_options(sys.argv[1:], names)
    began = time.perf_counter()
    stopping = Stopping()
    try:
        outcomes = _run_rounds(given, stopping)
    except BaseException:  # any error may follow a signal: Ctrl+C also reaches the servers and the browser
        if not stopping.by:
            raise
        stopping.end_children()
        print(STOPPED, file=sys.stderr)
        return stopping.code
    return _report(outcomes, (time.perf_counter() - began) / 60, given.short)


def _run_rounds(given: Options, stopping: Stopping) -> list[Outcome]:
    """Run the requested rounds; print each result as soon as it is available."""
    began = time.perf_counter()
    outcomes: list[Outcome] = []
    with closing(_outcomes(given, stopping)) as coming:
        for outcome in coming:
            outcomes.append(outcome)
            print(f"{(time.perf_counter() - began) / 60:5.1f} min  {_line(outcome, given.short)}", flush=True)
            if len(outcomes) == 1 and not outcome.passed:
                print("The round without faults failed, so the other rounds were not run.")
                break
    return outcomes


def _report(outcomes: list[Outcome], minutes: float, short: str) -> int:
    """Print the results, write the files and return the exit code."""
    notes = security_counts.load_counts()
    missed = "" if short else targets.describe_missed(outcomes, notes)
    written = page.write(outcomes, minutes, short, notes)
    print(f"\n{page.markdown(outcomes, short)}\n\n{page.verdict(outcomes, missed)}")
    print(page.SHORT.format(short) if short else f"\n{page.numbers(outcomes, notes)}\n")
    print(f"Written to {' and '.join(map(str, written))}.")
    return 1 if missed or not all(outcome.passed or outcome.skipped for outcome in outcomes) else 0


def _line(outcome: Outcome, short: str) -> str:
    name = f"{outcome.fault}, {outcome.database}"
    if outcome.skipped:
        return f"{name}: SKIPPED, {outcome.skipped}"
    state = "passed" if outcome.passed else f"FAILED: {outcome}"
    slow = f", recovery in s: {page.recovery(outcome, short)}" if targets.is_too_slow(outcome) else ""
    done = (
        f"{page.format_count(outcome.injected, 'time')}, {page.format_count(outcome.responses, 'response')}"
    )
    return f"{name}: {done}, {state}{slow}"


def _outcomes(given: Options, stopping: Stopping) -> Generator[Outcome, None, None]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["TMPDIR"] = str(folder)  # an interrupted browser leaves a folder there
        server = stack.enter_context(postgres(fsync="on"))
        stack.callback(stopping.ignore_signals)
        crowd = QUICK if given.quick else LONG
        rounds = Rounds(crowd, folder, server, given.seed)
        mounts = can_mount()
        yield rounds.undisturbed()
        for fault in FAULTS:
            for database in fault.databases:
                if given.only not in fault.name:
                    continue
                if fault.small_disk and database == POSTGRESQL and not mounts:
                    yield Outcome(fault.name, database, skipped=NO_MOUNT)
                    continue
                if fault.behind and find_proxy(fault.behind) is None:
                    yield Outcome(fault.name, database, skipped=explain_missing(fault.behind))
                    continue
                times = min(fault.times, 2) if given.quick else fault.times
                yield rounds.run(fault.name, database, [fault] * times)
        names = [name for name in tabs.FAULTS if given.only in name]
        for database in (SQLITE,) if given.quick else BOTH:
            if names:
                yield from _in_a_browser(names, database, folder / f"tabs-{database}", server)


def _in_a_browser(names: list[str], database: str, folder: Path, postgres: Postgres) -> Iterator[Outcome]:
    from browsers import launched
    from chaos.tab_rounds import run_tab_fault
    from servers import run_server_process

    folder.mkdir()
    study = folder / "study.toml"
    url = f"sqlite:///{folder}/tabs.db" if database == SQLITE else postgres.fresh()
    study.write_text(tabs.STUDY, encoding="utf-8")
    with run_server_process(study, "--db", url) as server, launched() as browser:
        for number, name in enumerate(names):
            export = folder / f"export-{number}"
            yield run_tab_fault(name, browser, server.link("participants"), url, export, database)


if __name__ == "__main__":
    sys.exit(main())
