"""All studies, and a new one: from a starter or from a file of one's own."""

import re
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from vseg import store
from vseg.errors import VsegError
from vseg.server import api, http
from vseg.server.api.dependencies import make_etag, not_modified_response
from vseg.server.dashboard.context import read_form, redirect, render_fragment, render_page, require_login
from vseg.study.schema import LARGEST_FILE

STARTERS = {
    "patches": ("Coloured patches", "A short try-out: two minutes a person, answers that are known."),
    "textures": (
        "Two textures",
        "Oriented noise, as in the paper: one border that is easy to see, one that is not.",
    ),
    "photographs": ("Photographs", "Pictures that come with vseg, each cut into five segments."),
}
MOST_THUMBNAILS = 4


@require_login
async def studies_page(request: Request) -> Response:
    """All studies, how far they are; the live part of it alone if asked for."""
    shown = await http.run_in_thread(_cards, request)
    if "part" not in request.query_params:
        return await render_page(request, "studies.html", studies=shown)
    tag = make_etag(shown)
    answer = not_modified_response(request, tag) or await render_fragment(
        request, "parts/studies.html", studies=shown
    )
    answer.headers["ETag"] = tag
    return answer


@require_login
async def new_study_page(request: Request) -> Response:
    """A form for the study file, with a starter in it."""
    sample = request.query_params.get("sample", "")
    text = read_starter(sample) if sample in STARTERS else ""
    return await render_page(request, "new.html", starters=STARTERS, chosen=sample, text=text)


@require_login
async def create_study(request: Request) -> Response:
    """A new study from the text of its file; what is wrong with it is said above it."""
    given = await read_form(request, most=2 * LARGEST_FILE)
    text = given.get("text", "").replace("\r\n", "\n")
    try:
        row = await http.run_in_thread(api.register_study, request.app.state.db, text)
    except VsegError as error:
        status = http.get_status_code(error)
        return await render_page(request, "new.html", status=status, starters=STARTERS, text=text, said=error)
    return redirect(request, f"/studies/{row.name}")


def read_starter(name: str) -> str:
    """The text of a starter's study file."""
    folder = files("vseg.server.dashboard").joinpath("starters")
    return folder.joinpath(f"{name}.toml").read_text(encoding="utf-8")


def _cards(request: Request) -> list[dict[str, Any]]:
    db = request.app.state.db
    return [
        {
            **api.summarise_study(db, row, request),
            "pictures": [row.images[image.name].sha256 for image in row.study.images[:MOST_THUMBNAILS]],
            "images": len(row.study.images),
            "segments": row.study.segments,
            "layout": re.sub(r"(\d)x(\d)", r"\1 × \2", str(row.study.layout.build())),
        }
        for row in store.studies.list_studies(db)
    ]
