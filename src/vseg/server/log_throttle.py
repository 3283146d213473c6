"""A log filter that writes the same message at most once every ten seconds, with the number of repetitions.

Without it, a thousand pages that retry while the database is unavailable, or a client that sends invalid requests,
would write one line per request.
"""

import logging
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable

INTERVAL_S = 10.0
MAX_MESSAGES = 1000


class LogThrottle(logging.Filter):
    """Drops a message that was logged less than `INTERVAL_S` ago."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        # When each message was last written, and how often it was dropped since.
        self._logged: OrderedDict[tuple[str, object], tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the record; if earlier ones were dropped, add their number to its message."""
        message = record.getMessage()
        key = (message, _exception_place(record))
        now = self._clock()
        written_at, dropped = self._logged.pop(key, (-INTERVAL_S, 0))
        is_due = now - written_at >= INTERVAL_S
        self._logged[key] = (now, 0) if is_due else (written_at, dropped + 1)
        while len(self._logged) > MAX_MESSAGES:
            self._logged.popitem(last=False)
        if is_due and dropped:
            record.msg, record.args = f"{message} (repeated {dropped} times since the last line)", ()
        return is_due


def _exception_place(record: logging.LogRecord) -> object:
    """Return the type of a record's exception and the line that raised it, or None without an exception."""
    if not record.exc_info or record.exc_info[2] is None:
        return None
    return record.exc_info[0], traceback.extract_tb(record.exc_info[2])[-1][:2]


LOG_THROTTLE = LogThrottle()
