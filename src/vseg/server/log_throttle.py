"""A log that nobody can fill: the same words once every ten seconds, with how often they came meanwhile.

A thousand pages that all try again while the database is away, or a stranger who sends nonsense, would otherwise write
a line each.
"""

import logging
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable

EVERY_S = 10.0
MOST_WORDS = 1000


class Seldom(logging.Filter):
    """Keeps back what was logged a moment ago."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._logged: OrderedDict[tuple[str, object], tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written; if so, it tells of those that were not."""
        said = record.getMessage()
        words = (said, _where(record))
        now = self._clock()
        at, unsaid = self._logged.pop(words, (-EVERY_S, 0))
        due = now - at >= EVERY_S
        self._logged[words] = (now, 0) if due else (at, unsaid + 1)
        while len(self._logged) > MOST_WORDS:
            self._logged.popitem(last=False)
        if due and unsaid:
            record.msg, record.args = f"{said} (and {unsaid} times more before)", ()
        return due


def _where(record: logging.LogRecord) -> object:
    """What failed, and in which line, for a line of the log with an exception."""
    if not record.exc_info or record.exc_info[2] is None:
        return None
    return record.exc_info[0], traceback.extract_tb(record.exc_info[2])[-1][:2]


SELDOM = Seldom()
