"""`vseg serve`: run studies for people with a browser."""

import errno
import gc
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vseg._support import user_code
from vseg.cli import options
from vseg.errors import Conflict, InvalidInput, NotFound

if TYPE_CHECKING:
    from vseg.store import Database
    from vseg.store.studies import StudyRow
    from vseg.study.pictures import Picture
    from vseg.study.schema import Study

    Read = tuple[str, Study, dict[str, Picture]]

DEFAULT_DATABASE = "sqlite:///vseg.db"

DatabaseOption = Annotated[
    str,
    typer.Option(
        "--db", metavar="URL", envvar="VSEG_DB", help="sqlite:///FILE or postgresql://USER@HOST/NAME."
    ),
]


StudiesArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="STUDY…", help="Study files; without any, what the database has.", show_default=False
    ),
]
ProxiesOption = Annotated[
    str, typer.Option(metavar="LIST", help="Reverse proxies whose X-Forwarded-… headers are believed.")
]
NewLinkOption = Annotated[
    bool, typer.Option("--new-researcher-link", help="Print a one-time link to set a password.")
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.py[:NAME]",
        help="A model of yours that simulated participants can see by: image -> labels or probabilities.",
    ),
]


def serve(
    studies: StudiesArgument = None,
    db: DatabaseOption = DEFAULT_DATABASE,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[str, typer.Option(metavar="NUMBER", help="The port; 0 takes a free one.")] = "8000",
    prefix: Annotated[str, typer.Option(metavar="PATH", help="Path behind a reverse proxy: /vseg.")] = "",
    workers: Annotated[str, typer.Option(metavar="NUMBER", help="Processes (PostgreSQL only).")] = "1",
    forwarded_allow_ips: ProxiesOption = "127.0.0.1",
    new_researcher_link: NewLinkOption = False,
    model: ModelOption = None,
) -> None:
    """Serve studies to participants, and store what they answer.

    Each STUDY is checked and put into the database; the links for participants and for the researcher are
    printed. Without a STUDY those that the database has go on, after a restore for instance. Stop it with Ctrl+C:
    whatever was acknowledged is stored.

    \b
    Examples:
      vseg serve two-textures/study.toml
      vseg serve study.toml --db postgresql://vseg@localhost/vseg --workers 2 --prefix /vseg
      vseg serve --db sqlite:///vseg-restored.db
    """
    number, processes = options.whole(port, "--port"), options.whole(workers, "--workers", 1)
    gc.disable()  # until it serves: a fifth of the start would go into looking for garbage in what is being loaded
    if sys.stderr.isatty():  # someone looks on, and what follows may take half a minute on a slow computer
        typer.echo("Starting …", err=True)

    from vseg.server import runner
    from vseg.server.app import check_page_is_built, check_prefix
    from vseg.server.simulated_participants import Simulations

    if model is not None:
        user_code.load_function(model)  # what is wrong with it is said now, and not when someone needs it
    path = check_prefix(prefix)
    check_page_is_built()
    read = [_read(path) for path in dict.fromkeys(studies or ())]
    with bound(host, number) as listening, _opened(db, must_exist=not read) as database:
        _check_workers(processes, database.is_sqlite)
        named, others = _registered(database, read)
        base = _base(host, listening, path)
        _say_studies(named, others, base)
        _say_server(
            base, host, runner.get_researcher_path(database, new_link=new_researcher_link), database.address
        )
        runner.serve(
            database,
            listening,
            url=db,
            prefix=path,
            workers=processes,
            forwarded_allow_ips=forwarded_allow_ips,
            simulations=Simulations(model),
        )
        database.check_file_in_place()
    typer.echo("Stopped; everything that was acknowledged is stored.")


def _opened(db: str, *, must_exist: bool) -> "Database":
    from vseg import store

    try:
        return store.open(db, must_exist=must_exist)
    except NotFound as error:
        raise NotFound(f"{error} To begin with a new one, name a study file as well.") from None


def _registered(database: "Database", read: "list[Read]") -> "tuple[list[StudyRow], list[StudyRow]]":
    """The studies of the files, or all if there are none; and those that the database has besides."""
    from vseg import store

    rows = [store.studies.register(database, text, study, shown) for text, study, shown in read]
    there = store.studies.list_studies(database)
    if not there:
        raise NotFound(f"{database.address} has no study yet; name a study file: vseg serve my-study.toml.")
    named = {row.name for row in rows}
    return rows or there, [row for row in there if rows and row.name not in named]


def _read(path: Path) -> "Read":
    """A study file: its text, what it says, and its images."""
    from vseg.study import pictures, schema

    text = schema.read_study_text(path)
    loaded = schema.parse_study(text, str(path))
    return text, loaded, pictures.render_pictures(loaded, path.parent)


def _check_workers(processes: int, is_sqlite: bool) -> None:
    if processes > 1 and is_sqlite:
        raise InvalidInput(
            f"--workers {processes} needs PostgreSQL, since SQLite has one writer; leave --workers out, or "
            "give --db postgresql://…."
        )


def bound(host: str, port: int) -> socket.socket:
    """The socket, before anything is printed or written."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        if not 0 <= port < 65536:
            raise OverflowError
        bound = socket.socket(family, kind, protocol)
    except (socket.gaierror, OverflowError, UnicodeError):
        raise InvalidInput(
            f"--host and --port are an address of this computer and 0 to 65535, got {host!r} and {port}."
        ) from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(2048)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise Conflict(
                f"Port {port} of {host} is in use; stop what runs there or choose another --port."
            ) from None
        raise InvalidInput(f"Cannot listen on port {port} of {host}: {error.strerror}.") from None
    bound.set_inheritable(True)
    return bound


def _base(host: str, listening: socket.socket, prefix: str) -> str:
    name = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{listening.getsockname()[1]}{prefix}"


def _say_studies(rows: "list[StudyRow]", others: "list[StudyRow]", base: str) -> None:
    from vseg.server.participants import PROLIFIC_QUERY

    for row in rows:
        study = row.study
        link = f"{base}/s/{study.name}/"
        typer.echo(f"Study {study.name}")
        typer.echo(f"  participants  {link}")
        if study.prolific:
            typer.echo(f"  Prolific      {link}?{PROLIFIC_QUERY}")
        if row.status != "open":
            typer.echo(f"  note          It is {row.status}: nobody new can begin until you reopen it.")
        if "consent" not in study.texts:
            typer.echo(
                "  note          The consent is vseg's example; write your own in [texts] before people come."
            )
    if also := [row.name for row in others if row.status == "open"]:
        typer.echo(f"Also open here: {', '.join(also)} (in the database from before)")


def _say_server(base: str, host: str, path: str, place: str) -> None:
    once = " (works once: choose a name and a password there)" if "token=" in path else ""
    typer.echo(f"Researcher      {base}{path}{once}")
    typer.echo(f"Data            {Path(place).resolve() if '://' not in place else place}")
    if host in ("0.0.0.0", "::"):
        typer.echo("Other computers reach these pages under this computer's own name or address.")
    elif host in ("127.0.0.1", "localhost", "::1"):
        typer.echo(
            "Only this computer reaches these pages; --host 0.0.0.0 or a reverse proxy opens them to others."
        )
    typer.echo("Stop with Ctrl+C.")
