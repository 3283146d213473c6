"""The page of one study: progress, current map, data quality, participants, and the actions of the researcher."""

import math
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from vseg import monitor, store
from vseg.designs.precision import advised_precision, expected_precision
from vseg.errors import InvalidInput
from vseg.monitor import ParticipantSummary
from vseg.monitor.maps import answers_fingerprint
from vseg.server import http, simulated_participants
from vseg.server.api.posteriors import default_segments
from vseg.server.api.studies import participant_url
from vseg.server.dashboard import charts
from vseg.server.dashboard.context import (
    get_state,
    load_study,
    parse_whole_number,
    read_form,
    redirect,
    require_login,
)
from vseg.server.dashboard.posteriors import PosteriorView, get_posterior_view
from vseg.server.dashboard.study_overview import StudyOverview, render_live_page
from vseg.server.simulated_participants import Source
from vseg.store.studies import StudyRow
from vseg.study.schema import Study

SESSIONS_PER_PAGE = 50
FILTERS = {"all": "All", "look": "Needs review", "active": "In progress", "completed": "Completed"}
PACES = {"0": "without waiting", "0.1": "ten times as fast as people", "1": "at the speed of people"}
SOURCES = {
    "truth": "the true maps, if known",
    "picture": "the image",
    "model": "your model",
}
OBSERVERS = {"lapsing:0.05": "attentive (5 % lapses)", "ideal": "without errors", "random": "at random"}
STATUS_CHANGES: dict[str, Callable[[store.Database, str], None]] = {
    "pause": store.studies.pause,
    "close": store.studies.close,
    "reopen": store.studies.reopen,
}


@require_login
async def study_page(request: Request) -> Response:
    """Show one study; with ?part=live only the part that updates itself, 304 if it has not changed."""
    row = await load_study(request)
    return await render_live_page(
        request,
        row,
        "study",
        lambda overview, views: _page_values(request, row, overview, views),
        lambda overview: _get_posterior(request, row, overview),
    )


@require_login
async def change_status(request: Request) -> Response:
    """Pause, close or reopen a study."""
    await read_form(request)
    name, change = request.path_params["name"], STATUS_CHANGES.get(request.path_params["what"])
    if change is None:
        raise HTTPException(404)
    await http.run_in_thread(change, get_state(request).db, name)
    return redirect(request, f"/studies/{name}")


@require_login
async def start_simulation(request: Request) -> Response:
    """Send simulated participants to the study."""
    form = await read_form(request)
    row = await load_study(request)
    await http.run_in_thread(
        get_state(request).simulations.start,
        simulated_participants.own_address(request),
        row,
        count=parse_whole_number(form.get("count", ""), "The number of simulated participants"),
        source=cast(Source, form.get("source", "picture")),  # checked by `start`
        observer=form.get("observer", "lapsing:0.05"),
        pace=_parse_pace(form.get("pace", "0")),
    )
    return redirect(request, f"/studies/{row.name}#simulate")


def _parse_pace(text: str) -> float:
    try:
        pace = float(text)
    except ValueError:
        pace = math.nan
    if not 0 <= pace <= 10:
        raise InvalidInput(f"The pace should be 0 (no waiting) to 10 (slower than people), got {text!r:.20}.")
    return pace


def _get_selected_image(request: Request, row: StudyRow) -> str:
    """Return the image whose map is shown: the one in the query, or the first."""
    names = [image.name for image in row.study.images]
    name = request.query_params.get("image", "")
    return name if name in names else names[0]


def _get_posterior(request: Request, row: StudyRow, overview: StudyOverview) -> dict[str, PosteriorView]:
    """Return the posterior of the image that is shown."""
    image, segments = _get_selected_image(request, row), default_segments(row.study)
    return {image: get_posterior_view(request, row, overview.answers, image, None, segments)}


def _page_values(
    request: Request, row: StudyRow, overview: StudyOverview | None, views: dict[str, PosteriorView]
) -> dict[str, Any]:
    """Return the values of the page's template."""
    state, query = get_state(request), request.query_params
    image = _get_selected_image(request, row)
    values = {
        "locations": len(row.study.layout.build()),
        "image": image,
        "job": state.simulations.find_job(row.name),
        "link": participant_url(request, row.name),
        "start_limits": store.sessions.get_start_limits(state.db, row),
        "sources": {name: SOURCES[name] for name in state.simulations.sources},
        "paces": PACES,
        "observers": OBSERVERS,
        "max_simulated": simulated_participants.MAX_PARTICIPANTS,
        "query": urlencode({name: query[name] for name in ("image", "show", "page") if name in query}),
    }
    if overview is None:
        return values
    values["adaptive_progress"] = monitor.count_choices(row, overview.answers)
    return (
        values
        | _progress_values(overview, image, views[image].number_of_segments, row.study)
        | _session_values(overview.sessions, request)
    )


def _progress_values(
    overview: StudyOverview, image: str, segments: int | None, study: Study
) -> dict[str, Any]:
    """Return the numbers of a study; `segments` is None while the evidence has not chosen it."""
    progress, planned_segments = overview.progress, study.planned_segments
    fewest = min(progress.images, key=lambda each: each.answers_each)
    return {
        "segments": segments,
        "progress": progress,
        "image_progress": next(each for each in progress.images if each.name == image),
        "readiness": monitor.check_map_readiness(
            overview.answers, image, segments=segments or planned_segments, pooled=study.design.is_pooled
        ),
        "max_entropy": math.log(segments or planned_segments),
        "map_version": answers_fingerprint(overview.answers, image)[:12],
        "fewest": fewest,
        "expected": expected_precision(planned_segments, fewest.answers_each),
        "expected_advised": advised_precision(planned_segments),
        "last_at_ms": max(
            (session.last_at_ms for session in overview.sessions if session.answers), default=None
        ),
        "charts": [
            charts.hourly_chart(progress.per_hour),
            charts.histogram_chart(
                "Reaction time", progress.rt_ms, x_label="reaction time", y_label="answers"
            ),
            charts.histogram_chart(
                "Time to complete", progress.minutes, x_label="duration", y_label="participants"
            ),
        ],
    }


def _session_values(sessions: list[ParticipantSummary], request: Request) -> dict[str, Any]:
    """Return one page of the selected sessions: first those that need review, then by the time of the last answer."""
    show = request.query_params.get("show", "all")
    show = show if show in FILTERS else "all"
    groups = {
        "all": sessions,
        "look": [session for session in sessions if session.reasons],
        "active": [session for session in sessions if session.status == "active"],
        "completed": [session for session in sessions if session.status == "completed"],
    }
    selected = sorted(groups[show], key=lambda session: (not session.reasons, -(session.last_at_ms or 0)))
    pages = max(1, math.ceil(len(selected) / SESSIONS_PER_PAGE))
    text = request.query_params.get("page", "1")
    number = min(int(text), pages) if text.isascii() and text.isdecimal() and len(text) < 6 else 1
    start = (max(number, 1) - 1) * SESSIONS_PER_PAGE
    return {
        "sessions": selected[start : start + SESSIONS_PER_PAGE],
        "show": show,
        "filters": {name: (label, len(groups[name])) for name, label in FILTERS.items()},
        "page_number": max(number, 1),
        "pages": pages,
    }
