"""`vseg serve`: run studies for participants with a browser."""

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vseg._support import user_code
from vseg.cli import options
from vseg.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from vseg.store import Database
    from vseg.store.studies import StudyRow
    from vseg.study.pictures import Picture
    from vseg.study.schema import Study

    LoadedStudy = tuple[str, Study, dict[str, Picture]]

NETWORK = "Network"

StudiesArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="STUDY",
        help="Study files [default: serve the studies in the database].",
        show_default=False,
    ),
]
HostOption = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Address to listen on.", rich_help_panel=NETWORK)
]
PortOption = Annotated[
    int,
    typer.Option(
        min=0, max=65535, metavar="NUMBER", help="Port; 0 takes a free one.", rich_help_panel=NETWORK
    ),
]
PrefixOption = Annotated[
    str,
    typer.Option(
        metavar="PATH", help="Path prefix behind a reverse proxy, such as /vseg.", rich_help_panel=NETWORK
    ),
]
WorkersOption = Annotated[
    int, typer.Option(min=1, metavar="NUMBER", help="Number of processes; more than 1 needs PostgreSQL.")
]
ProxiesOption = Annotated[
    str,
    typer.Option(
        metavar="LIST",
        help="Reverse proxies whose X-Forwarded-… headers are trusted.",
        rich_help_panel=NETWORK,
    ),
]
NewLinkOption = Annotated[
    bool, typer.Option("--new-researcher-link", help="Print a one-time link to set a password.")
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.py[:NAME]",
        help="Your model that simulated participants can use: image -> labels or probabilities.",
    ),
]


def serve(
    studies: StudiesArgument = None,
    db: options.DatabaseOption = options.DEFAULT_DATABASE,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8000,
    prefix: PrefixOption = "",
    workers: WorkersOption = 1,
    forwarded_allow_ips: ProxiesOption = "127.0.0.1",
    new_researcher_link: NewLinkOption = False,
    model: ModelOption = None,
) -> None:
    """Serve studies to participants.

    Each STUDY is checked and stored in the database; the links for participants and for the researcher are printed.
    Without a STUDY, the studies in the database are served, for example after vseg restore. Stop the server with
    Ctrl+C: everything that was acknowledged is stored.

    \b
    Examples:
      vseg serve two-textures/study.toml
      vseg serve study.toml --db postgresql://vseg@localhost/vseg --workers 2 --prefix /vseg
      vseg serve --db sqlite:///vseg-restored.db
    """
    gc.disable()  # until the server runs: otherwise garbage collection takes a fifth of the start
    if sys.stderr.isatty():  # the start may take half a minute on a slow computer
        typer.echo("Starting …", err=True)

    from vseg.server import runner
    from vseg.server.app import check_page_is_built, check_prefix
    from vseg.server.simulated_participants import Simulations
    from vseg.server.sockets import get_base_url, open_socket

    if model is not None:
        user_code.load_function(model)  # report its errors now, not when a researcher uses it
    path = check_prefix(prefix)
    check_page_is_built()
    loaded = [_load_study(file) for file in dict.fromkeys(studies or ())]
    with open_socket(host, port) as listening, _open_database(db, must_exist=not loaded) as database:
        if workers > 1 and database.is_sqlite:
            raise InvalidInput(
                f"--workers {workers} needs PostgreSQL, since SQLite allows one writer; leave --workers out, or use "
                "--db postgresql://…."
            )
        rows, others = _register_studies(database, loaded)
        base = get_base_url(host, listening, path)
        _print_studies(rows, others, base)
        researcher_path = runner.get_researcher_path(database, new_link=new_researcher_link)
        _print_server(base, host, researcher_path, database.address)
        runner.serve(
            database, listening, url=db, prefix=path, workers=workers, forwarded_allow_ips=forwarded_allow_ips,
            simulations=Simulations(model),
        )  # fmt: skip
        if database.is_sqlite:  # a PostgreSQL server that does not answer would delay the stop without end
            database.check_health()
    database.check_file_in_place()  # closing it has written to the file
    typer.echo("Stopped; everything that was acknowledged is stored.")


def _load_study(file: Path) -> "LoadedStudy":
    # Imported only for study files: a restart without them is quicker.
    from vseg.study.pictures import load_study_with_pictures

    return load_study_with_pictures(options.check_study_file(file))


def _open_database(db: str, *, must_exist: bool) -> "Database":
    from vseg import store

    try:
        return store.open(db, must_exist=must_exist)
    except NotFound as error:
        raise NotFound(f"{error} To create a new database, name a study file as well.") from None


def _register_studies(
    database: "Database", loaded: "list[LoadedStudy]"
) -> "tuple[list[StudyRow], list[StudyRow]]":
    """Store the studies; return them, or all studies of the database if there are none, and the remaining studies."""
    from vseg import store

    rows = [store.studies.register(database, *study) for study in loaded]
    stored = store.studies.list_studies(database)
    if not stored:
        raise NotFound(f"{database.address} has no study yet; name a study file: vseg serve my-study.toml.")
    names = {row.name for row in rows}
    return rows or stored, [row for row in stored if rows and row.name not in names]


def _print_studies(rows: "list[StudyRow]", others: "list[StudyRow]", base: str) -> None:
    from vseg.server.participant_routes import PROLIFIC_QUERY

    for row in rows:
        link = f"{base}/s/{row.name}/"
        typer.echo(f"Study {row.name}")
        typer.echo(f"  participants  {link}")
        if row.study.prolific:
            typer.echo(f"  Prolific      {link}?{PROLIFIC_QUERY}")
        if row.status != "open":
            typer.echo(
                f"  note          It is {row.status}: new participants cannot begin until you reopen it."
            )
        if "consent" not in row.study.texts:
            typer.echo(
                "  note          The consent is vseg's example; write your own in [texts] before people take part."
            )
    if also := [row.name for row in others if row.status == "open"]:
        typer.echo(f"Also open in this database: {', '.join(also)}")


def _print_server(base: str, host: str, researcher_path: str, database: str) -> None:
    once = " (works once: choose a name and a password there)" if "token=" in researcher_path else ""
    typer.echo(f"Researcher      {base}{researcher_path}{once}")
    typer.echo(f"Data            {Path(database).resolve() if '://' not in database else database}")
    if host in ("0.0.0.0", "::"):
        typer.echo("Other computers reach these pages under this computer's own name or address.")
    elif host in ("127.0.0.1", "localhost", "::1"):
        typer.echo(
            "Only this computer can reach these pages; use --host 0.0.0.0 or a reverse proxy to open them to others."
        )
    typer.echo("Stop with Ctrl+C.")
