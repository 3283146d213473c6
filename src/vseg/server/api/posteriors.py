"""The posterior of an image: asked for here by pages and scripts alike, worked out in the background."""

import io
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from vseg import __version__, monitor, store
from vseg.errors import InvalidInput
from vseg.monitor import Answers, Believed, Standing, posterior_summary, tiles
from vseg.monitor.adaptive_progress import has_chooser, learnt
from vseg.server.api.dependencies import RequestedStudy, load_answers, make_etag, not_modified_response
from vseg.server.api.images import DIGITS, NPZ, PNG, ImageName, Participant, find_image
from vseg.server.api.schemas import PosteriorAsArrays, PosteriorIsComing, SegmentsEvidence
from vseg.server.compression import compressed_response
from vseg.store.studies import StudyRow

CHOOSER, EVIDENCE = "chooser", "auto"
WAIT = {"Retry-After": "1"}
COMING: dict[int | str, dict[str, Any]] = {
    202: {"model": PosteriorIsComing, "description": "It is being worked out; ask again after `Retry-After` seconds."}
}  # fmt: skip

router = APIRouter(prefix="/studies/{name}/images/{image}", tags=["posterior"])


def default_segments(row: StudyRow, participant: str | None) -> str:
    """What is shown where nobody asks for something else: the chooser's own, or K by evidence."""
    return CHOOSER if has_chooser(row, participant) else EVIDENCE


def get_posterior_state(
    db: store.Database,
    posteriors: monitor.Posteriors,
    row: StudyRow,
    answers: Answers,
    image: str,
    *,
    participant: str | None,
    segments: str,
    mark: str = "",
) -> Standing:
    """How the posterior of an image stands, at once; `segments` is K, "auto" or "chooser".

    An earlier one of the same kind has its `mark`, as long as it is kept; any other mark is passed over.
    `InvalidInput` where there are too few answers, or no chooser; `NotFound` if there is no such participant.
    """
    if segments == CHOOSER and not has_chooser(row, participant):
        raise InvalidInput(
            "Only an adaptive study has a chooser: one for each participant, or one for all where they share it; "
            'ask for a number of segments or "auto".'
        )
    asked = posterior_summary.question(
        answers, image, participant=participant, segments=_counted(segments, len(answers.layout))
    )

    def make() -> posterior_summary.Question:
        if segments != CHOOSER:
            return asked
        return posterior_summary.chooser_question(
            row.study, image, learnt(db, row, answers, image, participant)
        )

    version = f"{monitor.maps.state(answers, image, participant)} {asked.catch}"
    subject = (row.id, row.digest, image, participant, segments)
    now = posteriors.ask(subject, version, make)
    if mark in ("", now.mark) or (kept := posteriors.found(mark, subject)) is None:
        return now
    return Standing(kept, mark, is_current=False)


class PosteriorRequest:
    """Which posterior a request is about: a dependency, so that all routes take the same parameters."""

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
                    'K, 2 to 12; "auto": as many as the evidence chooses; "chooser": what an adaptive study chooses '
                    'its pairs from. Without, "chooser" where there is one, else "auto".'
                ),
            ),
        ] = None,
        participant: Participant = None,
        mark: Annotated[
            str, Query(max_length=40, description="The `mark` of an answer before: that very one, if it is kept.")
        ] = "",
    ):  # fmt: skip
        self.request, self.row, self.image, self.participant = request, row, image, participant or None
        self.shown = find_image(row, image)
        posteriors: monitor.Posteriors = request.app.state.watch.posteriors
        self.standing = get_posterior_state(
            request.app.state.db, posteriors, row, load_answers(request, row), image,
            participant=self.participant, segments=segments or default_segments(row, self.participant), mark=mark,
        )  # fmt: skip

    @property
    def shape(self) -> float:
        """Height / width of the image."""
        return self.shown.height_px / self.shown.width_px

    def answered(self, kind: str, media_type: str, make: Any, **headers: str) -> Response:
        """What `make` returns of the posterior; 202 if there is none yet, 304 if whoever asks has it."""
        found, now = self.standing.latest, self.standing
        if found is None and now.failed:
            raise InvalidInput(now.failed)
        if found is None:
            coming = PosteriorIsComing(message="The posterior is being worked out; ask again in a moment.")
            return Response(coming.model_dump_json(), 202, WAIT, "application/json")
        tag = make_etag(__version__, kind, self.shown.sha256, now.mark)
        if (same := not_modified_response(self.request, tag)) is not None:
            return same
        return compressed_response(self.request, make(found), media_type, headers={**headers, "ETag": tag})

    def picture(self, kind: str, make: Any) -> Response:
        """A picture of the posterior."""
        return self.answered(kind, "image/png", make)


RequestedPosterior = Annotated[PosteriorRequest, Depends()]
Segment = Annotated[int, Path(ge=0, le=11, description="The segment, counted from 0.", examples=[0])]


