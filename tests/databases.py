"""A real PostgreSQL for the tests, started here: `with postgres() as server: server.fresh()`.

The programs are those in $VSEG_PG_BIN, else beside pg_ctl, else Debian's, else those of the PyPI wheel pgserver.
"""

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from vseg import store

MISSING = (
    "The tests need PostgreSQL, and there is none: install it (Debian, Ubuntu: apt install postgresql; macOS: brew "
    "install postgresql; or pip install pgserver), or set VSEG_PG_BIN to the folder with initdb and postgres."
)
SETTINGS = {"listen_addresses": "", "fsync": "off", "max_connections": "200", "timezone": "UTC"}
READY_S = 60
HOW_TO_INIT = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-locale"]


@dataclass
class Postgres:
    """A running server, reached through a socket in `folder`."""

    folder: Path
    process: "subprocess.Popen[bytes]"
    _numbers: Any = field(default_factory=itertools.count)
    _free: list[str] = field(default_factory=list)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def fresh(self, *, migrated: bool = True) -> str:
        """The URL of a new database, with our tables unless said otherwise."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {'vseg' if migrated else 'template0'}")
        return self.url(name)

    @contextmanager
    def borrowed(self) -> Iterator[str]:
        """The URL of a database with our tables and nothing in them; emptied for the next, which is far quicker."""
        url = self._free.pop() if self._free else self.fresh()
        yield url
        name = self._name(url)
        self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        for table in ("studies", "researchers", "settings"):  # what belongs to a study goes with it
            self.execute(f"DELETE FROM {table}", name)
        self._free.append(url)

    def drop(self, url: str) -> None:
        self.execute(f"DROP DATABASE {self._name(url)} WITH (FORCE)")

    def execute(self, statement: str, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement)

    def _name(self, url: str) -> str:
        return url.removeprefix("postgresql://postgres@/").partition("?")[0]


@contextmanager
def postgres(**settings: str) -> Iterator[Postgres]:
    """A server of its own for the time of this block. Its files are thrown away, so by default it does not sync."""
    # Short: a socket's path has 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="vseg-pg-", dir="/tmp"))
    try:
        programs, identity = _programs(folder), _identity(folder)
        data = folder / "data"
        quiet: dict[str, Any] = {
            "cwd": folder,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            **identity,
        }
        made = subprocess.run(
            [programs / "initdb", "-D", data, *HOW_TO_INIT],
            text=True,
            check=False,
            **quiet,
        )
        if made.returncode:
            raise RuntimeError(f"initdb did not succeed: {made.stdout}")
        options = [f"-c{name}={value}" for name, value in (SETTINGS | settings).items()]
        with open(folder / "log", "wb") as log:
            server = subprocess.Popen(
                [programs / "postgres", "-D", data, "-k", folder, *options], **quiet | {"stdout": log}
            )
        running = Postgres(folder, server)
        try:
            _wait_until_ready(programs, folder, server)
            running.execute("CREATE DATABASE vseg TEMPLATE template0")
            store.open(running.url("vseg")).close()
            yield running
        finally:
            running.process.send_signal(signal.SIGINT)
            running.process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs(folder: Path) -> Path:
    """The folder with initdb and postgres."""
    if given := os.environ.get("VSEG_PG_BIN"):
        places = [Path(given)]
    else:
        pg_ctl = shutil.which("pg_ctl")
        debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
        places = [Path(pg_ctl).resolve().parent] if pg_ctl else []
        places += reversed(debian)
    if found := next((place for place in places if (place / "initdb").exists()), None):
        return found
    wheel = find_spec("pgserver")
    if "VSEG_PG_BIN" in os.environ or wheel is None or wheel.origin is None:
        raise RuntimeError(MISSING)
    # Copied, since the user who runs the server may not be allowed to look into our environment.
    package = Path(wheel.origin).parent
    shutil.copytree(package / "pginstall", folder / "pgserver" / "pginstall")
    libraries = package.with_name("pgserver.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder / "pgserver.libs")
    return folder / "pgserver" / "pginstall" / "bin"


def _identity(folder: Path) -> dict[str, Any]:
    """PostgreSQL refuses root, which therefore runs it as somebody else."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    who = names.get("postgres") or names["nobody"]
    os.chown(folder, who.pw_uid, who.pw_gid)
    return {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}


def _wait_until_ready(programs: Path, folder: Path, server: "subprocess.Popen[bytes]") -> None:
    ask = [programs / "pg_isready", "-q", "-h", folder, "-t", "1"]
    for _ in range(READY_S * 20):
        if server.poll() is not None:
            break
        if subprocess.run(ask, check=False).returncode == 0:
            return
        try:
            server.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
    raise RuntimeError(f"PostgreSQL did not start: {(folder / 'log').read_text()}")
