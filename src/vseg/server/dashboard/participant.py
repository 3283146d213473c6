"""One participant: numbers, reasons to look closer, charts, maps of each image, and erasing them."""

from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from vseg import store
from vseg.errors import InvalidInput, NotFound
from vseg.monitor import Answers, Distribution, Person
from vseg.server import formatting, http
from vseg.server.api.posteriors import default_segments
from vseg.server.dashboard.charts import Chart, histogram_chart
from vseg.server.dashboard.context import read_form, render_page, require_login
from vseg.server.dashboard.image import MapSelection, map_values
from vseg.server.dashboard.overview import Overview, render_live_page
from vseg.server.dashboard.posteriors import PosteriorView, get_posterior_view
from vseg.store.studies import StudyRow

LONGEST_RT_MS = 5000  # of the chart; slower answers are drawn at its top


@require_login
async def participant_page(request: Request) -> Response:
    """One participant; with ?part=live what changes by itself."""
    row = await http.run_in_thread(store.studies.get_study, request.app.state.db, request.path_params["name"])
    return await render_live_page(
        request,
        row,
        "participant",
        lambda glance: _values(request, row, glance),
        lambda glance: _beliefs(request, row, glance),
    )


@require_login
async def erase_participant(request: Request) -> Response:
    """Erase a participant and everything of theirs, once it was confirmed."""
    given = await read_form(request)
    name, who = request.path_params["name"], request.path_params["participant"]
    if given.get("confirmed") != "yes":
        raise InvalidInput("Erasing cannot be undone: tick the box that says so, and send the form again.")
    row = await http.run_in_thread(store.studies.get_study, request.app.state.db, name)
    erased = await http.run_in_thread(store.sessions.erase, request.app.state.db, row, who)
    beyond = store.vacuum.OUT_OF_REACH
    return await render_page(
        request, "erased.html", row=row, study=row.study, who=who, erased=erased, out_of_reach=beyond
    )


def _values(request: Request, row: StudyRow, glance: Overview | None) -> dict[str, Any]:
    who = request.path_params["participant"]
    if glance is None:
        return {"who": who}
    people = glance.of(who)
    if not people:
        raise NotFound(
            f"Study {row.name!r} has no participant {who!r:.80} with data; they may have been erased."
        )
    usually = default_segments(row, who)
    choices = [
        MapSelection(image, row.study.planned_segments, "auto", who, usually)
        for image in _images(row, people)
    ]
    return {
        "who": who,
        "people": people,
        "adapted": _adapted(request, row, glance.answers, who),
        "reasons": list(dict.fromkeys(reason for person in people for reason in person.reasons)),
        "maps": [map_values(request, row, glance, choice) for choice in choices],
        "charts": _charts(glance.answers, who),
    }


def _images(row: StudyRow, people: list[Person]) -> list[str]:
    return list(dict.fromkeys(image for person in people for image in person.images if image in row.images))


def _beliefs(request: Request, row: StudyRow, glance: Overview) -> dict[str, PosteriorView]:
    """The posterior of each image from this participant's answers alone."""
    who = request.path_params["participant"]
    return {
        image: get_posterior_view(request, row, glance.answers, image, who, default_segments(row, who))
        for image in _images(row, glance.of(who))
    }


def _adapted(request: Request, row: StudyRow, answers: Answers, who: str) -> list[str]:
    """What an adaptive study knows of each image from this participant, a sentence each."""
    if not row.study.design.is_adaptive:
        return []
    shared = row.study.design.shared
    said = []
    for each in store.choices.list_outcomes(request.app.state.db, row.id, who):
        error, after = (
            f"expected error {each.expected_error:.3f}",
            formatting.format_count(each.answers, "answer"),
        )
        if not each.is_stop:
            said.append(f"{each.image}: {error} after {after}{' of everybody' if shared else ''}.")
            continue
        given = answers.tally(each.image, None if shared else who).trials  # some were on their way
        by_all = " by everybody" if shared else ""
        said.append(
            f"{each.image}: known well enough after {after} ({error}); {formatting.format_number(given)} were given{by_all}."
        )
    return said


def _charts(answers: Answers, who: str) -> list[Chart]:
    """Reaction times in the order of the answers, and how they are spread."""
    mine = np.isin(answers.session, answers.places(who)) & answers.used  # those that the median counts
    order = np.lexsort((answers.seq[mine], answers.session[mine]))
    times = answers.rt_ms[mine][order]
    spread = histogram_chart(
        "Reaction times", Distribution.of(times, "ms"), counted="answers", x_label="reaction time"
    )
    drawn = times.clip(0, LONGEST_RT_MS).round(1).tolist()
    numbers = list(range(1, len(drawn) + 1))
    said = "No answers yet."
    if drawn:
        said = f"{formatting.format_count(len(drawn), 'answer')}, from {times.min():,.0f} to {times.max():,.0f} ms."
    each = Chart(
        "Reaction time of each answer",
        "dots",
        numbers,
        drawn,
        "answer that counts, in order",
        "reaction time (ms)",
        said,
        [],
    )
    return [each, spread]
