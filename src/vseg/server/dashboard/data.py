"""The data page of a study: the export and what it contains, links for participants, and the study file."""

import shlex
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from vseg import store
from vseg.server import http
from vseg.server.api.studies import create_personal_links, summarise_study_row
from vseg.server.dashboard.context import (
    get_state,
    load_study,
    parse_whole_number,
    read_form,
    render_page,
    require_login,
)
from vseg.store.studies import StudyRow

DEFAULT_DATABASE_FILE = "vseg.db"  # the default of every command (cli/options.py)


@require_login
async def data_page(request: Request) -> Response:
    """Show the download, the links and the study file."""
    return await _render(request, await load_study(request))


@require_login
async def create_links(request: Request) -> Response:
    """Create personal links and show them once."""
    form = await read_form(request)
    row = await load_study(request)
    count = parse_whole_number(form.get("count", ""), "The number of links")
    links = await http.run_in_thread(create_personal_links, request, get_state(request).db, row, count)
    return await _render(request, row, links=links)


@require_login
async def revoke_links(request: Request) -> Response:
    """Revoke the personal links that nobody has used."""
    await read_form(request)
    row = await load_study(request)
    revoked = await http.run_in_thread(store.sessions.revoke_links, get_state(request).db, row)
    return await _render(request, row, revoked=revoked)


async def _render(request: Request, row: StudyRow, **values: Any) -> Response:
    db = get_state(request).db
    file = Path(db.address).name if db.is_sqlite else ""
    return await render_page(
        request,
        "data.html",
        row=row,
        study=row.study,
        summary=await http.run_in_thread(summarise_study_row, db, row, request),
        unused_links=await http.run_in_thread(store.sessions.count_unused_links, db, row),
        max_links=store.sessions.MAX_LINKS,
        database_file=file,
        database_option=_database_option(file),
        **values,
    )


def _database_option(file: str) -> str:
    """Return the option with which a command finds a SQLite file; "" for the default file and for PostgreSQL.

    Nothing of PostgreSQL's address is shown, since it may contain a password.
    """
    return f" --db {shlex.quote(f'sqlite:///{file}')}" if file not in ("", DEFAULT_DATABASE_FILE) else ""
