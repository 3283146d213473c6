"""The maps of one image: of everyone together or of one participant, by segments and smoothness; and the posterior."""

import math
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from vseg import monitor, store
from vseg.errors import InvalidInput, NotFound, VsegError
from vseg.monitor.maps import MOST_SEGMENTS
from vseg.server import http
from vseg.server.api.posteriors import CHOOSER, EVIDENCE, default_segments
from vseg.server.dashboard.context import require_login
from vseg.server.dashboard.overview import Overview, render_live_page
from vseg.server.dashboard.posteriors import PosteriorView, get_posterior_view
from vseg.store.studies import StudyRow

SAME = "same"  # the posterior with as many segments as the classic map beside it
MOST_DRAWINGS = 40  # drawn over each other; more would only hide the picture
SMOOTHNESS = {
    "auto": "chosen by the answers",
    "0": "0: none",
    "0.01": "0.01: hardly any",
    "0.1": "0.1: weak",
    "1": "1: medium",
    "10": "10: strong",
    "100": "100: very strong",
}


@dataclass(frozen=True)
class MapSelection:
    """Which maps are asked for."""

    image: str
    segments: int
    smoothness: str
    participant: str
    posterior: str

    @property
    def strength(self) -> float | str:
        """What `monitor.fitted` takes."""
        return "auto" if self.smoothness == "auto" else float(self.smoothness)

    @property
    def query(self) -> str:
        """The same as part of an address: what the classic maps follow from."""
        asked = {"segments": self.segments, "smoothness": self.smoothness}
        return urlencode(asked | ({"participant": self.participant} if self.participant else {}))

    @property
    def page_query(self) -> str:
        """All of it, for the page itself."""
        return f"{self.query}&{urlencode({'posterior': self.posterior})}"


@require_login
async def image_page(request: Request) -> Response:
    """The maps of one image; ?part=live its counts and pictures, ?part=fit the numbers of the fit."""
    row = await http.run_in_thread(store.studies.get_study, request.app.state.db, request.path_params["name"])
    choice = parse_selection(request, row)
    if request.query_params.get("part") == "fit":
        return await render_live_page(request, row, "image", lambda glance: _fit(choice, glance))
    return await render_live_page(
        request,
        row,
        "image",
        lambda glance: _values(request, row, choice, glance),
        lambda glance: {choice.image: _belief(request, row, choice, glance)},
    )


def _belief(request: Request, row: StudyRow, choice: MapSelection, glance: Overview) -> PosteriorView:
    segments = str(choice.segments) if choice.posterior == SAME else choice.posterior
    return get_posterior_view(
        request, row, glance.answers, choice.image, choice.participant or None, segments
    )


def parse_selection(request: Request, row: StudyRow) -> MapSelection:
    """What the address asks for, or what the study suggests."""
    name, query = request.path_params["image"], request.query_params
    if name not in {image.name for image in row.study.images}:
        raise NotFound(f"Study {row.name!r} has no image {name!r:.80}.")
    segments = query.get("segments", str(row.study.planned_segments))
    if not (segments.isascii() and segments.isdecimal() and 2 <= int(segments[:3]) <= MOST_SEGMENTS):
        raise InvalidInput(f"A map has 2 to {MOST_SEGMENTS} segments, got {segments!r:.20}.")
    smoothness = query.get("smoothness", "auto")
    if smoothness != "auto":
        try:
            strength = float(smoothness)
        except ValueError:
            strength = math.nan
        if not 0 <= strength < math.inf:
            raise InvalidInput(f'The smoothness is "auto" or a number from 0 up, got {smoothness!r:.20}.')
    participant = query.get("participant", "")
    possible = posterior_options(row, participant)
    posterior = query.get("posterior", "")
    return MapSelection(
        name,
        int(segments),
        smoothness,
        participant,
        posterior if posterior in possible else next(iter(possible)),
    )


def posterior_options(row: StudyRow, participant: str) -> dict[str, str]:
    """Which posteriors there are to choose from, the usual one first."""
    chooser = (
        {CHOOSER: "what pairs are chosen by"} if default_segments(row, participant or None) == CHOOSER else {}
    )
    return {**chooser, EVIDENCE: "K chosen by the evidence", SAME: "K as in the classic map"}


def map_values(request: Request, row: StudyRow, glance: Overview, choice: MapSelection) -> dict[str, Any]:
    """How many answers there are for these maps, how many they need, and what was drawn by hand."""
    who = choice.participant or None
    drawn = []
    if row.study.contours.draw:
        drawn = monitor.contours(request.app.state.db, row, choice.image, who, most=MOST_DRAWINGS)
    return {
        "choice": choice,
        "picture": row.images[choice.image],
        "most_entropy": math.log(choice.segments),
        "need": monitor.need(glance.answers, choice.image, participant=who, segments=choice.segments),
        "state": monitor.maps.state(glance.answers, choice.image, who)[:12],
        "drawn": len(drawn),
        "most_drawings": MOST_DRAWINGS,
        "lines": [_points(line) for each in drawn for line in each.data["contours"]],
    }


def _points(line: list[list[float]]) -> str:
    """A drawn line as SVG wants it."""
    return " ".join(f"{x:g},{y:g}" for x, y in line)


def _values(request: Request, row: StudyRow, choice: MapSelection, glance: Overview | None) -> dict[str, Any]:
    values = {
        "picture": row.images[choice.image],
        "choice": choice,
        "smoothnesses": SMOOTHNESS
        | ({} if choice.smoothness in SMOOTHNESS else {choice.smoothness: choice.smoothness}),
        "most_segments": MOST_SEGMENTS,
        "posteriors": posterior_options(row, choice.participant),
    }
    if glance is None:
        return values | {"participants": []}
    people = [person for person in glance.people if choice.image in person.images]
    names = sorted({person.participant for person in people})
    if choice.participant and choice.participant not in {person.participant for person in glance.people}:
        raise NotFound(f"Study {row.name!r} has no participant {choice.participant!r:.80}.")
    found = next(each for each in glance.progress.images if each.name == choice.image)
    return values | map_values(request, row, glance, choice) | {"participants": names, "found": found}


def _fit(choice: MapSelection, glance: Overview | None) -> dict[str, Any]:
    """What the reconstruction says of itself; computed for the pictures anyway."""
    if glance is None:
        return {"choice": choice, "fit": None, "said": ""}
    try:
        fit = monitor.fitted(
            glance.answers,
            choice.image,
            participant=choice.participant or None,
            segments=choice.segments,
            smoothness=choice.strength,
        )
    except VsegError as error:
        return {"choice": choice, "fit": None, "said": str(error)}
    shares = fit.maps.probabilities.mean(axis=0).tolist()
    return {
        "choice": choice,
        "fit": fit,
        "said": "",
        "shares": shares,
        "most_entropy": math.log(choice.segments),
    }
