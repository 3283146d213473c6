"""The page of one image: the posterior of all participants or one, and the maps of the penalised estimator."""

import math
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from vseg import monitor
from vseg.errors import InvalidInput, NotFound, VsegError
from vseg.monitor.maps import MAX_SEGMENTS, MIN_SEGMENTS, answers_fingerprint
from vseg.monitor.posterior_summary import has_chooser
from vseg.server.api.images import find_image
from vseg.server.api.posteriors import CHOOSER, EVIDENCE, default_segments
from vseg.server.dashboard.context import get_state, load_study, require_login
from vseg.server.dashboard.posteriors import PosteriorView, get_posterior_view
from vseg.server.dashboard.study_overview import StudyOverview, render_live_page
from vseg.store.studies import StudyRow

ALL_ANSWERS = "answers"  # the posterior from all answers, not the chooser's
MAX_DRAWINGS = 40  # drawn on top of each other; more would hide the image
SMOOTHNESS = {
    "auto": "chosen by cross-validation",
    "0": "0: none",
    "0.01": "0.01: very weak",
    "0.1": "0.1: weak",
    "1": "1: medium",
    "10": "10: strong",
    "100": "100: very strong",
}


@dataclass(frozen=True)
class MapSelection:
    """Which maps a page shows.

    `segments` is K or "auto", `participant` is "" for all participants, `posterior` a key of `posterior_options`;
    `smoothness` is that of the penalised estimator.
    """

    image: str
    segments: str
    smoothness: str
    participant: str
    posterior: str

    @property
    def smoothness_value(self) -> float | str:
        """λ as a number, or "auto"."""
        return "auto" if self.smoothness == "auto" else float(self.smoothness)

    @property
    def posterior_segments(self) -> str:
        """The posterior as the API names it: K, "auto" or "chooser"."""
        return CHOOSER if self.posterior == CHOOSER else self.segments

    def penalised_query(self, segments: int) -> str:
        """Return the query string of the penalised maps with this number of segments."""
        parameters = {"segments": segments, "smoothness": self.smoothness}
        return urlencode(parameters | ({"participant": self.participant} if self.participant else {}))

    @property
    def page_query(self) -> str:
        """The query string of the page."""
        return urlencode({name: value for name, value in asdict(self).items() if name != "image"})


@require_login
async def image_page(request: Request) -> Response:
    """Show the maps of one image.

    ?part=live returns its counts and pictures, ?part=fit the numbers of the fit, ?part=contours those of drawings.
    """
    row = await load_study(request)
    selection = parse_selection(request, row)
    if request.query_params.get("part") == "fit":
        return await render_live_page(
            request, row, "image", lambda overview, _: _fit_values(selection, overview)
        )
    if request.query_params.get("part") == "contours":
        return await render_live_page(
            request,
            row,
            "image",
            lambda overview, views: _contour_values(request, row, selection, views),
            lambda overview: {selection.image: get_selected_posterior(request, row, selection, overview)},
        )
    return await render_live_page(
        request,
        row,
        "image",
        lambda overview, views: _page_values(request, row, selection, overview, views),
        lambda overview: {selection.image: get_selected_posterior(request, row, selection, overview)},
    )


def get_selected_posterior(
    request: Request, row: StudyRow, selection: MapSelection, overview: StudyOverview
) -> PosteriorView:
    """Request the posterior of a selection and return what there is of it."""
    return get_posterior_view(
        request,
        row,
        overview.answers,
        selection.image,
        selection.participant or None,
        selection.posterior_segments,
    )


def parse_selection(request: Request, row: StudyRow) -> MapSelection:
    """Return the maps that the query selects; the defaults come from the study."""
    image, query = request.path_params["image"], request.query_params
    find_image(row, image)
    segments = query.get("segments", default_segments(row.study))
    if segments not in (EVIDENCE, *map(str, range(MIN_SEGMENTS, MAX_SEGMENTS + 1))):
        raise InvalidInput(
            f'A map has {MIN_SEGMENTS} to {MAX_SEGMENTS} segments, or "{EVIDENCE}" chooses, got {segments!r:.20}.'
        )
    smoothness = query.get("smoothness", "auto")
    if smoothness != "auto" and not _is_non_negative(smoothness):
        raise InvalidInput(f'The smoothness should be "auto" or a number from 0, got {smoothness!r:.20}.')
    participant = query.get("participant", "")
    options = posterior_options(row, participant)
    posterior = query.get("posterior", "")
    if posterior not in options:
        posterior = next(iter(options))
    return MapSelection(image, segments, smoothness, participant, posterior)


def _is_non_negative(text: str) -> bool:
    try:
        return 0 <= float(text) < math.inf
    except ValueError:
        return False


