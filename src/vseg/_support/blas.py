"""Limit NumPy's and SciPy's linear algebra to one thread.

A BLAS with several threads rounds differently from one with a single thread. When all cores are busy, its threads also
wait for each other: a batch of adaptive pairs took seven times as long.
"""

import threading
from contextlib import ContextDecorator
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


class SingleBlasThread(ContextDecorator):
    """A context manager and decorator under which every BLAS of this process uses one thread.

    Uses may be nested and may overlap in several threads; the limit ends when the last of them leaves.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                _take_control()
                self._limits = _thread_controller().limit(limits=1, user_api="blas")
            self._users += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                _take_control()
                self._limits.restore_original_limits()


single_blas_thread = SingleBlasThread()


@cache
def _thread_controller() -> "ThreadpoolController":
    import scipy.linalg  # noqa: F401  load its BLAS, which numba calls, so that the controller finds it
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _take_control() -> None:
    """Let this thread set the limits of OpenBLAS: threadpoolctl ignores all threads but the first that did."""
    from threadpoolctl import OpenBLASController

    OpenBLASController.clear_controlling_thread(force=True)
