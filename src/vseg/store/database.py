"""Open a database, and read and write it in transactions."""

import logging
import os
import re
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Self
from weakref import WeakSet

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, exc, make_url, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from vseg.errors import Conflict, InvalidInput, NotFound, VsegError
from vseg.store import checksum
from vseg.store.file_watch import FileWatch, has_several_names, several_names_message
from vseg.store.migrate import HEAD, migrate
from vseg.store.schema import images, researchers, responses, sessions, studies
from vseg.store.writer import Writer

LOCK_TIMEOUT_S = 30  # how long a write waits for another process to finish writing
LOG_WAIT_AFTER_S = 2  # a longer wait is logged
READ_CONNECTIONS = 4
MAX_LINKS = 40  # symbolic links that lead to a file; systems follow no more
SET_LOCK_TIMEOUT = (
    f"SELECT set_config('lock_timeout', '{LOCK_TIMEOUT_S}s', false) "
    "WHERE current_setting('lock_timeout') = '0'"
)
# A commit is on the disk when it returns, even if PostgreSQL is configured not to wait for that.
SET_DURABLE_COMMITS = (
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
# A cached plan, made while the tables were small, would scan a large table for each insert.
SET_FRESH_PLANS = "SET plan_cache_mode = force_custom_plan"
LOCK_NOT_AVAILABLE = "55P03"  # SQLSTATE of PostgreSQL
EXPECTED_URL = "expected sqlite:///FILE or postgresql://USER@HOST/DATABASE"
HEALTH_TABLES = (studies, images, sessions, responses, researchers)
LARGE_COLUMNS = ("png", "truth", "trials", "text")
log = logging.getLogger("vseg.store")


def open(url: str, *, must_exist: bool = False, update_schema: bool = True) -> "Database":
    """Open a database, creating or updating its tables if necessary; close it, or use it in a `with` statement.

    Parameters
    ----------
    url : str
        sqlite:///FILE or postgresql://USER@HOST/DATABASE.
    must_exist : bool
        Raise `NotFound` if the SQLite file does not exist, instead of creating it.
    update_schema : bool
        Whether to bring tables of an earlier version up to date.

    Returns
    -------
    Database
        The open database.

    Examples
    --------
    >>> with open("sqlite:///vseg.db") as db:  # doctest: +SKIP
    ...     db.is_sqlite
    True
    """
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        _check_links(describe_url(parsed))
        _create_private_file(describe_url(parsed), must_exist)
    db = Database(parsed)
    try:
        if update_schema:
            old_revision = migrate(db)
            if old_revision is not None:  # an older vseg can no longer open the database
                log.warning("Brought %s up to date (schema %s → %s).", db.address, old_revision, HEAD)
    except BaseException:
        db.close()
        raise
    db.was_readable = True
    return db


class Database:
    """An open database: `reading()` and `writing()` are transactions, `writer` stores responses.

    On SQLite there is a single writing connection, so that writers queue in this process and not on the file's lock.
    The SQLite file has to exist before; it and its log must not be replaced while it is open.
    """

    def __init__(self, url: URL):
        self.url = url
        self.was_readable = False  # set by open() once the tables were read
        self._is_closed = False
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.file = os.path.realpath(self.address) if self.is_sqlite else ""
        """The SQLite file itself, behind all links: its log lies beside it. Empty for PostgreSQL."""
        self._file_watch = FileWatch(self.file, self.address) if self.is_sqlite else None
        self._log_rescue: threading.Thread | None = None
        self._is_log_rescued = False
        self._rescue_lock = threading.Lock()
        options = _sqlite_options() if self.is_sqlite else _postgresql_options()
        opened = url.set(database=self.file) if self.is_sqlite else url
        self._reading, self._writing = (
            create_engine(opened, hide_parameters=True, **each) for each in options
        )
        if self.is_sqlite:
            _configure_sqlite(self._reading, "BEGIN", "PRAGMA query_only = ON")
            # Reading leaves every byte of the file unchanged, since it may be a backup. Writing clears the backup's
            # checksum first, before the write-ahead log exists: the log would hide the change of the file's header.
            event.listen(self._writing, "connect", lambda connection, _: checksum.clear_checksum(connection))
            _configure_sqlite(self._writing, "BEGIN IMMEDIATE", "PRAGMA journal_mode = WAL")
            assert self._file_watch is not None
            event.listen(self._writing, "connect", self._file_watch.begin)
            event.listen(self._writing, "close", self._file_watch.end)
        else:
            _configure_postgresql(self._reading, SET_LOCK_TIMEOUT)
            _configure_postgresql(self._writing, SET_LOCK_TIMEOUT, SET_DURABLE_COMMITS, SET_FRESH_PLANS)
        self._write_lock = FairLock() if self.is_sqlite else nullcontext()
        self.writer = Writer(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Database: {self.address}>"

    @property
    def address(self) -> str:
        """The file of a SQLite database, else the URL without the password; for messages."""
        return describe_url(self.url)

    def check_file_in_place(self) -> None:
        """Raise `VsegError` if the SQLite file or its log was replaced or overwritten: new responses would be lost."""
        if self._file_watch is None:
            return
        try:
            self._file_watch.check()
        except VsegError:
            if self._file_watch.is_log_deleted:
                self._start_log_rescue()
            raise
        self._is_log_rescued = (
            False  # the log is in place, so if it is deleted later, it must be rescued again
        )

    def _start_log_rescue(self) -> None:
        """Write the deleted log, which this process still has open, to the database file; in a thread, until it is."""
        with self._rescue_lock:
            is_running = self._log_rescue is not None and self._log_rescue.is_alive()
            if not is_running and not self._is_log_rescued:
                self._log_rescue = threading.Thread(target=self._rescue_log, name="vseg-rescue", daemon=True)
                self._log_rescue.start()

    def _is_log_deleted(self) -> bool:
        """Return whether the log is deleted, and neither put back or replaced nor the file overwritten, by now."""
        assert self._file_watch is not None
        with suppress(VsegError):
            self._file_watch.check()
        return self._file_watch.is_log_deleted

    def _rescue_log(self) -> None:
        try:
            with self._write_lock, self._writing.connect() as connection:
                if not self._is_log_deleted():
                    return
                cursor = connection.connection.cursor()
                busy, pages, written = cursor.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
                # While nobody else writes: what is committed later ends with a check, which takes it back.
                self._is_log_rescued = not busy and pages == written
        except (exc.SQLAlchemyError, sqlite3.Error) as error:
            log.error("The deleted log of %s could not be written to it: %s.", self.address, error)
            return
        if busy or pages != written:
            log.error("The deleted log of %s could not be written to it: it is being read.", self.address)
        else:
            log.error(
                "The deleted log of %s was written to it; it has all acknowledged records.", self.address
            )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a read-only transaction."""
        with self._translate_errors(), self._connect(self._reading) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a writing transaction: durable when the block ends, rolled back if the block raises.

        If the files were found deleted or overwritten after the commit, `VsegError` is raised although it succeeded.
        """
        with (
            self._translate_errors(),
            self._write_lock,
            self._connect(self._writing) as connection,
            connection.begin(),
        ):
            yield connection
            stamp = checksum.write_stamp(connection) if self._file_watch else 0
        if self._file_watch:
            self._file_watch.note_commit(stamp)
        self.check_file_in_place()

    def run_outside_transaction(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements that may not run in a transaction, such as VACUUM; return the rows of the last one.

        Nobody else in this process writes meanwhile.
        """
        rows: list[Any] = []
        with self._translate_errors(), self._write_lock, self._connect(self._writing) as connection:
            if self.is_sqlite:  # SQLAlchemy would begin a transaction; the driver's own connection does not
                for statement in statements:
                    rows = connection.connection.cursor().execute(statement).fetchall()
            else:
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
                for statement in statements:
                    result = connection.exec_driver_sql(statement)
                    rows = list(result) if result.returns_rows else []
        return [tuple(row) for row in rows]

    def insert_or_ignore(self, table: Table) -> Any:
        """Return INSERT … ON CONFLICT DO NOTHING in the dialect of this database."""
        dialect: Any = sqlite if self.is_sqlite else postgresql
        return dialect.insert(table).on_conflict_do_nothing()

    def insert_or_replace(self, table: Table, **values: Any) -> Any:
        """Return INSERT … ON CONFLICT DO UPDATE of these values by the primary key, in the dialect of this database."""
        dialect: Any = sqlite if self.is_sqlite else postgresql
        return dialect.insert(table).values(values).on_conflict_do_update(
            index_elements=[column.name for column in table.primary_key], set_=values
        )  # fmt: skip

    def check_health(self) -> None:
        """Read the newest row of each important table, and see that records can be stored; `VsegError` if that fails.

        SELECT 1 would not even read a SQLite file, and one table does not show damage in another.
        """
        self.writer.ensure_running()
        with self.reading() as connection:
            for table in HEALTH_TABLES:
                columns = [column for column in table.c if column.name not in LARGE_COLUMNS]
                newest_first = [column.desc() for column in table.primary_key]
                connection.execute(select(*columns).order_by(*newest_first).limit(1)).all()

    def close(self) -> None:
        """Store the queued records and close all connections."""
        self.writer.close()
        if self._log_rescue is not None:
            self._log_rescue.join()
        self._is_closed = True
        for engine in (self._reading, self._writing):
            engine.pool.dispose()

    @contextmanager
    def _connect(self, engine: Engine) -> Iterator[Connection]:
        """Lend a connection; if the database was closed meanwhile, by another thread, nobody else would close it."""
        try:
            with engine.connect() as connection:
                yield connection
        finally:
            if self._is_closed:
                engine.pool.dispose()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise failures of the database, other than those of a single statement, as `VsegError` with a message."""
        self.check_file_in_place()
        try:
            yield
        except (
            exc.OperationalError,
            exc.InterfaceError,
            exc.InternalError,  # from PostgreSQL while it is read-only: on a replica, or with a full disk
            exc.TimeoutError,
            sqlite3.OperationalError,
        ) as error:
            raise VsegError(_unavailable_message(self.address, error)) from error
        except (exc.DatabaseError, sqlite3.DatabaseError) as error:
            cause = getattr(error, "orig", None) or error
            if getattr(error, "connection_invalidated", False):
                raise VsegError(_unavailable_message(self.address, error)) from error
            if type(cause) is sqlite3.DatabaseError:  # the base class: not a database, or a damaged one
                if self.was_readable:  # damaged since it was opened, which is not the fault of the request
                    raise VsegError(_unavailable_message(self.address, error)) from error
                raise InvalidInput(
                    f"{self.address} is not a database of vseg, or is damaged ({cause}); choose another file."
                ) from error
            raise


class FairLock:
    """A lock that is granted in the order of the requests.

    With an ordinary lock, a busy thread takes it again before a waiting thread has woken up.
    """

    def __init__(self) -> None:
        self._waiting: deque[threading.Event] = deque()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        granted = threading.Event()
        with self._lock:
            self._waiting.append(granted)
            self._waiting[0].set()
        try:
            granted.wait()
        except BaseException:
            self._release(granted)
            raise

    def __exit__(self, *_: object) -> None:
        self._release(self._waiting[0])

    def _release(self, granted: threading.Event) -> None:
        with self._lock:
            self._waiting.remove(granted)
            if self._waiting:
                self._waiting[0].set()


def now_ms() -> int:
    """Return the milliseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1_000_000


@contextmanager
def log_long_wait(address: str) -> Iterator[Callable[[], None]]:
    """Log a warning if the block takes longer than `LOG_WAIT_AFTER_S`; starts a thread, so only for rare operations.

    Yield a function to be called when the wait is over, if the block then goes on to do something that takes long.
    """
    message = "Still waiting for the database %s; another program may have locked it."
    timer = threading.Timer(LOG_WAIT_AFTER_S, log.warning, (message, address))
    timer.daemon = True
    timer.start()
    try:
        yield timer.cancel
    finally:
        timer.cancel()


def describe_url(url: URL) -> str:
    """Return the file of a SQLite database, else the URL without the password; for messages."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    host = url.host or url.query.get("host") or "localhost"
    port = f":{url.port}" if url.port else ""
    return f"postgresql://{host}{port}/{url.database or ''}"


def parse_url(text: str) -> URL:
    """Return the URL with the driver that vseg uses; `InvalidInput` never repeats text that may hold a password."""
    try:
        url = make_url(text)
        driver = url.drivername
    except (exc.ArgumentError, ValueError):
        # A plain path holds no password; "host=… password=…" would.
        got = f", got {text!r}" if re.fullmatch(r"[\w./\\~ -]{1,80}", text) else ""
        raise InvalidInput(f"The database's address is not a URL; {EXPECTED_URL}{got}.") from None
    if driver in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if driver not in ("sqlite", "sqlite+pysqlite"):
        raise InvalidInput(f"Databases of type {driver!r} are not supported; {EXPECTED_URL}.")
    if url.database in (None, "", ":memory:") or str(url.database).startswith("file:") or url.host:
        raise InvalidInput(
            f"The address names no file of a SQLite database; {EXPECTED_URL} (three slashes, or four before /home/…)."
        )
    if not Path(str(url.database)).absolute().parent.is_dir():
        raise InvalidInput(f"There is no folder for {url.database}; make it, or name another file.")
    return url.set(drivername="sqlite+pysqlite")


def _check_links(name: str) -> None:
    """Raise `Conflict` if the file has hard links, or if a log lies beside a symbolic link to it.

    SQLite takes the log beside the file itself, so it would neither find that log nor store what it holds.
    """
    file = os.path.realpath(name)
    if has_several_names(file):
        raise Conflict(several_names_message(name))
    for _ in range(MAX_LINKS):
        if not os.path.islink(name):
            return
        write_ahead_log = Path(f"{name}-wal")
        if _has_content(write_ahead_log) and os.path.realpath(write_ahead_log) != f"{file}-wal":
            raise Conflict(
                f"{write_ahead_log} lies beside {name}, which is a link to {file}, where SQLite does not read it; the "
                f"log may hold responses that are stored nowhere else. Move {file} back to {name} in place of the "
                "link, or move the log away."
            )
        name = os.path.join(os.path.dirname(name), os.readlink(name))


def _has_content(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _create_private_file(file: str, must_exist: bool) -> None:
    """Create a new SQLite file that only its owner can read, since it may hold identities; leave an existing one."""
    if _has_content(Path(file)):
        return
    write_ahead_log = Path(f"{os.path.realpath(file)}-wal")
    if _has_content(write_ahead_log):  # SQLite would discard it
        raise Conflict(
            f"{write_ahead_log} exists, but its database {file} is missing or empty; the log may hold responses that "
            "are stored nowhere else. Put the database back next to it, or move the log away too."
        )
    if Path(file).exists():
        return
    if must_exist:
        raise NotFound(f"There is no database {file}; give the address of the database that the server uses.")
    try:
        Path(file).touch(mode=0o600)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written ({error.strerror}); choose another file.") from error


def _sqlite_options() -> tuple[dict[str, Any], dict[str, Any]]:
    shared = {
        "poolclass": QueuePool,
        # The pool passes connections between threads.
        "connect_args": {"check_same_thread": False, "timeout": LOCK_TIMEOUT_S},
        "pool_timeout": LOCK_TIMEOUT_S,
    }
    return (
        {**shared, "pool_size": READ_CONNECTIONS, "max_overflow": READ_CONNECTIONS},
        {**shared, "pool_size": 1, "max_overflow": 0},
    )


def _postgresql_options() -> tuple[dict[str, Any], dict[str, Any]]:
    # Without these limits a socket waits a quarter of an hour for a host that has disappeared.
    connect_args = {
        "client_encoding": "utf8", "connect_timeout": 10, "tcp_user_timeout": 1000 * LOCK_TIMEOUT_S,
        "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4,
    }  # fmt: skip
    # A ping before each use, so that no response is lost when PostgreSQL restarts.
    shared = {"pool_pre_ping": True, "pool_timeout": LOCK_TIMEOUT_S, "connect_args": connect_args}
    return (
        {**shared, "pool_size": READ_CONNECTIONS, "max_overflow": READ_CONNECTIONS},
        {**shared, "pool_size": READ_CONNECTIONS, "max_overflow": 0},
    )


def _configure_sqlite(engine: Engine, begin: str, *extra_settings: str) -> None:
    """Apply settings to each new SQLite connection and begin each transaction with the statement `begin`."""
    # fullfsync: on macOS an ordinary fsync leaves data in the drive's cache; elsewhere it changes nothing.
    settings = (
        *extra_settings, "PRAGMA synchronous = FULL", "PRAGMA fullfsync = ON", "PRAGMA foreign_keys = ON",
        "PRAGMA secure_delete = ON",
    )  # fmt: skip

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver itself would send BEGIN too late
        for setting in settings:
            connection.execute(setting)

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    # An unfinished result, which an exception may keep alive, holds its read transaction open: the next user of the
    # connection would see the data of that moment. So cursors are closed when the connection returns to the pool.
    @event.listens_for(engine, "after_cursor_execute")
    def _on_execute(connection: Connection, cursor: Any, *_: Any) -> None:
        connection.info.setdefault("cursors", WeakSet()).add(cursor)

    @event.listens_for(engine, "reset")
    def _on_return(_: Any, record: ConnectionPoolEntry, state: Any) -> None:
        for cursor in record.info.pop("cursors", ()):
            cursor.close()


def _configure_postgresql(engine: Engine, *statements: str) -> None:
    """Run these statements on each new PostgreSQL connection."""

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _: Any) -> None:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def _unavailable_message(address: str, error: BaseException) -> str:
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, exc.TimeoutError):
        return f"The database {address} is busy; try again in a moment."
    if isinstance(cause, sqlite3.OperationalError) and "locked" in str(cause):
        return locked_message(address)
    if getattr(cause, "sqlstate", None) == LOCK_NOT_AVAILABLE:
        return locked_message(address)
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    reason = lines[0].rstrip(".")
    return (
        f"The database {address} does not answer ({reason}); check that it exists and that you may access it."
    )


def locked_message(address: str) -> str:
    """Return the message for a database that another program has locked."""
    return f"The database {address} is locked by another program; close that program, or try again later."
