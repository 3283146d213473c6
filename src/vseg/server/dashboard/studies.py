"""The list of all studies, and creating a study from a starter or from the researcher's own file."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from vseg import store
from vseg.errors import VsegError
from vseg.server import http
from vseg.server.api.dependencies import make_etag, not_modified_response
from vseg.server.api.schemas import StudySummary
from vseg.server.api.studies import register_study, summarise_study_row
from vseg.server.dashboard.context import (
    get_state,
    read_form,
    redirect,
    render_fragment,
    render_page,
    require_login,
)
from vseg.study.schema import LARGEST_FILE
from vseg.study.starters import Starter, read_starter

STARTERS: dict[Starter, tuple[str, str]] = {
    "patches": ("Coloured patches", "A short test: two minutes per participant, with known segments."),
    "texture": (
        "Two textures",
        "The paper’s experiment with oriented noise: one boundary is easy to see, the other is not.",
    ),
    "example": ("One photograph", "The paper’s example session: three segments, 19 × 19 locations."),
    "photographs": ("Photographs", "Photographs that come with vseg, with five segments each."),
}
MAX_THUMBNAILS = 4


@dataclass(frozen=True)
class StudyCard:
    """A study in the list; `thumbnails` are the SHA-256 of its first images."""

    summary: StudySummary
    thumbnails: list[str]
    images: int
    segments: int | Literal["free"]
    layout: str


@require_login
async def studies_page(request: Request) -> Response:
    """Show all studies; with ?part=live only the list, 304 if it has not changed."""
    cards = await http.run_in_thread(_list_cards, request)
    if "part" not in request.query_params:
        return await render_page(request, "studies.html", cards=cards)
    etag = make_etag(cards)
    response = not_modified_response(request, etag)
    if response is None:
        response = await render_fragment(request, "parts/studies.html", cards=cards)
    response.headers["ETag"] = etag
    return response


@require_login
async def new_study_page(request: Request) -> Response:
    """Show a form with the text of a study file, filled from a starter."""
    sample = request.query_params.get("sample", "")
    text = next((read_starter(name, name) for name in STARTERS if name == sample), "")
    return await render_page(request, "new_study.html", starters=STARTERS, sample=sample, text=text)


@require_login
async def create_study(request: Request) -> Response:
    """Create a study from the text of its file; if it is not valid, show the form again with the error."""
    form = await read_form(request, max_bytes=2 * LARGEST_FILE)
    text = form.get("text", "").replace("\r\n", "\n")
    try:
        db = get_state(request).db
        row = await http.run_one_at_a_time(partial(register_study, db, text))
    except VsegError as error:
        status = http.get_status_code(error)
        return await render_page(
            request, "new_study.html", status=status, starters=STARTERS, text=text, error=error
        )
    return redirect(request, f"/studies/{row.name}")


def _list_cards(request: Request) -> list[StudyCard]:
    db = get_state(request).db
    return [
        StudyCard(
            summary=summarise_study_row(db, row, request),
            thumbnails=[row.images[image.name].sha256 for image in row.study.images[:MAX_THUMBNAILS]],
            images=len(row.study.images),
            segments=row.study.segments,
            layout=re.sub(r"(\d)x(\d)", r"\1 × \2", str(row.study.layout.build())),
        )
        for row in store.studies.list_studies(db)
    ]
