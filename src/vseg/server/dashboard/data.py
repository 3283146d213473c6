"""The data of a study: the export and what is in it, links for participants, and the study file."""

import shlex
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from vseg import store
from vseg.server import api, http
from vseg.server.dashboard.context import read_form, render_page, require_login
from vseg.server.dashboard.study import parse_whole_number
from vseg.store.studies import StudyRow

DEFAULT_FILE = "vseg.db"  # where a command without --db looks (cli/serve.py)


@require_login
async def data_page(request: Request) -> Response:
    """Download, links, file."""
    row = await http.run_in_thread(store.studies.get_study, request.app.state.db, request.path_params["name"])
    return await _shown(request, row)


@require_login
async def create_links(request: Request) -> Response:
    """Make personal links, which are shown this once."""
    given = await read_form(request)
    db, name = request.app.state.db, request.path_params["name"]
    row = await http.run_in_thread(store.studies.get_study, db, name)
    count = parse_whole_number(given.get("count", ""), "The number of links")
    tokens = await http.run_in_thread(store.sessions.create_links, db, row, count)
    link = api.participant_url(request, name)
    return await _shown(request, row, links=[f"{link}?link={token}" for token in tokens])


@require_login
async def revoke_links(request: Request) -> Response:
    """Make the personal links that nobody has used worthless."""
    await read_form(request)
    db, name = request.app.state.db, request.path_params["name"]
    row = await http.run_in_thread(store.studies.get_study, db, name)
    return await _shown(request, row, revoked=await http.run_in_thread(store.sessions.revoke_links, db, row))


async def _shown(request: Request, row: StudyRow, **values: Any) -> Response:
    db = request.app.state.db
    summary = await http.run_in_thread(api.summarise_study, db, row, request)
    values |= {
        "unused_links": await http.run_in_thread(store.sessions.count_unused_links, db, row),
        "most_links": store.sessions.MAX_LINKS,
    }
    values |= _database(db)
    return await render_page(request, "data.html", row=row, study=row.study, summary=summary, **values)


def _database(db: store.Database) -> dict[str, str]:
    """How a command finds a SQLite file; of a PostgreSQL's address nothing is shown."""
    file = Path(db.address).name if db.is_sqlite else ""
    option = f" --db {shlex.quote(f'sqlite:///{file}')}" if file not in ("", DEFAULT_FILE) else ""
    return {"database_file": file, "database_option": option}
