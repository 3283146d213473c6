"""The current maps of an image by the penalised estimator as arrays, pictures and figures; contours people drew."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, Path, Query, Request
from PIL import Image
from starlette.responses import Response

from vseg import __version__, monitor, store
from vseg._support.temporary_folders import temporary_folder
from vseg.data.maps import Maps
from vseg.errors import InvalidInput, NotFound
from vseg.monitor import Drawing, tiles
from vseg.monitor.maps import MAX_SEGMENTS, MIN_SEGMENTS, answers_fingerprint
from vseg.server.api.dependencies import (
    RequestedStudy,
    get_state,
    load_answers,
    make_etag,
    not_modified_response,
)
from vseg.server.api.schemas import MapsAsArrays
from vseg.server.compression import compressed_response
from vseg.store.studies import ImageRow, StudyRow

if TYPE_CHECKING:
    from vseg.figures.style import Drawable
    from vseg.reconstruction.reconstruct import Reconstruction

DECIMALS = 6  # of probabilities in JSON
FIGURE_TYPES = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}
FIGURE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {media_type: {} for media_type in FIGURE_TYPES.values()}, "description": "The figure."}
}
PNG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/png": {}}, "description": "The picture."}}
NPZ: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}

router = APIRouter(prefix="/studies/{name}/images/{image}", tags=["images"])
ImageName = Annotated[str, Path(description="The image's name.", examples=["patches"])]
OnlyParticipant = Annotated[
    str | None, Query(description="Use the answers of this participant only; default: all participants.")
]


FigureKind = Annotated[Literal["png", "svg", "pdf"], Path(description="The format.")]


class MapRequest:
    """Which maps a request is about; a FastAPI dependency, so that all routes have the same parameters."""

    def __init__(
        self,
        request: Request,
        row: RequestedStudy,
        image: ImageName,
        segments: Annotated[
            int | None,
            Query(
                ge=MIN_SEGMENTS, le=MAX_SEGMENTS, examples=[3],
                description="Number of segments K; default: that of the study, unless the study leaves it free.",
            ),
        ] = None,
        smoothness: Annotated[
            str,
            Query(
                examples=["auto", "1"],
                description='λ: a number from 0, or "auto" to choose it by cross-validation.',
            ),
        ] = "auto",
        participant: OnlyParticipant = None,
    ):  # fmt: skip
        self.request, self.row = request, row
        self.image_row = find_image(row, image)
        self.answers = load_answers(request, row)
        self.image, self.smoothness, self.participant = image, smoothness, participant or None
        self.segments = _get_study_segments(row) if segments is None else segments

    @property
    def need(self) -> monitor.MapReadiness:
        """How many answers there are, and how many distinct pairs these maps need."""
        return monitor.check_map_readiness(
            self.answers, self.image, participant=self.participant, segments=self.segments
        )

    @property
    def fit(self) -> "Reconstruction":
        """The reconstruction."""
        return monitor.fit_maps(
            self.answers, self.image, participant=self.participant, segments=self.segments, smoothness=self.smoothness
        )  # fmt: skip

    @property
    def aspect(self) -> float:
        """Height / width of the image."""
        return self.image_row.height_px / self.image_row.width_px

    @property
    def png(self) -> bytes:
        """The image itself."""
        return store.studies.get_image(get_state(self.request).db, self.row.id, self.image_row.sha256)

    def respond(self, kind: str, media_type: str, make_body: Callable[[], bytes], **headers: str) -> Response:
        """Respond with the result of `make_body`, or with 304 if the client has it.

        The result depends on `kind`, the answers in use and the parameters of this request only.
        """
        state = answers_fingerprint(self.answers, self.image, self.participant)
        etag = make_etag(__version__, kind, self.image_row.sha256, state, self.segments, self.smoothness)
        if (not_modified := not_modified_response(self.request, etag)) is not None:
            return not_modified
        return compressed_response(self.request, make_body(), media_type, headers={**headers, "ETag": etag})


RequestedMaps = Annotated[MapRequest, Depends()]


@router.get("/maps.json", summary="Get maps as arrays", response_model=MapsAsArrays)
def get_maps_json(wanted: RequestedMaps) -> Response:
    """Return probabilities, label and entropy of each location; 422 tells how many answers are missing."""
    return wanted.respond(
        "json", "application/json", lambda: _maps_as_arrays(wanted).model_dump_json().encode()
    )


@router.get("/maps.npz", summary="Get maps for NumPy", response_class=Response, responses=NPZ)
def get_maps_npz(wanted: RequestedMaps) -> Response:
    """Return a file for `vseg.Maps.load`: `probabilities`, (N, N, K) on a grid, else (n, K) with `positions`."""
    name = f'attachment; filename="{wanted.row.name}-{wanted.image}-{wanted.segments}.npz"'
    headers = {"Content-Disposition": name}
    return wanted.respond("npz", "application/octet-stream", lambda: _maps_as_npz(wanted.fit.maps), **headers)


@router.get(
    "/segmentation.png", summary="Draw segments over the image", response_class=Response, responses=PNG
)
def draw_segmentation(wanted: RequestedMaps) -> Response:
    """Draw the most probable segment at each location in colour over the image, with boundaries."""
    return wanted.respond(
        "segmentation", "image/png", lambda: tiles.render_segmentation(wanted.fit.maps, wanted.png)
    )


@router.get("/entropy.png", summary="Draw the uncertainty", response_class=Response, responses=PNG)
def draw_entropy(wanted: RequestedMaps) -> Response:
    """Draw the entropy: black where one segment is certain, white where all are equally likely."""
    return wanted.respond(
        "entropy", "image/png", lambda: tiles.render_entropy(wanted.fit.maps, shape=wanted.aspect)
    )


@router.get("/probability-{k}.png", summary="Draw one segment", response_class=Response, responses=PNG)
def draw_probability(
    wanted: RequestedMaps,
    k: Annotated[int, Path(ge=0, description="The segment, counted from 0.", examples=[0])],
) -> Response:
    """Draw the probability of one segment, from black at 0 to the segment's colour at 1."""
    return wanted.respond(
        f"probability {k}",
        "image/png",
        lambda: tiles.render_probability(wanted.fit.maps, k, shape=wanted.aspect),
    )


