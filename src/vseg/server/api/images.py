"""The maps of an image as its answers stand: arrays, pictures, figures; and contours."""

import io
import tempfile
from pathlib import Path as PathOf
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, Path, Query, Request
from PIL import Image
from starlette.responses import Response

from vseg import __version__, monitor, store
from vseg.data.maps import Maps
from vseg.errors import NotFound
from vseg.monitor import Contours, tiles
from vseg.server.api.dependencies import RequestedStudy, load_answers, make_etag, not_modified_response
from vseg.server.api.schemas import MapsAsArrays
from vseg.server.compression import compressed_response
from vseg.store.studies import ImageRow, StudyRow

if TYPE_CHECKING:
    from vseg.reconstruction.reconstruct import Reconstruction

DIGITS = 6  # of probabilities in JSON
TYPES = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}
PNG: dict[int | str, dict[str, Any]] = {200: {"content": {"image/png": {}}, "description": "The picture."}}
NPZ: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}

router = APIRouter(prefix="/studies/{name}/images/{image}", tags=["images"])
ImageName = Annotated[str, Path(description="The image's name.", examples=["patches"])]
Participant = Annotated[
    str | None, Query(description="Only this participant's answers; all participants' without.")
]


class MapRequest:
    """Which maps a request is about: a dependency, so that all routes take the same parameters."""

    def __init__(
        self,
        request: Request,
        row: RequestedStudy,
        image: ImageName,
        segments: Annotated[
            int | None,
            Query(
                ge=monitor.maps.FEWEST_SEGMENTS, le=monitor.maps.MOST_SEGMENTS, examples=[3],
                description="K; without, as many as the study asks for.",
            ),
        ] = None,
        smoothness: Annotated[
            str, Query(examples=["auto", "1"], description='λ, a number from 0 up, or "auto": chosen by the answers.')
        ] = "auto",
        participant: Participant = None,
    ):  # fmt: skip
        self.request, self.row = request, row
        self.shown = find_image(row, image)
        self.answers = load_answers(request, row)
        self.image, self.smoothness, self.participant = image, smoothness, participant or None
        self.segments = row.study.planned_segments if segments is None else segments

    @property
    def need(self) -> monitor.Need:
        """How many answers there are, and how many it takes."""
        return monitor.need(self.answers, self.image, participant=self.participant, segments=self.segments)

    @property
    def fit(self) -> "Reconstruction":
        """The reconstruction."""
        return monitor.fitted(
            self.answers, self.image, participant=self.participant, segments=self.segments, smoothness=self.smoothness
        )  # fmt: skip

    @property
    def shape(self) -> float:
        """Height / width of the image."""
        return self.shown.height_px / self.shown.width_px

    @property
    def png(self) -> bytes:
        """The image itself."""
        return store.studies.get_image(self.request.app.state.db, self.row.id, self.shown.sha256)

    def answered(self, kind: str, media_type: str, make: Any, **headers: str) -> Response:
        """What `make` returns, or 304: maps follow from the answers that count and from what was asked for."""
        state = monitor.maps.state(self.answers, self.image, self.participant)
        tag = make_etag(__version__, kind, self.shown.sha256, state, self.segments, self.smoothness)
        if (same := not_modified_response(self.request, tag)) is not None:
            return same
        return compressed_response(self.request, make(), media_type, headers={**headers, "ETag": tag})


RequestedMaps = Annotated[MapRequest, Depends()]


@router.get("/maps.json", summary="Maps as arrays", response_model=MapsAsArrays)
def get_maps_json(wanted: RequestedMaps) -> Response:
    """Probabilities, labels and entropy of each location; 422 says how many answers are missing."""
    return wanted.answered("json", "application/json", lambda: _arrays(wanted).model_dump_json().encode())


