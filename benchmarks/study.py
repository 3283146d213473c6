"""What `make bench` has no time for, with held seeds: `make study`, kept in docs/study.md.

`make study` runs the posterior's sections; `make study ARGS=FOLDER`, with your copy of BSDS500, also asks its
annotators. `python benchmarks/study.py --only annotators FOLDER` runs one section and renews its part of the page;
`--quick` runs a shorter version of each and writes nothing. What was found on a photograph is kept in build/study, so
that a run that was cut goes on.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import posterior
from reproduction.annotators import METHODS, StudyResult, run
from reproduction.annotators.figure import draw_errors as drawn
from tables import renew, table
from vseg.errors import VsegWarning

ROOT = Path(__file__).parent.parent
DOCS, KEPT = ROOT / "docs", ROOT / "build" / "study"
IMAGES, SEED = 20, 0
WANTED = {"aggregate": 200, "individual": 130}
HEADER = """# Studies

Written by `make study`, which takes most of an hour where `make bench` takes minutes. All seeds are held: the same
version gives the same numbers. The annotators' photographs are not part of vseg; with a copy of BSDS500 of your own,
`make study ARGS=FOLDER` asks them again, and `python -m reproduction annotators FOLDER` any others.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="your copy of BSDS500")
    parser.add_argument("--only", metavar="SECTIONS", help="some of accuracy,segments,trials,annotators")
    parser.add_argument("--quick", action="store_true", help="fewer seeds and photographs")
    parser.add_argument("--executor", default="processes", help="where annotators are asked")
    given = parser.parse_args()
    sections: dict[str, Callable[[], str]] = {
        "accuracy": lambda: posterior.accuracy(2 if given.quick else 32),
        "segments": lambda: posterior.counting(1 if given.quick else 12, given.quick),
        "trials": lambda: posterior.fewer_trials(1 if given.quick else 16, given.quick),
        "annotators": lambda: annotators(given.folder, given.quick, given.executor),
    }
    wanted = given.only.split(",") if given.only else [name for name in sections if _can(name, given.folder)]
    for name in wanted:
        if name not in sections:
            parser.error(f"unknown section {name}; choose from {', '.join(sections)}")
        if not _can(name, given.folder):
            parser.error("the section annotators needs FOLDER, your copy of BSDS500")
    for name in wanted:
        began = time.perf_counter()
        print(f"\n--- {name} ---", flush=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VsegWarning)
            text = sections[name]()
        print(f"({name}: {time.perf_counter() - began:.0f} s)", flush=True)
        if not given.quick:
            renew(DOCS / "study.md", HEADER, name, text, list(sections))


def annotators(folder: Path, quick: bool, executor: str) -> str:
    """How few trials reach what the paper's settings reach with 1024, asking real people's segmentations."""
    kept = None if quick else KEPT / "annotators"
    done = 0

    def told(steps: int) -> None:
        nonlocal done
        done += steps
        print(f"\r{done} photographs asked", end="\n" if quick else "", flush=True)

    more = {"images": 2, "trials": (32, 64, 128, 256)} if quick else {"images": IMAGES}
    found = run(folder, **more, executor=executor, kept=kept, progress=told, seed=SEED)
    print()
    if not quick:
        drawn(found).savefig(DOCS / "pictures" / "annotators.png")
    return "\n".join([_about(found), *(_table(found, observer) for observer in found.observers)])


def _about(found: StudyResult) -> str:
    command = f"python -m reproduction annotators FOLDER --images {len(found.images)} --seed {found.seed}"
    return (
        "## Real people: BSDS500's annotators as observers\n\n"
        "![Error against trials for each method](pictures/annotators.png)\n\n"
        f"`{command}`: {len(found.images)} photographs of the training part, {found.grid}×{found.grid} locations. An "
        "answer is 'same' where both locations have one label in a random annotator (aggregate), or in one annotator "
        "with 5 % lapses (individual). Errors are mean |estimate - P(same)| over all pairs, averaged over photographs; "
        "'as good' are the trials that reach the error of the paper's settings at the most trials, with a 95 % "
        "interval over photographs. The posterior takes 5 % lapses for granted, the individual's true share. The group "
        "prior rests on four answers a location from the other annotators, which are not counted as trials; image "
        "priors know the photograph, the paper's method does not. How the posterior is summarised, how many directions "
        "and which scales its priors have were chosen on five of these photographs.\n"
    )


def _table(found: StudyResult, observer: str) -> str:
    rows = []
    for name in found.methods(observer):
        own = {
            row["trials"]: f"{row['error']:.3f}"
            for row in found.table.where(observer=observer, method=name).rows
        }
        rows.append(
            [
                METHODS[name].title,
                *(own.get(count, "") for count in found.trials),
                found.as_good(observer, name),
            ]
        )
    title = f"{observer.capitalize()}: error by trials"
    note = f"{found.headline(observer)} Wanted: {WANTED[observer]} or fewer."
    return table(title, ["method", *map(str, found.trials), "as good"], rows, note)


def _can(name: str, folder: Path | None) -> bool:
    return name != "annotators" or folder is not None


if __name__ == "__main__":
    main()
