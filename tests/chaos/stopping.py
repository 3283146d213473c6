"""A run that may be stopped by Ctrl+C or SIGTERM at any moment, and leaves nothing running behind."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STOPPED = "Stopped; nothing was written."


class Stopping:
    """Either signal interrupts what is under way, once: another one would interrupt the cleaning up.

    A KeyboardInterrupt, since asyncio hands on no other exception from wherever it comes.
    """

    def __init__(self) -> None:
        self.by = 0
        for number in SIGNALS:
            signal.signal(number, self._stop)

    @property
    def code(self) -> int:
        """What a shell says of a program that this signal has ended."""
        return 128 + self.by

    def no_longer(self) -> None:
        """From here on signals change nothing. Unlike ignored ones, those of programs that we start still do."""
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)

    def end_children(self) -> None:
        """Whoever was just being started when the signal came, and belongs to nobody yet (where /proc tells)."""
        for listed in Path("/proc/self/task").glob("*/children"):
            for pid in listed.read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        self.no_longer()
        self.by = number
        raise KeyboardInterrupt