@router.get(
    "/figure.{kind}",
    summary="Draw a figure for a publication",
    response_class=Response,
    responses=FIGURE_RESPONSES,
)
def draw_figure(wanted: RequestedMaps, kind: FigureKind) -> Response:
    """Draw image, probability maps, segmentation and entropy in one row, as `vseg.figures.maps` does."""
    return wanted.respond(
        f"figure {kind}", FIGURE_TYPES[kind], lambda: render_figure(wanted.fit.maps, wanted.png, kind)
    )


@router.get("/contours.json", summary="List contours that participants drew")
def list_contours(
    request: Request, row: RequestedStudy, image: ImageName, participant: OnlyParticipant = None
) -> list[Drawing]:
    """Return the last drawing of each session: lines of x, y in pixels, and the size of the image in pixels."""
    find_image(row, image)
    return monitor.load_contours(get_state(request).db, row, image, participant or None)


def find_image(row: StudyRow, image: str) -> ImageRow:
    """Return an image of a study; raise `NotFound` for others, including the practice image."""
    names = [study_image.name for study_image in row.study.images]
    if image not in names:
        raise NotFound(f"Study {row.name!r} has no image {image!r:.80}; it has: {', '.join(names[:10])}.")
    return row.images[image]


def _get_study_segments(row: StudyRow) -> int:
    if row.study.segments == "free":
        raise InvalidInput(
            f"Study {row.name!r} leaves the number of segments free; give segments as a number from {MIN_SEGMENTS} to "
            f"{MAX_SEGMENTS}, or get the posterior, which chooses it by evidence."
        )
    return row.study.segments


def _maps_as_arrays(wanted: MapRequest) -> MapsAsArrays:
    fit, need = wanted.fit, wanted.need
    return MapsAsArrays(
        image=wanted.image,
        participant=wanted.participant,
        segments=wanted.segments,
        smoothness=fit.smoothness,
        answers=need.answers,
        distinct_pairs=need.distinct_pairs,
        needed=need.needed,
        advised=need.advised,
        message=fit.message,
        positions=fit.maps.layout.positions.round(DECIMALS).tolist(),
        probabilities=fit.maps.probabilities.round(DECIMALS).tolist(),
        labels=fit.maps.labels.tolist(),
        entropy=fit.maps.entropy.round(DECIMALS).tolist(),
        mean_entropy=fit.maps.mean_entropy,
    )


def _maps_as_npz(maps: Maps) -> bytes:
    with temporary_folder("maps") as folder:
        maps.save(folder / "maps.npz")
        return (folder / "maps.npz").read_bytes()


def render_figure(drawn: "Drawable", png: bytes, kind: str) -> bytes:
    """Render the figure of maps with their image in a format."""
    from vseg import figures

    with Image.open(io.BytesIO(png)) as opened:
        pixels = np.asarray(opened.convert("RGB"))
    file = io.BytesIO()
    figures.maps(drawn, image=pixels).savefig(file, format=kind)
    return file.getvalue()
