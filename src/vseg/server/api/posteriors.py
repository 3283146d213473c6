"""The posterior of an image, computed in the background; the dashboard uses `request_posterior`, too."""

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from vseg import __version__, monitor, store
from vseg.errors import InvalidInput
from vseg.monitor import Answers, PosteriorStatus, PosteriorSummary, posterior_summary, tiles
from vseg.monitor.maps import answers_fingerprint
from vseg.monitor.posterior_summary import has_chooser, read_answers_in_chooser_order
from vseg.server.api.dependencies import (
    RequestedStudy,
    get_state,
    load_answers,
    make_etag,
    not_modified_response,
)
from vseg.server.api.images import (
    DECIMALS,
    FIGURE_RESPONSES,
    FIGURE_TYPES,
    NPZ,
    PNG,
    FigureKind,
    ImageName,
    OnlyParticipant,
    find_image,
    render_figure,
)
from vseg.server.api.schemas import PosteriorAsArrays, PosteriorIsComing, SegmentsEvidence
from vseg.server.compression import compressed_response
from vseg.store.studies import StudyRow
from vseg.study.schema import Study

CHOOSER, EVIDENCE = "chooser", "auto"
RETRY_SOON = {"Retry-After": "1"}
PENDING: dict[int | str, dict[str, Any]] = {
    202: {"model": PosteriorIsComing, "description": "It is being computed; try again after `Retry-After` seconds."}
}  # fmt: skip

router = APIRouter(prefix="/studies/{name}/images/{image}", tags=["posterior"])


def default_segments(study: Study) -> str:
    """Return the number of segments of the posterior that is shown by default: the study's, or "auto" if it is free."""
    return EVIDENCE if study.segments == "free" else str(study.segments)


def request_posterior(
    db: store.Database,
    posteriors: monitor.PosteriorService,
    row: StudyRow,
    answers: Answers,
    image: str,
    *,
    participant: str | None,
    segments: str,
    mark: str = "",
) -> PosteriorStatus:
    """Request the posterior of an image and return at once what there is of it.

    `segments` is K, "auto" or "chooser". With "auto", K is chosen once, from all participants' answers, also for the
    posterior of one participant, as `vseg fit` does. With the `mark` of an earlier posterior of the same kind, that one
    is returned while it is cached; other marks are ignored. Raise `InvalidInput` if there are too few answers or no
    chooser, `NotFound` if there is no such participant.
    """
    if segments == CHOOSER and not has_chooser(row, participant):
        raise InvalidInput(
            "Only adaptive studies have a chooser: one for each participant, or one for all if they share it; "
            'use a number of segments or "auto".'
        )
    inputs = posterior_summary.collect_inputs(
        answers, image, participant=participant, segments=_parse_segments(segments, len(answers.layout))
    )
    if segments == EVIDENCE and participant is not None:
        everyone = request_posterior(db, posteriors, row, answers, image, participant=None, segments=EVIDENCE)
        if everyone.latest is None:
            return everyone
        segments = str(everyone.latest.segments)
        inputs = replace(inputs, segments=everyone.latest.segments)

    def collect_inputs() -> posterior_summary.PosteriorInputs:
        if segments != CHOOSER:
            return inputs
        in_order = read_answers_in_chooser_order(db, row, answers, image, participant)
        return posterior_summary.collect_chooser_inputs(row.study, image, in_order, inputs.earlier)

    version = f"{answers_fingerprint(answers, image, participant)} {inputs.lapses} {inputs.catch}"
    subject = (row.id, row.digest, image, participant, segments)
    newest = posteriors.request(subject, version, collect_inputs)
    if mark in ("", newest.mark) or (earlier := posteriors.find(subject, mark)) is None:
        return newest
    return PosteriorStatus(earlier, mark, is_current=False)