@router.get(
    "/posterior.json", summary="Maps with their intervals", response_model=PosteriorAsArrays, responses=COMING
)
def get_posterior_json(wanted: RequestedPosterior) -> Response:
    """Median, 90 % intervals, mean entropy with its interval, evidence of each K, lapses, and whether to trust it."""
    kind = f"json {wanted.standing.is_current}"  # which it says; pictures do not
    return wanted.answered(
        kind, "application/json", lambda found: _arrays(wanted, found).model_dump_json().encode()
    )


@router.get(
    "/posterior.npz", summary="The same for NumPy", response_class=Response, responses={**NPZ, **COMING}
)
def get_posterior_npz(wanted: RequestedPosterior) -> Response:
    """`probabilities`, `lower` and `upper`, (n, K) each, and `positions`."""
    name = f'attachment; filename="{wanted.row.name}-{wanted.image}-posterior.npz"'
    return wanted.answered("npz", "application/octet-stream", _saved, **{"Content-Disposition": name})


@router.get(
    "/posterior/segmentation.png",
    summary="Segments of the median",
    response_class=Response,
    responses={**PNG, **COMING},
)
def draw_segmentation(wanted: RequestedPosterior) -> Response:
    """The most probable segment of each place by the posterior median, tinted over the image."""

    def drawn(found: Believed) -> bytes:
        png = store.studies.get_image(wanted.request.app.state.db, wanted.row.id, wanted.shown.sha256)
        return tiles.segmentation(found.maps, png)

    return wanted.picture("segmentation", drawn)


@router.get(
    "/posterior/width.png",
    summary="How wide the intervals are",
    response_class=Response,
    responses={**PNG, **COMING},
)
def draw_widest_interval(wanted: RequestedPosterior) -> Response:
    """The widest 90 % interval of each place: black where its probabilities are known, white where nothing is."""
    return wanted.picture(
        "width", lambda found: tiles.width(found.maps, found.lower, found.upper, shape=wanted.shape)
    )


@router.get(
    "/posterior/entropy.png",
    summary="Entropy of the median",
    response_class=Response,
    responses={**PNG, **COMING},
)
def draw_entropy(wanted: RequestedPosterior) -> Response:
    """The entropy of the median maps: black where sure, white where all segments are as likely."""
    return wanted.picture("entropy", lambda found: tiles.entropy(found.maps, shape=wanted.shape))


@router.get(
    "/posterior/probability-{k}.png",
    summary="One segment's median",
    response_class=Response,
    responses={**PNG, **COMING},
)
def draw_probability(wanted: RequestedPosterior, k: Segment) -> Response:
    """The median probability of one segment, from black at 0 to its colour at 1."""
    return wanted.picture(
        f"probability {k}", lambda found: tiles.probability(found.maps, k, shape=wanted.shape)
    )


@router.get(
    "/posterior/width-{k}.png",
    summary="One segment's interval",
    response_class=Response,
    responses={**PNG, **COMING},
)
def draw_segment_interval(wanted: RequestedPosterior, k: Segment) -> Response:
    """How wide the 90 % interval of one segment's probability is, from black at 0 to white at 1."""

    def drawn(found: Believed) -> bytes:
        if k >= found.segments:
            raise InvalidInput(
                f"These maps have segments 0..{found.segments - 1}, got {k}; choose one of them."
            )
        one = slice(k, k + 1)
        return tiles.width(found.maps, found.lower[:, one], found.upper[:, one], shape=wanted.shape)

    return wanted.picture(f"width {k}", drawn)


def _counted(segments: str, locations: int) -> int | str:
    if segments in (CHOOSER, EVIDENCE):
        return EVIDENCE
    if not 2 <= int(segments) <= locations:
        raise InvalidInput(f"The number of segments is 2 to {locations}, got {segments}.")
    return int(segments)


def _arrays(wanted: PosteriorRequest, found: Believed) -> PosteriorAsArrays:
    return PosteriorAsArrays(
        image=wanted.image,
        participant=wanted.participant,
        mark=wanted.standing.mark,
        current=wanted.standing.is_current,
        by_chooser=found.by_chooser,
        segments=found.segments,
        segments_by_evidence=found.chosen,
        segments_plausible=found.plausible,
        segments_table=[
            SegmentsEvidence(segments=row["segments"], evidence=row["evidence"], below_best=row["below_best"])
            for row in found.table
        ],
        confidence=found.confidence,
        answers=found.trials,
        distinct_pairs=found.pairs,
        mean_entropy=found.entropy,
        entropy_low=found.entropy_low,
        entropy_high=found.entropy_high,
        expected_error=found.expected_error,
        lapses=list(found.lapses),
        lapses_estimated=found.lapses_estimated,
        warning=found.warning,
        rhat=found.rhat,
        effective_draws=found.effective_draws,
        draws=found.draws,
        seconds=found.seconds,
        positions=found.maps.layout.positions.round(DIGITS).tolist(),
        probabilities=found.maps.probabilities.round(DIGITS).tolist(),
        lower=found.lower.round(DIGITS).tolist(),
        upper=found.upper.round(DIGITS).tolist(),
        labels=found.maps.labels.tolist(),
    )


def _saved(found: Believed) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(
        file, probabilities=found.maps.probabilities, lower=found.lower, upper=found.upper,
        positions=found.maps.layout.positions,
    )  # fmt: skip
    return file.getvalue()