def posterior_options(row: StudyRow, participant: str) -> dict[str, str]:
    """Return the posteriors that the page offers, with their labels; the default one comes first."""
    options = {ALL_ANSWERS: "from all answers"}
    if has_chooser(row, participant or None):
        options[CHOOSER] = "used to choose pairs"
    return options


def map_values(
    request: Request, row: StudyRow, overview: StudyOverview, selection: MapSelection, view: PosteriorView
) -> dict[str, Any]:
    """Return how many answers these maps have and need, and the contours that participants drew.

    `segments` is the number of segments of the penalised maps, None while the evidence has not chosen it.
    """
    participant, segments = selection.participant or None, view.number_of_segments
    planned = row.study.planned_segments if segments is None else segments
    drawings = []
    if row.study.contours.draw:
        db = get_state(request).db
        drawings = monitor.load_contours(db, row, selection.image, participant, most=MAX_DRAWINGS)
    return {
        "selection": selection,
        "image_row": row.images[selection.image],
        "segments": segments,
        "penalised_query": "" if segments is None else selection.penalised_query(segments),
        "max_entropy": math.log(planned),
        "readiness": monitor.check_map_readiness(
            overview.answers,
            selection.image,
            participant=participant,
            segments=planned,
            pooled=row.study.design.is_pooled,
        ),
        "map_version": answers_fingerprint(overview.answers, selection.image, participant)[:12],
        "drawings": len(drawings),
        "max_drawings": MAX_DRAWINGS,
        "lines": [_svg_points(line) for drawing in drawings for line in drawing.data["contours"]],
    }


def _svg_points(line: list[list[float]]) -> str:
    """Return a drawn line as the `points` of an SVG polyline."""
    return " ".join(f"{x:g},{y:g}" for x, y in line)


def _page_values(
    request: Request,
    row: StudyRow,
    selection: MapSelection,
    overview: StudyOverview | None,
    views: dict[str, PosteriorView],
) -> dict[str, Any]:
    smoothness_options = {**SMOOTHNESS}
    smoothness_options.setdefault(selection.smoothness, selection.smoothness)
    values: dict[str, Any] = {
        "image_row": row.images[selection.image],
        "selection": selection,
        "smoothness_options": smoothness_options,
        "segment_options": [EVIDENCE, *map(str, range(MIN_SEGMENTS, MAX_SEGMENTS + 1))],
        "posterior_options": posterior_options(row, selection.participant),
        "participants": [],
    }
    if overview is None:
        return values
    if selection.participant and not overview.list_sessions(selection.participant):
        raise NotFound(f"Study {row.name!r} has no participant {selection.participant!r:.80}.")
    participants = overview.answers.list_participants(selection.image)
    if selection.participant and selection.participant not in participants:
        participants = sorted([*participants, selection.participant])
    values["participants"] = participants
    values["image_progress"] = next(each for each in overview.progress.images if each.name == selection.image)
    return values | map_values(request, row, overview, selection, views[selection.image])


def _fit_values(selection: MapSelection, overview: StudyOverview | None) -> dict[str, Any]:
    """Return the numbers of the penalised maps; the pictures of the page use the same fit."""
    values: dict[str, Any] = {"selection": selection, "fit": None, "error": ""}
    if overview is None:
        return values
    try:
        fit = monitor.fit_maps(
            overview.answers,
            selection.image,
            participant=selection.participant or None,
            segments=_require_number(selection.segments),
            smoothness=selection.smoothness_value,
        )
    except VsegError as error:
        return values | {"error": str(error)}
    return values | {
        "fit": fit,
        "penalised_query": selection.penalised_query(fit.maps.segments),
        "shares": fit.maps.probabilities.mean(axis=0).tolist(),
        "max_entropy": math.log(fit.maps.segments),
    }


def _contour_values(
    request: Request, row: StudyRow, selection: MapSelection, views: dict[str, PosteriorView]
) -> dict[str, Any]:
    """Return the F of drawn contours; the maps are those of the posterior on the page."""
    view = views.get(selection.image)
    drawings = monitor.load_contours(get_state(request).db, row, selection.image, most=MAX_DRAWINGS)
    participant = selection.participant or None
    if participant and participant not in {drawing.participant for drawing in drawings}:
        own = monitor.load_contours(get_state(request).db, row, selection.image, participant)
        drawings = [*drawings, *own]
    maps = view.posterior.maps if view is not None and view.posterior is not None else None
    scores = monitor.score_drawings(row, selection.image, drawings, maps, participant)
    return {"selection": selection, "scores": scores}


def _require_number(segments: str) -> int:
    if segments == EVIDENCE:
        raise InvalidInput(
            "The penalised estimator needs the number of segments; the posterior chooses it by evidence."
        )
    return int(segments)