@router.get("/maps.npz", summary="Maps for NumPy", response_class=Response, responses=NPZ)
def get_maps_npz(wanted: RequestedMaps) -> Response:
    """What `vseg.Maps.load` reads: `probabilities`, (N, N, K) on a grid, else (n, K) with `positions`."""
    name = f'attachment; filename="{wanted.row.name}-{wanted.image}-{wanted.segments}.npz"'
    headers = {"Content-Disposition": name}
    return wanted.answered("npz", "application/octet-stream", lambda: _saved(wanted.fit.maps), **headers)


@router.get("/segmentation.png", summary="Segments over the image", response_class=Response, responses=PNG)
def draw_segmentation(wanted: RequestedMaps) -> Response:
    """The most probable segment of each place, tinted over the image, with boundaries."""
    return wanted.answered(
        "segmentation", "image/png", lambda: tiles.segmentation(wanted.fit.maps, wanted.png)
    )


@router.get("/entropy.png", summary="Where people are unsure", response_class=Response, responses=PNG)
def draw_entropy(wanted: RequestedMaps) -> Response:
    """The entropy: black where sure, white where all segments are as likely."""
    return wanted.answered("entropy", "image/png", lambda: tiles.entropy(wanted.fit.maps, shape=wanted.shape))


@router.get("/probability-{k}.png", summary="One segment", response_class=Response, responses=PNG)
def draw_probability(
    wanted: RequestedMaps,
    k: Annotated[int, Path(ge=0, description="The segment, counted from 0.", examples=[0])],
) -> Response:
    """The probability of one segment, from black at 0 to its colour at 1."""
    return wanted.answered(
        f"probability {k}", "image/png", lambda: tiles.probability(wanted.fit.maps, k, shape=wanted.shape)
    )


@router.get(
    "/figure.{kind}", summary="A figure for a publication", response_class=Response,
    responses={200: {"content": {media_type: {} for media_type in TYPES.values()}, "description": "The figure."}},
)  # fmt: skip
def draw_figure(
    wanted: RequestedMaps, kind: Annotated[Literal["png", "svg", "pdf"], Path(description="The format.")]
) -> Response:
    """Image, probability maps, segmentation and entropy in one row, as `vseg.figures.maps` draws them."""
    return wanted.answered(f"figure {kind}", TYPES[kind], lambda: _figure(wanted, kind))


@router.get("/contours.json", summary="Contours that participants drew")
def list_contours(
    request: Request, row: RequestedStudy, image: ImageName, participant: Participant = None
) -> list[Contours]:
    """The last drawing of each session: lines of x, y in pixels of a picture of the size that comes along."""
    find_image(row, image)
    return monitor.contours(request.app.state.db, row, image, participant or None)


def find_image(row: StudyRow, image: str) -> ImageRow:
    """An image of a study's own; `NotFound` for others, the practice picture among them."""
    names = [each.name for each in row.study.images]
    if image not in names:
        raise NotFound(f"Study {row.name!r} has no image {image!r:.80}; it has: {', '.join(names[:10])}.")
    return row.images[image]


def _arrays(wanted: MapRequest) -> MapsAsArrays:
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
        positions=fit.maps.layout.positions.round(DIGITS).tolist(),
        probabilities=fit.maps.probabilities.round(DIGITS).tolist(),
        labels=fit.maps.labels.tolist(),
        entropy=fit.maps.entropy.round(DIGITS).tolist(),
        mean_entropy=fit.maps.mean_entropy,
    )


def _saved(maps: Maps) -> bytes:
    with tempfile.TemporaryDirectory(prefix="vseg-maps-") as folder:
        maps.save(f"{folder}/maps.npz")
        return PathOf(folder, "maps.npz").read_bytes()


def _figure(wanted: MapRequest, kind: str) -> bytes:
    from vseg import figures

    with Image.open(io.BytesIO(wanted.png)) as opened:
        pixels = np.asarray(opened.convert("RGB"))
    file = io.BytesIO()
    figures.maps(wanted.fit.maps, image=pixels).savefig(file, format=kind)
    return file.getvalue()
