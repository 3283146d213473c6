"""Store records durably: one thread writes, and all requests that wait share the next commit.

`Writer.append` queues the records of one request and returns a future. The thread takes everything that is queued,
stores it in one transaction and resolves the futures after the commit. So a thousand participants cost only a few
commits per second, and an acknowledged record is on the disk.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Table,
    bindparam,
    column,
    exc,
    exists,
    func,
    select,
)

from vseg.errors import Conflict, InvalidInput, NotAllowed, NotFound, VsegError
from vseg.store.conflicts import EventLimits, Row, find_conflicts, find_over_limit
from vseg.store.schema import events, responses, sessions

if TYPE_CHECKING:
    from vseg.store.database import Database

MAX_ROWS_PER_COMMIT = 2000
GATHER_S = 0.004  # under load, a commit waits this long for more records, which halves the number of commits
MAX_QUEUED_REQUESTS = (
    50_000  # with more, requests are refused; the pages keep their records and send them again
)

GAVE_UP = "Records could not be stored because of an error; send them again in a moment."
log = logging.getLogger("vseg.store")

# Ordered, so that two workers never deadlock.
_SELECT_SESSIONS = (
    select(sessions.c.id, sessions.c.status, sessions.c.token_hash)
    .where(sessions.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(sessions.c.id)
)
_LOCK_SHARED = _SELECT_SESSIONS.with_for_update(read=True)
_LOCK_EXCLUSIVE = _SELECT_SESSIONS.with_for_update(key_share=True)

InsertRows = Callable[[Connection, list[Row]], int]
"""Stores rows and returns how many of them were new."""


@dataclass(eq=False)
class WriteRequest:
    """The records that one request wants to store, and the future that tells when they are stored."""

    session: int
    responses: list[Row]
    events: list[Row]
    token_hash: str | None = None
    limits: EventLimits | None = None
    stored: Future[None] = field(default_factory=Future)

    def __len__(self) -> int:
        return len(self.responses) + len(self.events)


class _ConflictingRecordsError(Exception):
    """Rolls back a batch in which some record numbers are already used by other records."""

    def __init__(self, refused: dict[WriteRequest, VsegError]):
        super().__init__("other records are stored with these numbers")
        self.refused = refused


class Writer:
    """The thread that stores records; it starts with the first records and stops with `close`."""

    def __init__(self, db: "Database"):
        self._db = db
        # Responses first: if a response and an event come with the same number, the response is stored.
        self._inserts = _prepare_insert(db, responses, events), _prepare_insert(db, events, responses)
        self._queue: SimpleQueue[WriteRequest | None] = SimpleQueue()
        self._pending: set[WriteRequest] = set()  # not resolved yet, whether they are in the queue or not
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = self._is_dying = False

    def append(self, request: WriteRequest) -> Future[None]:
        """Queue records; the future is resolved once they are durable, or fails with the reason."""
        with self._lock:
            if self._closed:
                raise VsegError("The database is being closed; send the records again in a moment.")
            if self._queue.qsize() >= MAX_QUEUED_REQUESTS:
                raise VsegError("The database is overloaded; send the records again in a moment.")
            self._start()
            self._pending.add(request)
            request.stored.add_done_callback(lambda _: self._pending.discard(request))
            self._queue.put(request)
        return request.stored

    def ensure_running(self) -> None:
        """Replace the thread if it has died, and fail what it had taken; `VsegError` if there can be no thread."""
        with self._lock:
            if self._thread is not None:
                self._start()

    def _start(self) -> None:
        """Start the thread, or another one if it has died; the caller holds the lock."""
        if self._thread is not None and self._thread.is_alive() and not self._is_dying:
            return
        if self._thread is not None:
            log.error("The thread that stores records has died; another one replaces it.")
            self._give_up()
        thread = threading.Thread(target=self._run, name="vseg-writer", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise VsegError(f"There can be no thread that stores records: {error}.") from error
        self._thread, self._is_dying = thread, False

    def close(self) -> None:
        """Store the queued records and stop."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
            self._queue.put(None)
        if thread is not None:
            thread.join()
        with self._lock:
            self._give_up()  # if the thread has died

    def _give_up(self) -> None:
        """Fail all requests: their pages send the records again, and what was stored is not stored twice."""
        for request in list(self._pending):
            if not request.stored.done():
                request.stored.set_exception(VsegError(GAVE_UP))

    def _run(self) -> None:
        """Store what is queued until `close`; whatever happens to one batch, the next one is stored."""
        is_closed = False
        while not is_closed:
            try:
                self._store_batches()
                is_closed = True
            except Exception:
                log.exception(GAVE_UP)
                with self._lock:
                    self._give_up()
            except BaseException:
                with self._lock:  # so that no request is queued that this thread will not take
                    self._give_up()
                    self._is_dying = True
                raise

    def _store_batches(self) -> None:
        rows = 0
        while (first := self._queue.get()) is not None:
            if rows > 1:
                time.sleep(GATHER_S)
            batch, rows = [first], len(first)
            while rows < MAX_ROWS_PER_COMMIT and not self._queue.empty():
                if (following := self._queue.get()) is None:
                    self._queue.put(None)  # stop after this batch
                    break
                batch.append(following)
                rows += len(following)
            self._store([request for request in batch if _is_wanted(request)])

    def _store(self, batch: list[WriteRequest]) -> None:
        """Commit a batch; if a row makes it fail, commit each half by itself until the bad request is alone."""
        if not batch:
            return
        try:
            with self._db.writing() as connection:
                refused = _write(self._inserts, connection, batch)
        except _ConflictingRecordsError as error:
            if len(batch) == 1:
                _fail(batch, error.refused[batch[0]])
                return
            # The sessions in conflict one request at a time, so that none is refused because of records that are
            # refused themselves; all other sessions again without them.
            conflicting = {request.session for request in error.refused}
            self._store([request for request in batch if request.session not in conflicting])
            for request in batch:
                if request.session in conflicting:
                    self._store([request])
        except BaseException as error:
            if not _is_caused_by_record(error):  # all requests fail, and every page sends its records again
                _fail(batch, _unavailable_error(error))
            elif len(batch) == 1:
                _fail(batch, _rejected_error(error))
            else:
                self._store(batch[: len(batch) // 2])
                self._store(batch[len(batch) // 2 :])
        else:
            for request in batch:
                if reason := refused.get(request):
                    request.stored.set_exception(reason)
                else:
                    request.stored.set_result(None)


def _write(
    inserts: tuple[InsertRows, ...], connection: Connection, batch: list[WriteRequest]
) -> dict[WriteRequest, VsegError]:
    """Store the records of active sessions; return the requests that are refused, with the error for each."""
    status, token_hash = _lock_sessions(connection, batch)
    refused: dict[WriteRequest, VsegError] = {}
    for request in batch:
        expected = token_hash.get(request.session)
        if expected is not None and request.token_hash not in (None, expected):
            refused[request] = NotAllowed(
                "This session was continued elsewhere and has a newer token; use that one."
            )
    active = [
        request for request in batch if status.get(request.session) == "active" and request not in refused
    ]
    refused |= find_over_limit(connection, active)
    accepted = [request for request in active if request not in refused]
    response_rows = [row for request in accepted for row in request.responses]
    event_rows = [row for request in accepted for row in request.events]
    new = 0
    for insert, rows in zip(inserts, (response_rows, event_rows), strict=True):
        if rows:
            new += insert(connection, rows)
    # If some were already stored, they were sent again, or another page has used their numbers.
    if new < len(response_rows) + len(event_rows) and (conflicts := find_conflicts(connection, accepted)):
        raise _ConflictingRecordsError(conflicts)
    for request in batch:
        if request not in refused and status.get(request.session) != "active":
            if not _is_stored(connection, request):
                refused[request] = _inactive_error(status.get(request.session))
            else:
                refused |= find_conflicts(connection, [request])
    return refused


def _lock_sessions(
    connection: Connection, batch: list[WriteRequest]
) -> tuple[dict[int, str], dict[int, str]]:
    """Lock the sessions of a batch (on PostgreSQL) and return their status and token hash.

    Responses need a shared lock only: it keeps a session from being withdrawn before the insert. Events are counted,
    so with events no other worker may store records of these sessions meanwhile.
    """
    query = _LOCK_EXCLUSIVE if any(request.events for request in batch) else _LOCK_SHARED
    rows = connection.execute(query, {"ids": list({request.session for request in batch})}).all()
    return {row.id: row.status for row in rows}, {row.id: row.token_hash for row in rows}


def _is_stored(connection: Connection, request: WriteRequest) -> bool:
    """Return whether all record numbers are stored: sending again after the end of a session succeeds like before."""
    seqs = {row["seq"] for row in (*request.responses, *request.events)}
    stored: set[int] = set()
    for table in (responses, events):
        query = select(table.c.seq).where(table.c.session == request.session, table.c.seq.in_(seqs))
        stored.update(connection.scalars(query))
    return seqs == stored


def _inactive_error(status: str | None) -> VsegError:
    if status is None:
        return NotFound("There is no such session; its records cannot be stored.")
    return Conflict(f"The session is {status}; it accepts no more records.", "ended")


def _is_caused_by_record(error: BaseException) -> bool:
    """Return whether a record itself cannot be stored, as opposed to a failure of the database.

    A page gives up a record that is refused for this reason; so in doubt it is the database.
    """
    if isinstance(error, exc.DBAPIError):
        return isinstance(error, exc.DataError | exc.IntegrityError)
    return isinstance(error, exc.StatementError | ValueError | TypeError | OverflowError) and not isinstance(
        error, VsegError
    )


def _unavailable_error(error: BaseException) -> VsegError:
    """Return the error for requests that should be sent again; its type says nothing about the records."""
    if type(error) is VsegError:
        return error
    reported = VsegError(
        f"The database could not store this now ({type(error).__name__}); send it again in a moment."
    )
    reported.__cause__ = error
    return reported


def _rejected_error(error: BaseException) -> VsegError:
    cause = getattr(error, "orig", None) or error
    reported = InvalidInput(f"The database rejected a record ({type(cause).__name__}); it was not stored.")
    reported.__cause__ = error
    return reported


def _is_wanted(request: WriteRequest) -> bool:
    """Return whether somebody waits for a request: it was neither given up nor cancelled."""
    return not request.stored.done() and request.stored.set_running_or_notify_cancel()


def _fail(batch: Sequence[WriteRequest], error: BaseException) -> None:
    for request in batch:
        request.stored.set_exception(error)


def _prepare_insert(db: "Database", table: Table, other: Table) -> InsertRows:
    """Return a function that stores rows of one table whose numbers are used neither there nor in the other table.

    What was stored first remains. The check is part of the statement, so that it needs no query of its own. The caller
    has to check types: PostgreSQL accepts "yes" for true, SQLite does not.
    """
    row = _bind_row(table) if db.is_sqlite else _unpack_json_rows(table)
    is_used = exists().where(other.c.session == row["session"], other.c.seq == row["seq"])
    new = select(*row.values()).where(~is_used)
    if not db.is_sqlite:  # ordered, so that two workers with the same rows never deadlock
        new = new.order_by(row["session"], row["seq"])
    statement = (
        db.insert_or_ignore(table).from_select(list(row), new).execution_options(preserve_rowcount=True)
    )

    def insert_rows(connection: Connection, rows: list[Row]) -> int:
        parameters: Any = rows if db.is_sqlite else {"rows": rows}
        return connection.execute(statement, parameters).rowcount

    return insert_rows


def _bind_row(table: Table) -> dict[str, ColumnElement[Any]]:
    """Return the parameters of one row, for SQLite, where the statement is run for each row."""
    return {each.name: bindparam(each.name, type_=each.type) for each in table.c}


def _unpack_json_rows(table: Table) -> dict[str, ColumnElement[Any]]:
    """Return the columns of all rows, unpacked from one JSON text, for PostgreSQL: twice as fast as row by row."""
    columns = (column(each.name, each.type) for each in table.c)
    rows = func.json_to_recordset(bindparam("rows", type_=JSON)).table_valued(*columns)
    return dict(rows.render_derived(name="given", with_types=True).c)