class PosteriorRequest:
    """Which posterior a request is about; a FastAPI dependency, so that all routes have the same parameters."""

    def __init__(
        self,
        request: Request,
        row: RequestedStudy,
        image: ImageName,
        segments: Annotated[
            str | None,
            Query(
                examples=["auto", "3"], pattern=r"^(auto|chooser|[2-9]|1[0-2])$",
                description=(
                    'Number of segments K, 2 to 12; "auto": K chosen by the evidence of all participants\' answers; '
                    '"chooser": the posterior from which an adaptive study chooses pairs. Default: the number that '
                    'the study asks for, or "auto" if the study leaves it free.'
                ),
            ),
        ] = None,
        participant: OnlyParticipant = None,
        mark: Annotated[
            str, Query(max_length=40, description="The `mark` of an earlier response, to get the same posterior again.")
        ] = "",
    ):  # fmt: skip
        self.request, self.row, self.image, self.participant = request, row, image, participant or None
        self.image_row = find_image(row, image)
        state = get_state(request)
        self.status = request_posterior(
            state.db, state.live_data.posteriors, row, load_answers(request, row), image,
            participant=self.participant, segments=segments or default_segments(row.study), mark=mark,
        )  # fmt: skip

    @property
    def aspect(self) -> float:
        """Height / width of the image."""
        return self.image_row.height_px / self.image_row.width_px

    @property
    def png(self) -> bytes:
        """The image itself."""
        return store.studies.get_image(get_state(self.request).db, self.row.id, self.image_row.sha256)

    def respond(
        self, kind: str, media_type: str, make_body: Callable[[PosteriorSummary], bytes], **headers: str
    ) -> Response:
        """Respond with `make_body` of the posterior; 202 if there is none yet, 304 if the client has it."""
        posterior = self.status.latest
        if posterior is None and self.status.failed:
            raise InvalidInput(self.status.failed)
        if posterior is None:
            pending = PosteriorIsComing(message="The posterior is being computed; try again in a moment.")
            return Response(pending.model_dump_json(), 202, RETRY_SOON, "application/json")
        etag = make_etag(__version__, kind, self.image_row.sha256, self.status.mark)
        if (not_modified := not_modified_response(self.request, etag)) is not None:
            return not_modified
        body = make_body(posterior)
        return compressed_response(self.request, body, media_type, headers={**headers, "ETag": etag})

    def respond_png(self, kind: str, draw: Callable[[PosteriorSummary], bytes]) -> Response:
        """Respond with a picture of the posterior."""
        return self.respond(kind, "image/png", draw)


RequestedPosterior = Annotated[PosteriorRequest, Depends()]
Segment = Annotated[int, Path(ge=0, le=11, description="The segment, counted from 0.", examples=[0])]


@router.get(
    "/posterior.json", summary="Get maps with intervals", response_model=PosteriorAsArrays, responses=PENDING
)
def get_posterior_json(wanted: RequestedPosterior) -> Response:
    """Return medians with 90 % intervals, mean entropy, the evidence of each K, lapses, and convergence."""
    kind = f"json {wanted.status.is_current}"  # the JSON contains `current`, pictures do not
    return wanted.respond(
        kind,
        "application/json",
        lambda posterior: _posterior_as_arrays(wanted, posterior).model_dump_json().encode(),
    )


@router.get(
    "/posterior.npz",
    summary="Get maps with intervals for NumPy",
    response_class=Response,
    responses={**NPZ, **PENDING},
)
def get_posterior_npz(wanted: RequestedPosterior) -> Response:
    """Return `probabilities`, `lower` and `upper`, (n, K) each, `entropy`, (n,), and `positions`."""
    name = f'attachment; filename="{wanted.row.name}-{wanted.image}-posterior.npz"'
    return wanted.respond(
        "npz", "application/octet-stream", _posterior_as_npz, **{"Content-Disposition": name}
    )


@router.get(
    "/posterior/segmentation.png",
    summary="Draw segments of the posterior median",
    response_class=Response,
    responses={**PNG, **PENDING},
)
def draw_segmentation(wanted: RequestedPosterior) -> Response:
    """Draw the most probable segment at each location by the posterior median in colour over the image."""
    return wanted.respond_png(
        "segmentation", lambda posterior: tiles.render_segmentation(posterior.maps, wanted.png)
    )


@router.get(
    "/posterior/width.png",
    summary="Draw the width of the intervals",
    response_class=Response,
    responses={**PNG, **PENDING},
)
def draw_widest_interval(wanted: RequestedPosterior) -> Response:
    """Draw the widest 90 % interval at each location: black for width 0, white for width 1."""
    return wanted.respond_png(
        "width",
        lambda posterior: tiles.render_interval_width(
            posterior.maps, posterior.lower, posterior.upper, shape=wanted.aspect
        ),
    )


@router.get(
    "/posterior/entropy.png",
    summary="Draw the uncertainty of the posterior",
    response_class=Response,
    responses={**PNG, **PENDING},
)
def draw_entropy(wanted: RequestedPosterior) -> Response:
    """Draw the mean entropy of the draws: black where one segment is certain, white where all are equally likely."""
    return wanted.respond_png(
        "entropy",
        lambda posterior: tiles.render_entropy(
            posterior.maps, posterior.location_entropy, shape=wanted.aspect
        ),
    )


