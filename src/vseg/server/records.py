"""What a participant's page may send, checked once, before anything is queued: a bad row would fail its batch.

Numbers are limited to what can happen and to what every database holds. The pair and the image of a response
are not here: they follow from the session's own trials.
"""

import json
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

MAX_RECORDS = 100
MAX_EVENT_BYTES, MAX_CONTOUR_BYTES = 4_000, 64_000
MAX_BODY_BYTES = 256_000
STRICT = ConfigDict(strict=True, extra="forbid")
FLAGS = frozenset({"late", "hidden", "blurred", "window", "slow_refresh"})

Kind = Literal[
    "consent", "device", "keys", "distance", "gamma", "screen", "resumed", "break", "interruption", "left", "comment",
]  # fmt: skip

Count = Annotated[int, Field(ge=0, le=1_000_000)]
Instant = Annotated[int, Field(ge=0, le=10_000_000_000_000)]  # epoch ms, until the year 2286
Duration = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Onset = Annotated[float, Field(ge=0, le=1e13, allow_inf_nan=False)]


def _known_flags(flags: str) -> str:
    given = flags.split(" ") if flags else []
    if len(set(given)) < len(given) or not FLAGS.issuperset(given):
        raise ValueError(
            f"should be words among {', '.join(sorted(FLAGS))}, each once, one space between them"
        )
    return flags


def _as_json(most: int) -> AfterValidator:
    def checked(data: dict[str, Any]) -> str:
        text = json.dumps(data, allow_nan=False, separators=(",", ":"))
        if len(text) > most:
            raise ValueError(f"should take at most {most} bytes as JSON, takes {len(text)}")
        return text

    return AfterValidator(checked)


class Response(TypedDict):
    """One trial as it was shown and answered."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    kind: Literal["response"]
    seq: Count
    item: Count
    same: bool
    rt_ms: Duration
    key: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]{1,16}$")]
    shown_at_ms: Instant
    cue_onset_ms: Onset
    cue_asked_ms: Duration
    cue_ms: Duration
    cue_frames: Count
    image_onset_ms: Onset
    image_asked_ms: Duration
    image_ms: Duration
    image_frames: Count
    response_onset_ms: Onset
    frames_dropped: Count
    longest_gap_ms: Duration
    refresh_hz: Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)]
    visible: bool
    focused: bool
    full_screen: bool
    flags: Annotated[str, Field(max_length=200), AfterValidator(_known_flags)]
    chosen: NotRequired[bool]


class Event(TypedDict):
    """Everything else a session reports; `data` becomes the JSON text that is stored."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    kind: Kind
    seq: Count
    at_ms: Instant
    data: Annotated[dict[str, Any], _as_json(MAX_EVENT_BYTES)]


class Contours(TypedDict):
    """The event that may be large: what someone drew on an image."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    kind: Literal["contours"]
    seq: Count
    at_ms: Instant
    data: Annotated[dict[str, Any], _as_json(MAX_CONTOUR_BYTES)]


class PostedRecords(TypedDict):
    """The body of a post."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    records: Annotated[
        list[Annotated[Response | Event | Contours, Field(discriminator="kind")]],
        Field(min_length=1, max_length=MAX_RECORDS),
    ]


POSTED_RECORDS: TypeAdapter[PostedRecords] = TypeAdapter(PostedRecords)
