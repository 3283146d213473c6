"""Progress reports of long computations."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Progress = Callable[[int], None]
"""Called with the number of steps finished since the last call."""
StartProgress = Callable[[int], AbstractContextManager[Progress]]
"""Called with the number of all steps; the context's value is called with the steps that were finished."""


def no_progress(total: int) -> AbstractContextManager[Progress]:
    """Report no progress."""
    return nullcontext(lambda steps: None)


@contextmanager
def part_progress(progress: Progress, total: int) -> Iterator[Progress]:
    """Report the progress of one part of the work, which counts `total` steps whether it succeeds or fails.

    Parameters
    ----------
    progress : function
        Receives the steps of all parts.
    total : int
        Steps of this part. Further reports are dropped; on exit the steps that are missing are reported.
    """
    left = total

    def report(done: int) -> None:
        nonlocal left
        step = min(done, left)
        left -= step
        progress(step)

    try:
        yield report
    finally:
        progress(left)