@router.get(
    "/posterior/figure.{kind}",
    summary="Draw a figure of the posterior for a publication",
    response_class=Response,
    responses={**FIGURE_RESPONSES, **PENDING},
)
def draw_figure(wanted: RequestedPosterior, kind: FigureKind) -> Response:
    """Draw image, median maps, segmentation and entropy with its interval in one row, as `vseg.figures.maps` does."""

    def draw(posterior: PosteriorSummary) -> bytes:
        from vseg.figures.style import MapsWithEntropy

        entropy_interval = posterior.entropy_low, posterior.entropy_high
        drawn = MapsWithEntropy(
            posterior.maps, posterior.location_entropy, posterior.entropy, entropy_interval
        )
        return render_figure(drawn, wanted.png, kind)

    return wanted.respond(f"figure {kind}", FIGURE_TYPES[kind], draw)


@router.get(
    "/posterior/probability-{k}.png",
    summary="Draw one segment's median",
    response_class=Response,
    responses={**PNG, **PENDING},
)
def draw_probability(wanted: RequestedPosterior, k: Segment) -> Response:
    """Draw the median probability of one segment, from black at 0 to the segment's colour at 1."""
    return wanted.respond_png(
        f"probability {k}", lambda posterior: tiles.render_probability(posterior.maps, k, shape=wanted.aspect)
    )


@router.get(
    "/posterior/width-{k}.png",
    summary="Draw the width of one segment's intervals",
    response_class=Response,
    responses={**PNG, **PENDING},
)
def draw_segment_interval(wanted: RequestedPosterior, k: Segment) -> Response:
    """Draw the width of the 90 % interval of one segment's probability, from black at 0 to white at 1."""

    def draw(posterior: PosteriorSummary) -> bytes:
        if k >= posterior.segments:
            raise InvalidInput(
                f"These maps have segments 0..{posterior.segments - 1}, got {k}; choose one of them."
            )
        column = slice(k, k + 1)
        return tiles.render_interval_width(
            posterior.maps, posterior.lower[:, column], posterior.upper[:, column], shape=wanted.aspect
        )

    return wanted.respond_png(f"width {k}", draw)


def _parse_segments(segments: str, locations: int) -> int | str:
    if segments in (CHOOSER, EVIDENCE):
        return EVIDENCE
    if not 2 <= int(segments) <= locations:
        raise InvalidInput(f"The number of segments should be 2 to {locations}, got {segments}.")
    return int(segments)


def _posterior_as_arrays(wanted: PosteriorRequest, posterior: PosteriorSummary) -> PosteriorAsArrays:
    return PosteriorAsArrays(
        image=wanted.image,
        participant=wanted.participant,
        mark=wanted.status.mark,
        current=wanted.status.is_current,
        by_chooser=posterior.by_chooser,
        segments=posterior.segments,
        segments_by_evidence=posterior.chosen,
        segments_plausible=posterior.plausible,
        segments_table=[
            SegmentsEvidence(segments=row["segments"], evidence=row["evidence"], below_best=row["below_best"])
            for row in posterior.table
        ],
        confidence=posterior.confidence,
        answers=posterior.trials,
        distinct_pairs=posterior.pairs,
        mean_entropy=posterior.entropy,
        entropy_low=posterior.entropy_low,
        entropy_high=posterior.entropy_high,
        expected_error=posterior.expected_error,
        lapses=list(posterior.lapses),
        lapses_estimated=posterior.lapses_estimated,
        converged=posterior.converged,
        convergence=posterior.convergence,
        warning=posterior.warning,
        rhat=posterior.rhat,
        effective_draws=posterior.effective_draws,
        draws=posterior.draws,
        seconds=posterior.seconds,
        positions=posterior.maps.layout.positions.round(DECIMALS).tolist(),
        probabilities=posterior.maps.probabilities.round(DECIMALS).tolist(),
        lower=posterior.lower.round(DECIMALS).tolist(),
        upper=posterior.upper.round(DECIMALS).tolist(),
        labels=posterior.maps.labels.tolist(),
        entropy=posterior.location_entropy.round(DECIMALS).tolist(),
    )


def _posterior_as_npz(posterior: PosteriorSummary) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(
        file, probabilities=posterior.maps.probabilities, lower=posterior.lower, upper=posterior.upper,
        entropy=posterior.location_entropy, positions=posterior.maps.layout.positions,
    )  # fmt: skip
    return file.getvalue()
