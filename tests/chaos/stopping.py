"""Stop a run on Ctrl+C or SIGTERM at any moment, and leave no process behind."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STOPPED = "Stopped; nothing was written."


class Stopping:
    """Raise KeyboardInterrupt at the first signal; ignore later ones, which would interrupt the clean-up.

    It is a KeyboardInterrupt because asyncio passes on no other exception from any place.
    """

    def __init__(self) -> None:
        self.by = 0
        for number in SIGNALS:
            signal.signal(number, self._stop)

    @property
    def code(self) -> int:
        """Return the exit code that a shell reports for this signal."""
        return 128 + self.by

    def ignore_signals(self) -> None:
        """Do nothing at further signals; unlike with SIG_IGN, child processes still receive theirs."""
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)

    def end_children(self) -> None:
        """Kill child processes that were just being started when the signal came (only where /proc exists)."""
        for listed in Path("/proc/self/task").glob("*/children"):
            for pid in listed.read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        self.ignore_signals()
        self.by = number
        raise KeyboardInterrupt
