"""`make chaos`: every fault, many times, under load, on SQLite and PostgreSQL and in a real browser.

Ends with one table, written to results/chaos.html and docs/reliability.md, and with exit code 1 if anything was lost,
doubled or changed, anybody was left without a way on, or a number of wanted.py was not reached. `--quick` is a try of a
few minutes that writes nothing and is too short for those numbers.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from chaos import page, wanted
from chaos.disks import NO_MOUNT, can_mount
from chaos.faults import FAULTS, POSTGRESQL
from chaos.rounds import Crowd, Outcome, Rounds
from databases import postgres

LONG, QUICK = Crowd(people=100, trials=60), Crowd(people=10, trials=40)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="ten people and two of each fault; nothing is written"
    )
    parser.add_argument(
        "--only", default="", metavar="WORDS", help="faults with these words; nothing is written"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the moments at which things happen")
    given = parser.parse_args()
    began = time.perf_counter()
    outcomes = []
    for outcome in _outcomes(given):
        outcomes.append(outcome)
        print(f"{(time.perf_counter() - began) / 60:5.1f} min  {_line(outcome)}", flush=True)
    print(f"\n{page.markdown(outcomes)}\n")
    missed = ""
    if not (given.quick or given.only):
        page.write(outcomes, (time.perf_counter() - began) / 60)
        print(f"{page.numbers(outcomes)}\n\nWritten to {page.PAGE} and {page.DOCUMENT}.")
        missed = wanted.missed(outcomes)
    if missed:
        print(f"NOT REACHED: {missed}.")
    return 1 if missed or not all(outcome.well or outcome.left_out for outcome in outcomes) else 0


def _line(outcome: Outcome) -> str:
    name = f"{outcome.fault}, {outcome.database}"
    if outcome.left_out:
        return f"{name}: LEFT OUT, {outcome.left_out}"
    state = "well" if outcome.well else f"NOT WELL: {outcome}"
    return f"{name}: {outcome.injected} times, {outcome.responses} responses, {state}"


def _outcomes(given: argparse.Namespace) -> Iterator[Outcome]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(postgres(fsync="on"))
        crowd = QUICK if given.quick else LONG
        rounds = Rounds(crowd, folder, server, given.seed)
        mounts = can_mount()
        yield rounds.undisturbed()
        for fault in FAULTS:
            for database in fault.databases:
                if given.only not in fault.name:
                    continue
                if fault.small_disk and database == POSTGRESQL and not mounts:
                    yield Outcome(fault.name, database, left_out=NO_MOUNT)
                    continue
                times = min(fault.times, 2) if given.quick else fault.times
                yield rounds.run(fault.name, database, [fault] * times)
        yield from _in_a_browser(given, folder / "tabs")


def _in_a_browser(given: argparse.Namespace, folder: Path) -> Iterator[Outcome]:
    from browsers import launched
    from chaos import tabs
    from chaos.tab_rounds import outcome_of
    from servers import serving

    folder.mkdir()
    study, url = folder / "study.toml", f"sqlite:///{folder}/tabs.db"
    study.write_text(tabs.STUDY, encoding="utf-8")
    names = [name for name in tabs.FAULTS if given.only in name]
    with serving(study, "--db", url) as server, launched() as browser:
        for number, name in enumerate(names):
            yield outcome_of(name, browser, server.link("participants"), url, folder / f"export-{number}")


if __name__ == "__main__":
    sys.exit(main())
