"""A limit on the sessions that one address may begin within a day, so that one script cannot use up a study's.

The address is that of the connection, or the one that a trusted proxy reports. It is known only if it is public: behind
a proxy that is not trusted, all participants seem to come from its address, mostly one of the local network; if it is
public, they share one limit. Addresses are kept in memory only, as hashes with a secret; with the first session after a
day all are forgotten and the secret is replaced. With several workers, each counts separately.
"""

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv4Address, ip_address, ip_network
from threading import Lock

from starlette.requests import Request

from vseg.errors import Conflict
from vseg.store.studies import StudyRow

SESSIONS_PER_PLACE, EXTRA_SESSIONS = 2, 20  # a class behind one address can take part, and come back
MAX_SOURCES = 100_000
DAY_S = 24 * 60 * 60
NOTE_INTERVAL_S = 60.0


class SourceRefused(Conflict):
    """The address of a request has begun too many sessions."""


class SourceLimit:
    """How many sessions each address has begun today, by study."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = Lock()
        self._noted: dict[int, float] = {}
        self._forget()

    def admit(self, study: StudyRow, source: str | None, since_ms: int) -> None:
        """Count a new session; raise `SourceRefused` if its address has begun too many.

        Sessions before `since_ms` do not count. If the address is unknown (None), nothing is counted.
        """
        if source is None:
            return
        with self._lock:
            if not 0 <= self._clock() - self._began_at < DAY_S:
                self._forget()
            key = study.id, since_ms, hashlib.blake2b(source.encode(), key=self._secret).digest()
            count = self._counts.pop(key, 0)
            most = SESSIONS_PER_PLACE * study.study.participants + EXTRA_SESSIONS
            self._counts[key] = min(count + 1, most)
            while len(self._counts) > MAX_SOURCES:
                self._counts.popitem(last=False)
        if count >= most:
            raise SourceRefused(
                f"{count} sessions were begun from your address within a day; come back tomorrow.", "paused"
            )

    def is_note_due(self, study: StudyRow) -> bool:
        """Return whether a refusal should be stored for the researcher; at most once a minute for each study."""
        with self._lock:
            now = self._clock()
            is_due = not 0 <= now - self._noted.get(study.id, -NOTE_INTERVAL_S) < NOTE_INTERVAL_S
            if is_due:
                self._noted[study.id] = now
            return is_due

    def _forget(self) -> None:
        self._began_at, self._secret = self._clock(), secrets.token_bytes(32)
        self._counts: OrderedDict[tuple[int, int, bytes], int] = OrderedDict()


def get_source(request: Request) -> str | None:
    """Return the public address of a request, or None; of IPv6 the network of 64 bits, which one person may have."""
    try:
        address = ip_address(request.client.host if request.client else "")
    except ValueError:
        return None
    if not address.is_global:
        return None
    if isinstance(address, IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, 64), strict=False))
