"""One database: how to reach it, how to read it, and the one way to write to it."""

import logging
import re
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self
from weakref import WeakSet

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, exc, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from vseg.errors import Conflict, InvalidInput, NotFound, VsegError
from vseg.store import checksum
from vseg.store.migrate import HEAD, migrate
from vseg.store.writer import Writer

LOCK_TIMEOUT_S = 30  # how long a write waits for another process that is writing
LOG_WAIT_AFTER_S = 2  # who waits for so long is told
READ_CONNECTIONS = 4
SET_LOCK_TIMEOUT = f"SELECT set_config('lock_timeout', '{LOCK_TIMEOUT_S}s', false) WHERE current_setting('lock_timeout') = '0'"
# A commit of ours is on the disk when it returns, also where PostgreSQL is set not to wait for that.
SET_DURABLE_COMMITS = (
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
# A plan that was made while the tables were small, and kept, reads all of a large one for each insert.
SET_FRESH_PLANS = "SET plan_cache_mode = force_custom_plan"
LOCK_NOT_AVAILABLE = "55P03"  # PostgreSQL's word for it
EXPECTED_URL = "expected sqlite:///FILE or postgresql://USER@HOST/DATABASE"
log = logging.getLogger("vseg.store")


def open(url: str, *, must_exist: bool = False, update_schema: bool = True) -> "Database":
    """Open a database, made or brought up to date if need be; close it, or use it in a `with`.

    With `must_exist`, a SQLite file that is not there is `NotFound` instead of a new one; `as_it_is` leaves its tables
    alone, however old they are.

    Examples
    --------
    >>> with open("sqlite:///vseg.db") as db:  # doctest: +SKIP
    ...     db.is_sqlite
    True
    """
    where = parse_url(url)
    if where.get_backend_name() == "sqlite":
        _make_private(describe_url(where), must_exist)
    db = Database(where)
    try:
        if update_schema:
            with log_long_wait(db.place):
                before = migrate(db)
            if before is not None:  # whoever has an older vseg as well can no longer open it
                log.warning("Brought %s up to date (schema %s → %s).", db.place, before, HEAD)
    except BaseException:
        db.close()
        raise
    db.is_ours = True
    return db


class Database:
    """A database that is open: `reading()` and `writing()` are transactions, `writer` stores responses.

    On SQLite there is one connection that writes, so that writers queue here and not on the file's lock. Its file has
    to be there from the first, and to stay.
    """

    def __init__(self, url: URL):
        self.url = url
        self.is_ours = False  # until its tables were found to be ours
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self._file = _identity(self.place) if self.is_sqlite else None
        options = _sqlite_options() if self.is_sqlite else _postgresql_options()
        self._reading, self._writing = (create_engine(url, hide_parameters=True, **each) for each in options)
        if self.is_sqlite:
            _prepare(self._reading, "BEGIN", "PRAGMA query_only = ON")
            # Whoever only reads leaves the file as it is, byte by byte: it may be a backup. Its seal is broken before
            # there is a log, in which the file's own header would not show it.
            event.listen(self._writing, "connect", lambda connection, _: checksum.clear_checksum(connection))
            _prepare(self._writing, "BEGIN IMMEDIATE", "PRAGMA journal_mode = WAL")
        else:
            _settle(self._reading, SET_LOCK_TIMEOUT)
            _settle(self._writing, SET_LOCK_TIMEOUT, SET_DURABLE_COMMITS, SET_FRESH_PLANS)
        self._turn = FairLock() if self.is_sqlite else nullcontext()
        self.writer = Writer(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Database: {self.place}>"

    @property
    def place(self) -> str:
        """Where it is, for messages: without the password."""
        return describe_url(self.url)

    def check_file_in_place(self) -> None:
        """`VsegError` if the file is no longer the one that was opened: what is stored now would go with that one."""
        if self.is_sqlite and _identity(self.place) != self._file:
            raise VsegError(
                f"The database file {self.place} was moved, replaced or deleted while it was in use; put it back, "
                f"with {self.place}-wal beside it, or start vseg again on the one that is to go on."
            )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        with self._told(), self._reading.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes: durable when the block is left, undone if the block raises."""
        with self._told(), self._turn, self._writing.begin() as connection:
            yield connection

    def run_outside_transaction(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run what no transaction may hold, such as VACUUM, while nobody else here writes; the rows of the last."""
        rows: list[Any] = []
        with self._told(), self._turn, self._writing.connect() as connection:
            if self.is_sqlite:  # the driver's own connection begins no transaction; SQLAlchemy's would
                for statement in statements:
                    rows = connection.connection.cursor().execute(statement).fetchall()
            else:
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
                for statement in statements:
                    found = connection.exec_driver_sql(statement)
                    rows = list(found) if found.returns_rows else []
        return [tuple(row) for row in rows]

    def insert_or_ignore(self, table: Table) -> Any:
        """INSERT … ON CONFLICT DO NOTHING, in the words of this database."""
        dialect: Any = sqlite if self.is_sqlite else postgresql
        return dialect.insert(table).on_conflict_do_nothing()

    def close(self) -> None:
        """Store what is waiting, and let go."""
        self.writer.close()
        self._reading.dispose()
        self._writing.dispose()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Failures of the database, not of a statement, as one sentence; also that its file is another one."""
        self.check_file_in_place()
        try:
            yield
        except (
            exc.OperationalError,
            exc.InterfaceError,
            exc.InternalError,  # PostgreSQL's when it only reads for now: on a stand-in, or with a full disk
            exc.TimeoutError,
            sqlite3.OperationalError,
        ) as error:
            raise VsegError(_unreachable(self.place, error)) from error
        except (exc.DatabaseError, sqlite3.DatabaseError) as error:
            cause = getattr(error, "orig", None) or error
            if getattr(error, "connection_invalidated", False):
                raise VsegError(_unreachable(self.place, error)) from error
            if type(cause) is sqlite3.DatabaseError:  # the bare class: not a database, or a damaged one
                if self.is_ours:  # a good one when it was opened: nobody who sends something is to blame
                    raise VsegError(_unreachable(self.place, error)) from error
                raise InvalidInput(
                    f"{self.place} is not a database of vseg, or is damaged ({cause}); name another file."
                ) from error
            raise


class FairLock:
    """A lock that is first come, first served.

    With an ordinary one, a busy writer takes its turn again before anyone who waits has woken up.
    """

    def __init__(self) -> None:
        self._waiting: deque[threading.Event] = deque()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        mine = threading.Event()
        with self._lock:
            self._waiting.append(mine)
            self._waiting[0].set()
        try:
            mine.wait()
        except BaseException:
            self._leave(mine)
            raise

    def __exit__(self, *_: object) -> None:
        self._leave(self._waiting[0])

    def _leave(self, mine: threading.Event) -> None:
        with self._lock:
            self._waiting.remove(mine)
            if self._waiting:
                self._waiting[0].set()


def now_ms() -> int:
    """Milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


@contextmanager
def log_long_wait(place: str) -> Iterator[None]:
    """Whoever waits for a database in this block for longer than a moment is told; for what is seldom done."""
    said = "Still waiting for the database %s; another program may have locked it."
    timer = threading.Timer(LOG_WAIT_AFTER_S, log.warning, (said, place))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def describe_url(url: URL) -> str:
    """Where a database is, for messages: without the password."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    host = url.host or url.query.get("host") or "localhost"
    port = f":{url.port}" if url.port else ""
    return f"postgresql://{host}{port}/{url.database or ''}"


def parse_url(text: str) -> URL:
    """The URL with our driver; what was given is not repeated where it may hold a password."""
    try:
        url = make_url(text)
        kind = url.drivername
    except (exc.ArgumentError, ValueError):
        # A plain path can hold no password; "host=… password=…" does.
        got = f", got {text!r}" if re.fullmatch(r"[\w./\\~ -]{1,80}", text) else ""
        raise InvalidInput(f"The database's address is not a URL; {EXPECTED_URL}{got}.") from None
    if kind in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if kind not in ("sqlite", "sqlite+pysqlite"):
        raise InvalidInput(f"There is no way to keep data in {kind!r}; {EXPECTED_URL}.")
    if url.database in (None, "", ":memory:") or str(url.database).startswith("file:") or url.host:
        raise InvalidInput(
            f"The address names no file of a SQLite database; {EXPECTED_URL} (three slashes, or four before /home/…)."
        )
    if not Path(str(url.database)).absolute().parent.is_dir():
        raise InvalidInput(f"There is no folder for {url.database}; make it, or name another file.")
    return url.set(drivername="sqlite+pysqlite")


def _identity(file: str) -> tuple[int, int] | None:
    """What a file is known by, whatever its name; None if there is none."""
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _make_private(file: str, must_exist: bool) -> None:
    """A new file is its owner's alone, as SQLite's own beside it will be: it may say who people are."""
    if Path(file).exists() and Path(file).stat().st_size:
        return
    log_of_another = Path(f"{file}-wal")
    if log_of_another.exists() and log_of_another.stat().st_size:  # SQLite would throw it away
        raise Conflict(
            f"{log_of_another} is there, but its database {file} is gone or empty, and answers may be in it alone; put "
            "the database back beside it, or move it away too."
        )
    if Path(file).exists():
        return
    if must_exist:
        raise NotFound(
            f"There is no database {file}; name the one that vseg serve wrote with --db sqlite:///FILE."
        )
    try:
        Path(file).touch(mode=0o600)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written ({error.strerror}); name another file.") from error


def _sqlite_options() -> tuple[dict[str, Any], dict[str, Any]]:
    shared = {
        "poolclass": QueuePool,
        # The pool hands connections from thread to thread.
        "connect_args": {"check_same_thread": False, "timeout": LOCK_TIMEOUT_S},
        "pool_timeout": LOCK_TIMEOUT_S,
    }
    return (
        {**shared, "pool_size": READ_CONNECTIONS, "max_overflow": READ_CONNECTIONS},
        {**shared, "pool_size": 1, "max_overflow": 0},
    )


def _postgresql_options() -> tuple[dict[str, Any], dict[str, Any]]:
    # Of a host that has gone without a word, a socket would wait for a quarter of an hour.
    connecting = {
        "client_encoding": "utf8", "connect_timeout": 10, "tcp_user_timeout": 1000 * LOCK_TIMEOUT_S,
        "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4,
    }  # fmt: skip
    # A ping before each use, so that a restart of PostgreSQL costs nobody an answer.
    shared = {"pool_pre_ping": True, "pool_timeout": LOCK_TIMEOUT_S, "connect_args": connecting}
    return (
        {**shared, "pool_size": READ_CONNECTIONS, "max_overflow": READ_CONNECTIONS},
        {**shared, "pool_size": READ_CONNECTIONS, "max_overflow": 0},
    )


def _prepare(engine: Engine, begin: str, *more: str) -> None:
    """Settings of each SQLite connection, and transactions that begin when we say so."""
    # fullfsync: on macOS an ordinary fsync leaves data in the drive's cache; elsewhere it changes nothing.
    settings = (
        *more, "PRAGMA synchronous = FULL", "PRAGMA fullfsync = ON", "PRAGMA foreign_keys = ON",
        "PRAGMA secure_delete = ON",
    )  # fmt: skip

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver's own BEGIN would come too late
        for setting in settings:
            connection.execute(setting)

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    # A result that was not read to its end, which an exception may keep alive, holds on to the moment it was asked in:
    # whoever has the connection next would see that moment, not the present.
    @event.listens_for(engine, "after_cursor_execute")
    def _on_execute(connection: Connection, cursor: Any, *_: Any) -> None:
        connection.info.setdefault("cursors", WeakSet()).add(cursor)

    @event.listens_for(engine, "reset")
    def _on_return(_: Any, record: ConnectionPoolEntry, state: Any) -> None:
        for cursor in record.info.pop("cursors", ()):
            cursor.close()


def _settle(engine: Engine, *statements: str) -> None:
    """Settings of each PostgreSQL connection."""

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _: Any) -> None:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def _unreachable(place: str, error: BaseException) -> str:
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, exc.TimeoutError):
        return f"The database {place} is busy; try again in a moment."
    if isinstance(cause, sqlite3.OperationalError) and "locked" in str(cause):
        return locked_message(place)
    if getattr(cause, "sqlstate", None) == LOCK_NOT_AVAILABLE:
        return locked_message(place)
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return f"The database {place} does not answer ({lines[0].rstrip('.')}); check that it is there and open to you."


def locked_message(place: str) -> str:
    """What to do where another program holds a database."""
    return f"The database {place} is locked by another program; close that, or try again when it is done."
