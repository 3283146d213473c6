"""Compile the numerical kernels in a process of its own, so that the first maps and adaptive pairs come at once.

The process has the lowest priority: on a machine with few cores, compiling would slow down replies for a minute.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vseg._support import numba_cache
from vseg._support.subprocesses import exit_with_parent, start_python

if TYPE_CHECKING:
    from vseg.data.responses import Responses


@contextmanager
def compile_in_background() -> Iterator[None]:
    """Compile while the block lasts, which takes one core about 50 s; do nothing if the machine code is on disk."""
    if numba_cache.has_cached_kernels():
        yield
        return
    process = start_python(["-m", "vseg.server.precompile"], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        # Not kill_group: the process may have ended long ago and been reaped by os.wait in the supervisor of the
        # workers, so that its number may belong to another group. It starts no processes of its own.
        process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()


def compile_reconstruction() -> None:
    """Compile by a small penalised fit of each kind that the server needs."""
    from vseg.reconstruction import reconstruct

    for segments in (2, 3, 4):
        for smoothness in (0.0, 1.0, "auto"):
            reconstruct.reconstruct(
                _simulate_answers(segments), segments=segments, smoothness=smoothness, seed=0
            )


def compile_posterior() -> None:
    """Compile by an adaptive choice of pairs and a small posterior."""
    from vseg import adaptive, bayes

    responses = _simulate_answers(4)
    state = adaptive.State(responses.layout, segments=4, responses=responses, seed=0)
    adaptive.next_pairs(state, 2, seed=0)
    bayes.posterior(responses, segments=(2, 3), lapses="estimate", seed=0, threads=1)


def _simulate_answers(segments: int) -> "Responses":
    from vseg import designs, observers, stimuli
    from vseg.data.layout import Grid

    truth = stimuli.random_maps(Grid(6), segments=segments, entropy=0.2, seed=0)
    pairs = designs.scattered(truth.layout, segments=segments, seed=0)
    return observers.simulate(truth, pairs, blocks=3, seed=0)


if __name__ == "__main__":
    exit_with_parent()
    if hasattr(os, "nice"):  # not on Windows
        os.nice(19)
    compile_reconstruction()
    compile_posterior()
