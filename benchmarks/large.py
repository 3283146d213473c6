"""Time and memory of a large problem, in a process of its own."""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from tables import table


def main(quick: bool = False) -> str:
    size, segments, trials = (64, 8, 300_000) if quick else (256, 8, 5_000_000)
    command = [sys.executable, str(Path(__file__)), str(size), str(segments), str(trials)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    row = [
        f"{size}", f"{segments}", f"{trials:,}", f"{found['count']:.1f}", f"**{found['fit']:.1f}**",
        f"{found['sweeps']}", f"{found['accuracy']:.3f}", f"**{found['peak_gb']:.2f}**",
    ]  # fmt: skip
    columns = [
        "N",
        "K",
        "responses",
        "counting the answers, s",
        "fit, s",
        "sweeps",
        "label accuracy",
        "peak memory, GB",
    ]
    note = (
        "λ = 1, one answer per pair. The peak includes simulating the answers. Target: under 20 s and 2 GB."
    )
    return table("Large", columns, [row], note)


def _measure(size: int, segments: int, trials: int) -> dict[str, float]:
    import vseg
    from vseg.reconstruction.objective import build_objective
    from vseg.reconstruction.solvers import coordinate_descent

    layout = vseg.Grid(size)
    truth = vseg.stimuli.random_maps(layout, segments=segments, entropy=0.3, seed=0)
    warm = vseg.simulate(truth, vseg.designs.covering(layout, segments=2, seed=0), seed=0).tally()
    # Compile, build levels.
    coordinate_descent(build_objective(warm, segments, strength=1.0), seed=0, max_iterations=1)
    responses = vseg.simulate(truth, vseg.designs.covering(layout, trials=trials, seed=0), seed=1)
    began = time.thread_time()
    target = build_objective(responses.tally(), segments, strength=1.0)
    counted = time.thread_time()
    del responses
    solution = coordinate_descent(target, seed=0)
    return {
        "count": counted - began,
        "fit": time.thread_time() - counted,
        "sweeps": solution.iterations,
        "accuracy": vseg.metrics.label_accuracy(vseg.Maps(layout, solution.probabilities), truth),
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


if __name__ == "__main__":
    print(json.dumps(_measure(*map(int, sys.argv[1:4]))))
