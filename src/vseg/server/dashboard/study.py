"""One study: its people, its live map, how well it runs, and what can be done with it."""

import math
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from vseg import monitor, store
from vseg.errors import InvalidInput
from vseg.monitor import Person
from vseg.server import api, http, simulated_participants
from vseg.server.dashboard import charts
from vseg.server.dashboard.context import read_form, redirect, require_login
from vseg.server.dashboard.overview import Overview, render_live_page
from vseg.server.dashboard.posteriors import PosteriorView
from vseg.store.studies import StudyRow

PEOPLE_A_PAGE = 50
SHOWN = {"all": "Everyone", "look": "Worth a look", "active": "Under way", "completed": "Completed"}
PACES = {"0": "as fast as they can", "0.1": "ten times as fast as people", "1": "as slowly as people"}
SOURCES = {
    "truth": "the true maps, where known",
    "picture": "the picture itself",
    "model": "your own model (--model)",
}
OBSERVERS = {"lapsing:0.05": "attentive (5 % lapses)", "ideal": "flawless", "random": "guessing"}
STATUS = {"pause": "paused", "close": "closed", "reopen": "open"}


@require_login
async def study_page(request: Request) -> Response:
    """One study; with ?part=live what changes by itself, 304 where nothing has."""
    row = await http.run_in_thread(store.studies.get_study, request.app.state.db, request.path_params["name"])
    return await render_live_page(
        request,
        row,
        "study",
        lambda glance: _values(request, row, glance),
        lambda glance: _belief(request, row, glance),
    )


@require_login
async def change_status(request: Request) -> Response:
    """Pause, close or reopen a study."""
    await read_form(request)
    name, what = request.path_params["name"], request.path_params["what"]
    if what not in STATUS:
        raise HTTPException(404)
    await http.run_in_thread(getattr(store.studies, what), request.app.state.db, name)
    return redirect(request, f"/studies/{name}")


@require_login
async def start_simulation(request: Request) -> Response:
    """Send simulated participants through the study."""
    given = await read_form(request)
    name = request.path_params["name"]
    row = await http.run_in_thread(store.studies.get_study, request.app.state.db, name)
    settings: dict[str, Any] = {
        "count": parse_whole_number(given.get("count", ""), "The number of simulated participants"),
        "source": given.get("source", "picture"),
        "observer": given.get("observer", "lapsing:0.05"),
        "pace": _pace(given.get("pace", "0")),
    }
    address = simulated_participants.own_address(request)
    await http.run_in_thread(request.app.state.simulations.start, address, row, **settings)
    return redirect(request, f"/studies/{name}#simulate")


def parse_whole_number(text: str, what: str) -> int:
    """The whole number in a field of a form."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise InvalidInput(f"{what} is a whole number, got {text!r:.20}.")
    return int(text)


def _pace(text: str) -> float:
    try:
        pace = float(text)
    except ValueError:
        pace = math.nan
    if not 0 <= pace <= 10:
        raise InvalidInput(f"The pace is 0 (no waiting) to 10 (slower than people), got {text!r:.20}.")
    return pace


def _chosen(request: Request, row: StudyRow) -> str:
    """The image whose map is shown."""
    names = [image.name for image in row.study.images]
    return asked if (asked := request.query_params.get("image", "")) in names else names[0]


def _belief(request: Request, row: StudyRow, glance: Overview) -> dict[str, PosteriorView]:
    """What the image's own page said last of its posterior: here nothing is worked out."""
    chosen = _chosen(request, row)
    known = request.app.state.glances.recalled(row, chosen, glance.answers)
    return {chosen: known} if known else {}


def _values(request: Request, row: StudyRow, glance: Overview | None) -> dict[str, Any]:
    """Everything the page shows."""
    state, query = request.app.state, request.query_params
    chosen = _chosen(request, row)
    values = {
        "locations": len(row.study.layout.build()),
        "chosen": chosen,
        "job": state.simulations.find_job(row.name),
        "link": api.participant_url(request, row.name),
        "sources": {name: SOURCES[name] for name in state.simulations.sources},
        "paces": PACES,
        "observers": OBSERVERS,
        "most_simulated": simulated_participants.MAX_PARTICIPANTS,
        "query": urlencode({name: query[name] for name in ("image", "show", "page") if name in query}),
    }
    if glance is None:
        return values
    values["adapted"] = monitor.adapted(row, glance.answers)
    return values | _numbers(glance, chosen, row.study.planned_segments) | _people(glance.people, request)


def _numbers(glance: Overview, chosen: str, segments: int) -> dict[str, Any]:
    found = glance.progress
    return {
        "progress": found,
        "hero": next(image for image in found.images if image.name == chosen),
        "need": monitor.need(glance.answers, chosen, segments=segments),
        "most_entropy": math.log(segments),
        "state": monitor.maps.state(glance.answers, chosen)[:12],
        "advised": sum(image.advised for image in found.images),
        "last_at_ms": max((person.last_at_ms for person in glance.people if person.answers), default=None),
        "charts": [
            charts.hourly_chart(found.per_hour),
            charts.histogram_chart("Reaction time", found.rt_ms, counted="answers", x_label="reaction time"),
            charts.histogram_chart("Time to complete", found.minutes, counted="people", x_label="duration"),
        ],
    }


def _people(people: list[Person], request: Request) -> dict[str, Any]:
    """One page of the people that are asked for: first those worth a look, then who answered last."""
    show = request.query_params.get("show", "all")
    show = show if show in SHOWN else "all"
    groups = {
        "all": people,
        "look": [person for person in people if person.reasons],
        "active": [person for person in people if person.status == "active"],
        "completed": [person for person in people if person.status == "completed"],
    }
    wanted = sorted(groups[show], key=lambda person: (not person.reasons, -(person.last_at_ms or 0)))
    pages = max(1, math.ceil(len(wanted) / PEOPLE_A_PAGE))
    asked = request.query_params.get("page", "1")
    number = min(int(asked), pages) if asked.isascii() and asked.isdecimal() and len(asked) < 6 else 1
    start = (max(number, 1) - 1) * PEOPLE_A_PAGE
    return {
        "people": wanted[start : start + PEOPLE_A_PAGE],
        "show": show,
        "shown_choices": {name: (label, len(groups[name])) for name, label in SHOWN.items()},
        "page_number": max(number, 1),
        "pages": pages,
    }
