"""Speed and reliability of vseg against the paper's algorithm, in one run: `make bench`.

Times are CPU seconds of one thread unless stated otherwise; compilation is excluded and reported separately. `python
benchmarks/run.py single batch` runs some of them and replaces their part of docs/benchmarks.md; `--quick` runs a
shorter version of each and writes nothing.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))

import adapting
import collecting
import dashboard
import exporting
import lapsing
import large
import live
import minima
import modelling
import nuts
import posterior
import recovery
import startup
import sweeping
from tables import TARGETS_MISSED, replace_section

ROOT = Path(__file__).parent.parent
LONG = ("nuts", "soaking")  # run only if named
RESULTS = ROOT / "docs" / "benchmarks.md"
HEADER = """# Benchmarks

Written by `make bench`. Machines differ, so compare ratios rather than seconds. Times are CPU seconds of one thread
unless stated otherwise, without compilation (which is reported at the end). The paper's algorithm is Algorithm 1 in
PyTorch: autograd, exponentiated gradient, float32, one thread, at the best of seven fixed learning rates, timed until
it is within 1e-4 of its local minimum. Ours is timed for the whole call, including the coarse-to-fine start and the
stopping rule, and must also end within 1e-4 of its minimum. A target is the value that we set out to reach; what was
measured may be better or worse.
"""


def main() -> None:
    sections = {
        "single": _single, "batch": _batch, "live": live.main, "large": large.main, "minima": minima.main,
        "collecting": collecting.main, "adapting": adapting.main, "exporting": exporting.main,
        "dashboard": dashboard.main,
        "posterior": posterior.main, "nuts": nuts.main, "lapsing": lapsing.main,
        "modelling": modelling.main, "recovery": recovery.main,
        "sweeping": sweeping.main, "startup": startup.main, "soaking": collecting.soak,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"some of: {', '.join(sections)}")
    parser.add_argument("--quick", action="store_true", help="fewer seeds, smaller problems")
    arguments = parser.parse_args()
    unknown = set(arguments.sections) - set(sections)
    if unknown:
        parser.error(f"unknown section {', '.join(unknown)}; choose from {', '.join(sections)}")
    missed = []
    for name in arguments.sections or (section for section in sections if section not in LONG):
        began = time.perf_counter()
        print(f"\n--- {name} ---", flush=True)
        text = sections[name](quick=arguments.quick)
        print(f"({name}: {time.perf_counter() - began:.0f} s)", flush=True)
        if not arguments.quick:
            replace_section(RESULTS, HEADER, name, text, list(sections))
        if TARGETS_MISSED in text:
            missed.append(name)
    if missed:
        sys.exit(f"Targets missed in: {', '.join(missed)}; see the last sentence of each section.")


def _single(quick: bool) -> str:
    import single  # needs PyTorch

    return single.main(quick=quick)


def _batch(quick: bool) -> str:
    import batch  # needs PyTorch

    return batch.main(quick=quick)


if __name__ == "__main__":
    main()
