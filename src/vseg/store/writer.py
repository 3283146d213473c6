"""Durable appends: one thread writes, and everyone who waits shares the next commit.

`append` queues the records of one request and returns a future; the thread takes all that is queued, stores it in
one transaction and resolves the futures after the commit. So a thousand people cost a few commits a second, and
whoever is told "stored" can rely on it.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, exc, select

from vseg.errors import Conflict, InvalidInput, NotAllowed, NotFound, VsegError
from vseg.store.schema import events, responses, sessions
from vseg.store.validation import EventLimits, Insertion, find_conflicts, find_over_limit, insertion

if TYPE_CHECKING:
    from vseg.store.database import Database

MAX_ROWS_PER_COMMIT = 2000
GATHER_S = 0.004  # while many are answering, a commit waits so long for more: half as many commits
MAX_QUEUED_REQUESTS = (
    50_000  # requests; beyond, the database is too slow and the browsers keep what they have
)

# Ordered, so that two workers never wait for each other.
_ASKED = (
    select(sessions.c.id, sessions.c.status, sessions.c.token_hash)
    .where(sessions.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(sessions.c.id)
)
_SHARED, _COUNTED = _ASKED.with_for_update(read=True), _ASKED.with_for_update(key_share=True)


@dataclass(eq=False)
class WriteRequest:
    """What one request wants stored, and who waits for it."""

    session: int
    responses: list[dict[str, Any]]
    events: list[dict[str, Any]]
    token_hash: str | None = None
    limits: EventLimits | None = None
    stored: Future[None] = field(default_factory=Future)

    def __len__(self) -> int:
        return len(self.responses) + len(self.events)


class _ContradictedError(Exception):
    """Records of a batch whose numbers others have used, which undoes the batch."""

    def __init__(self, refused: dict[WriteRequest, VsegError]):
        super().__init__("other records are stored under these numbers")
        self.refused = refused


class Writer:
    """The thread that stores; it starts with the first records and ends with `close`."""

    def __init__(self, db: "Database"):
        self._db = db
        # Of responses first: where a response and an event come under one number, the response is taken.
        self._inserts = insertion(db, responses, events), insertion(db, events, responses)
        self._queue: SimpleQueue[WriteRequest | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def append(self, records: WriteRequest) -> Future[None]:
        """Queue records; the future is resolved once they are durable, or fails with the reason."""
        with self._lock:
            if self._closed:
                raise VsegError("The database is being closed; send the records again in a moment.")
            if self._queue.qsize() >= MAX_QUEUED_REQUESTS:
                raise VsegError("The database cannot keep up; send the records again in a moment.")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="vseg-writer", daemon=True)
                self._thread.start()
            self._queue.put(records)
        return records.stored

    def close(self) -> None:
        """Store what is waiting and stop."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
            self._queue.put(None)
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        rows = 0
        while (first := self._queue.get()) is not None:
            if rows > 1:
                time.sleep(GATHER_S)
            batch, rows = [first], len(first)
            while rows < MAX_ROWS_PER_COMMIT and not self._queue.empty():
                if (following := self._queue.get()) is None:
                    self._queue.put(None)  # closing: this batch first
                    break
                batch.append(following)
                rows += len(following)
            self._store([each for each in batch if each.stored.set_running_or_notify_cancel()])

    def _store(self, batch: list[WriteRequest]) -> None:
        """Commit the batch; if a row spoils it, each half by itself, until the culprit is alone."""
        if not batch:
            return
        try:
            with self._db.writing() as connection:
                refused = _write(self._inserts, connection, batch)
        except _ContradictedError as error:
            if len(batch) == 1:
                _fail(batch, error.refused[batch[0]])
                return
            # One by one, so that nobody is refused for what is itself refused; the others once more without them.
            at_odds = {each.session for each in error.refused}
            self._store([each for each in batch if each.session not in at_odds])
            for each in batch:
                if each.session in at_odds:
                    self._store([each])
        except BaseException as error:
            if not _is_about_a_record(error):  # everyone is told, and every browser sends again
                _fail(batch, _for_now(error))
            elif len(batch) == 1:
                _fail(batch, _spoiled(error))
            else:
                self._store(batch[: len(batch) // 2])
                self._store(batch[len(batch) // 2 :])
        else:
            for each in batch:
                if reason := refused.get(each):
                    each.stored.set_exception(reason)
                else:
                    each.stored.set_result(None)


def _write(
    inserts: tuple[Insertion, ...], connection: Connection, batch: list[WriteRequest]
) -> dict[WriteRequest, VsegError]:
    """Store the records of active sessions; the others are returned with the reason."""
    status, token = _locked(connection, batch)
    refused: dict[WriteRequest, VsegError] = {}
    for each in batch:
        if each.session in token and each.token_hash not in (None, token[each.session]):
            refused[each] = NotAllowed("This session goes on elsewhere, under a newer token; use that one.")
    active = [each for each in batch if status.get(each.session) == "active" and each not in refused]
    refused |= find_over_limit(connection, active)
    taken = [each for each in active if each not in refused]
    answers = [row for each in taken for row in each.responses]
    others = [row for each in taken for row in each.events]
    new = 0
    for insert, rows in zip(inserts, (answers, others), strict=True):
        if rows:
            new += insert(connection, rows)
    # Where some were there, they were sent again, or another page has used their numbers.
    if new < len(answers) + len(others) and (others_own := find_conflicts(connection, taken)):
        raise _ContradictedError(others_own)
    for each in batch:
        if each not in refused and status.get(each.session) != "active":
            if not _there(connection, each):
                refused[each] = _refusal(status.get(each.session))
            else:
                refused |= find_conflicts(connection, [each])
    return refused


def _locked(connection: Connection, batch: list[WriteRequest]) -> tuple[dict[int, str], dict[int, str]]:
    """Status and token's hash of the batch's sessions, which on PostgreSQL nobody else changes from here on.

    Answers alone need shared locks: nobody can withdraw a session between this look and our insert. With events, no
    other worker stores records of these sessions meanwhile, since they are counted.
    """
    wanted = _COUNTED if any(each.events for each in batch) else _SHARED
    found = connection.execute(wanted, {"ids": list({each.session for each in batch})}).all()
    return {row.id: row.status for row in found}, {row.id: row.token_hash for row in found}


def _there(connection: Connection, records: WriteRequest) -> bool:
    """Whether all of it was stored before: a resend after the end of a session is answered like the first time."""
    wanted = {row["seq"] for row in (*records.responses, *records.events)}
    stored: set[int] = set()
    for table in (responses, events):
        mine = select(table.c.seq).where(table.c.session == records.session, table.c.seq.in_(wanted))
        stored.update(connection.scalars(mine))
    return wanted == stored


def _refusal(status: str | None) -> VsegError:
    if status is None:
        return NotFound("There is no such session; its records cannot be stored.")
    return Conflict(f"The session is {status}; it takes no more records.", "ended")


def _is_about_a_record(error: BaseException) -> bool:
    """Whether it is what came that can't be stored; else it is the database, and the same may be stored later.

    A page gives up a record that is refused for good. So whatever is not known to be the record's own fault is not.
    """
    if isinstance(error, exc.DBAPIError):
        return isinstance(error, exc.DataError | exc.IntegrityError)
    return isinstance(error, exc.StatementError | ValueError | TypeError | OverflowError) and not isinstance(
        error, VsegError
    )


def _for_now(error: BaseException) -> VsegError:
    """The sentence for all who shall send again; of a kind that says nothing about what they sent."""
    if type(error) is VsegError:
        return error
    told = VsegError(
        f"The database could not store this now ({type(error).__name__}); send it again in a moment."
    )
    told.__cause__ = error
    return told


def _spoiled(error: BaseException) -> VsegError:
    cause = getattr(error, "orig", None) or error
    told = InvalidInput(f"The database refused a record ({type(cause).__name__}); it was not stored.")
    told.__cause__ = error
    return told


def _fail(batch: Sequence[WriteRequest], error: BaseException) -> None:
    for each in batch:
        each.stored.set_exception(error)
