"""One thread for NumPy's and SciPy's linear algebra, where the last digits or the other cores matter.

A BLAS with several threads rounds otherwise than one with a single thread, and where every core is busy its threads
wait for each other: a batch of adaptive pairs took seven times as long.
"""

import threading
from contextlib import ContextDecorator
from functools import cache
from types import TracebackType
from typing import Any


class OneThread(ContextDecorator):
    """`with one_thread:`, or `@one_thread` above a function: every BLAS of this process has one thread until the last
    who asked for it has left.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limits = _controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limits.restore_original_limits()


one_thread = OneThread()


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  its BLAS has to be there to be found; it is the one that numba calls
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
