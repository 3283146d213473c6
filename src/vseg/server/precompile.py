"""Compile what maps and adaptive pairs need, in a process of its own, so that the first ones need not wait for it.

It stands back behind whoever answers: on few cores a minute of compiling would be a minute of slow replies.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from vseg._support import numba_cache


@contextmanager
def compiling() -> Iterator[None]:
    """While the block lasts, unless the machine code is on disk already: some 50 s of one core, once."""
    if numba_cache.are_kept():
        yield
        return
    command = [sys.executable, "-m", "vseg.server.precompile"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """A small fit of each kind that pages ask for, a choice of pairs, and a posterior."""
    from vseg import adaptive, bayes, designs, observers, stimuli
    from vseg.data.layout import Grid
    from vseg.reconstruction import reconstruct

    if hasattr(os, "nice"):  # not on Windows
        os.nice(19)
    for segments in (2, 3, 4):
        truth = stimuli.random_maps(Grid(6), segments=segments, entropy=0.2, seed=0)
        pairs = designs.scattered(truth.layout, segments=segments, seed=0)
        answers = observers.simulate(truth, pairs, blocks=3, seed=0)
        for smoothness in (0.0, 1.0, "auto"):
            reconstruct.reconstruct(answers, segments=segments, smoothness=smoothness, seed=0)
    state = adaptive.State(truth.layout, segments=segments, responses=answers, seed=0)
    adaptive.next_pairs(state, 2, seed=0)
    bayes.posterior(answers, segments=(2, 3), lapses="estimate", seed=0, threads=1)


if __name__ == "__main__":
    main()
