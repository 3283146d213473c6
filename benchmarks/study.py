"""Longer studies than `make bench` runs, with fixed seeds: `make study` writes docs/study.md.

`make study` runs the posterior's sections; `make study ARGS=FOLDER`, with your copy of BSDS500, also runs the study
with its annotators. `python benchmarks/study.py --only annotators FOLDER` runs one section and replaces its part of
the page; `--quick` runs a shorter version of each and writes nothing. Results per photograph are stored in
build/study, so that an interrupted run can be resumed.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))

import answers
import calibration
import groups
import kernels
import oracle
import posterior
from reproduction.annotators import METHODS, StudyResult, run_study
from reproduction.annotators.figure import draw_errors
from tables import replace_section, table
from vseg.errors import VsegWarning

ROOT = Path(__file__).parent.parent
DOCS, CHECKPOINTS = ROOT / "docs", ROOT / "build" / "study"
IMAGES, SEED, SETS, OTHER_SETS, PEOPLE = 20, 0, 200, 15, 200
TARGETS = {"aggregate": 200, "individual": 130}
HEADER = """# Studies

This page is written by `make study`, which takes most of an hour (`make bench` takes minutes). All seeds are fixed: the
same version gives the same numbers. The annotators' photographs are not part of vseg. With your own copy of BSDS500,
`make study ARGS=FOLDER` repeats the measurement, and `python -m reproduction annotators FOLDER` runs it on other
photographs or with other settings.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="your copy of BSDS500")
    parser.add_argument(
        "--only",
        metavar="SECTIONS",
        help="some of calibration,answers,accuracy,segments,trials,oracle,kernels,groups,annotators",
    )
    parser.add_argument("--quick", action="store_true", help="fewer seeds and photographs")
    parser.add_argument("--executor", default="processes", help="where the annotators' study runs")
    arguments = parser.parse_args()
    sections: dict[str, Callable[[], str]] = {
        "calibration": lambda: calibration.main(*((4, 1) if arguments.quick else (SETS, OTHER_SETS))),
        "answers": lambda: answers.main(1 if arguments.quick else 6),
        "accuracy": lambda: posterior.accuracy(2 if arguments.quick else 32),
        "segments": lambda: posterior.counting(1 if arguments.quick else 12, arguments.quick),
        "trials": lambda: posterior.fewer_trials(1 if arguments.quick else 16, arguments.quick),
        "oracle": lambda: oracle.main(2 if arguments.quick else 32),
        "kernels": lambda: kernels.main(1 if arguments.quick else 8),
        "groups": lambda: groups.main(*((32,) if arguments.quick else (PEOPLE, CHECKPOINTS / "groups"))),
        "annotators": lambda: annotators(arguments.folder, arguments.quick, arguments.executor),
    }
    wanted = (
        arguments.only.split(",")
        if arguments.only
        else [name for name in sections if _is_runnable(name, arguments.folder)]
    )
    for name in wanted:
        if name not in sections:
            parser.error(f"unknown section {name}; choose from {', '.join(sections)}")
        if not _is_runnable(name, arguments.folder):
            parser.error("the section annotators needs FOLDER, your copy of BSDS500")
    for name in wanted:
        began = time.perf_counter()
        print(f"\n--- {name} ---", flush=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VsegWarning)
            text = sections[name]()
        print(f"({name}: {time.perf_counter() - began:.0f} s)", flush=True)
        if not arguments.quick:
            replace_section(DOCS / "study.md", HEADER, name, text, list(sections))


def annotators(folder: Path, quick: bool, executor: str) -> str:
    """Measure how few trials reach the error of the paper's settings at 1024 trials, with BSDS500's annotators."""
    checkpoint = None if quick else CHECKPOINTS / "annotators"
    done = 0

    def report(steps: int) -> None:
        nonlocal done
        done += steps
        print(f"\r{done} photographs done", end="\n" if quick else "", flush=True)

    options = {"images": 2, "trials": (32, 64, 128, 256)} if quick else {"images": IMAGES}
    result = run_study(
        folder, **options, executor=executor, checkpoint=checkpoint, progress=report, seed=SEED
    )
    print()
    if not quick:
        draw_errors(result).savefig(DOCS / "pictures" / "annotators.png")
    return "\n".join([_describe(result), *(_table(result, observer) for observer in result.observers)])


def _describe(result: StudyResult) -> str:
    command = f"python -m reproduction annotators FOLDER --images {len(result.images)} --seed {result.seed}"
    return (
        "## BSDS500's annotators as observers\n\n"
        "![Error over trials for each method](pictures/annotators.png)\n\n"
        f"`{command}`: {len(result.images)} photographs of the training part, {result.grid}×{result.grid} "
        "locations. The "
        "answer to a pair is 'same' if both locations have the same label by a random annotator (aggregate), or by one "
        "annotator with 5 % lapses (individual). Errors are the mean |estimate - P(same)| over all pairs, "
        "averaged over "
        "photographs; 'as good' is the number of trials that reaches the error of the paper's settings at the largest "
        "number of trials, with a 95 % interval over photographs. The posterior assumes 5 % lapses, the individual's "
        "true share. The group prior uses four answers per location from the other annotators, which do not count as "
        "trials; image priors use the photograph, the paper's method does not. The summary of the posterior and the "
        "number of directions and the scales of its priors were chosen on five of these photographs.\n"
    )


def _table(result: StudyResult, observer: str) -> str:
    rows = []
    for name in result.methods(observer):
        errors = {
            row["trials"]: f"{row['error']:.3f}"
            for row in result.table.where(observer=observer, method=name).rows
        }
        rows.append(
            [
                METHODS[name].title,
                *(errors.get(count, "") for count in result.trials),
                result.format_trials_needed(observer, name),
            ]
        )
    title = f"{observer.capitalize()}: error by trials"
    note = f"{result.headline(observer)} Our target: {TARGETS[observer]} or fewer."
    return table(title, ["method", *map(str, result.trials), "as good"], rows, note)


def _is_runnable(name: str, folder: Path | None) -> bool:
    return name != "annotators" or folder is not None


if __name__ == "__main__":
    main()
