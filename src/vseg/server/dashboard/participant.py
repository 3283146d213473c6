"""The page of one participant: numbers, warnings, charts and maps of each image; erasing the participant."""

from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from vseg import store
from vseg.errors import InvalidInput, NotFound
from vseg.monitor import Answers, Distribution, ParticipantSummary
from vseg.server import http
from vseg.server.api.posteriors import default_segments
from vseg.server.dashboard.charts import Chart, histogram_chart
from vseg.server.dashboard.context import get_state, load_study, read_form, render_page, require_login
from vseg.server.dashboard.image import ALL_ANSWERS, MapSelection, get_selected_posterior, map_values
from vseg.server.dashboard.posteriors import PosteriorView
from vseg.server.dashboard.study_overview import StudyOverview, render_live_page
from vseg.server.formatting import format_grouped_count, format_number
from vseg.store.studies import StudyRow

MAX_CHART_RT_MS = 5000  # slower answers are drawn at the top of the chart


@require_login
async def participant_page(request: Request) -> Response:
    """Show one participant; with ?part=live only the part that updates itself."""
    row = await load_study(request)
    return await render_live_page(
        request,
        row,
        "participant",
        lambda overview, views: _page_values(request, row, overview, views),
        lambda overview: _get_posteriors(request, row, overview),
    )


@require_login
async def erase_participant(request: Request) -> Response:
    """Erase a participant and all their data if the form confirms it."""
    form = await read_form(request)
    participant = request.path_params["participant"]
    if form.get("confirmed") != "yes":
        raise InvalidInput("Erasing cannot be undone: tick the box to confirm, and send the form again.")
    row = await load_study(request)
    erased = await http.run_in_thread(store.sessions.erase, get_state(request).db, row, participant)
    return await render_page(
        request,
        "erased.html",
        row=row,
        study=row.study,
        participant=participant,
        erased=erased,
        out_of_reach=store.vacuum.OUT_OF_REACH,
    )


def _page_values(
    request: Request, row: StudyRow, overview: StudyOverview | None, views: dict[str, PosteriorView]
) -> dict[str, Any]:
    participant = request.path_params["participant"]
    values: dict[str, Any] = {"participant": participant, "out_of_reach": store.vacuum.OUT_OF_REACH}
    if overview is None:
        return values
    sessions = overview.list_sessions(participant)
    if not sessions:
        raise NotFound(
            f"Study {row.name!r} has no participant {participant!r:.80} with data; they may have been erased."
        )
    return {
        **values,
        "sessions": sessions,
        "adaptive_notes": _describe_outcomes(request, row, overview.answers, participant),
        "reasons": list(dict.fromkeys(reason for session in sessions for reason in session.reasons)),
        "images": [
            map_values(request, row, overview, _select(row, image, participant), view)
            for image, view in views.items()
        ],
        "charts": _make_charts(overview.answers, participant),
    }


def _list_images(row: StudyRow, sessions: list[ParticipantSummary]) -> list[str]:
    images = (image for session in sessions for image in session.images if image in row.images)
    return list(dict.fromkeys(images))


def _select(row: StudyRow, image: str, participant: str) -> MapSelection:
    return MapSelection(image, default_segments(row.study), "auto", participant, ALL_ANSWERS)


def _get_posteriors(request: Request, row: StudyRow, overview: StudyOverview) -> dict[str, PosteriorView]:
    """Return the posterior of each image from this participant's answers only."""
    participant = request.path_params["participant"]
    return {
        image: get_selected_posterior(request, row, _select(row, image, participant), overview)
        for image in _list_images(row, overview.list_sessions(participant))
    }


def _describe_outcomes(request: Request, row: StudyRow, answers: Answers, participant: str) -> list[str]:
    """Describe, in a sentence per image, how precise the maps of an adaptive study are and whether it stopped early."""
    if not row.study.design.is_adaptive:
        return []
    is_shared = row.study.design.shared
    by_all = " by all participants" if is_shared else ""
    sentences = []
    for outcome in store.choices.list_outcomes(get_state(request).db, row.id, participant):
        error = f"expected error {outcome.expected_error:.3f}"
        count = format_grouped_count(outcome.answers, "answer")
        if not outcome.is_stop:
            sentences.append(f"{outcome.image}: {error} after {count}{by_all}.")
            continue
        # More answers than at the stop: some were already being given.
        total = answers.tally(outcome.image, None if is_shared else participant).trials
        sentences.append(
            f"{outcome.image}: precise enough after {count} ({error}); {format_number(total)} were given{by_all}."
        )
    return sentences


def _make_charts(answers: Answers, participant: str) -> list[Chart]:
    """Return the reaction times in the order of the answers, and their distribution."""
    rows = np.isin(answers.session, answers.session_indices(participant)) & answers.used
    order = np.lexsort((answers.seq[rows], answers.session[rows]))
    times = answers.rt_ms[rows][order]
    summary = "No answers yet."
    if len(times):
        summary = (
            f"{format_grouped_count(len(times), 'answer')}, from {times.min():,.0f} to {times.max():,.0f} ms."
        )
    sequence = Chart(
        "Reaction time of each answer",
        "dots",
        x=list(range(1, len(times) + 1)),
        y=times.clip(0, MAX_CHART_RT_MS).round(1).tolist(),
        x_label="answers in use, in order",
        y_label="reaction time (ms)",
        summary=summary,
        rows=[],
    )
    distribution = histogram_chart(
        "Reaction times", Distribution.from_values(times, "ms"), x_label="reaction time", y_label="answers"
    )
    return [sequence, distribution]
