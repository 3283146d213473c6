"""Validation of the records that a participant's page posts.

Records are checked once, before they are queued: a bad row would make the transaction of its whole batch fail. The
fields of a response follow from `vseg.data.columns.RESPONSES`; their validators are built once, when this module is
imported. The image and the pair of a response are not posted: the server looks them up in the session's trials.
"""

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from vseg.data.columns import EVENT_KINDS, MAX_COUNT, MAX_EPOCH_MS, RESPONSES, Column

MAX_RECORDS = 100
MAX_EVENT_BYTES, MAX_CONTOUR_BYTES = 4_000, 64_000
MAX_BODY_BYTES = 256_000
STRICT = ConfigDict(strict=True, extra="forbid")
POSTED_COLUMNS = tuple(column for column in RESPONSES if column.is_posted)
DEFAULTS = {column.name: column.default for column in POSTED_COLUMNS if column.default is not None}
"""Values of the fields that a page of an older version does not post."""

Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
EpochMs = Annotated[int, Field(ge=0, le=MAX_EPOCH_MS)]


def _words_validator(words: Collection[str]) -> AfterValidator:
    allowed = frozenset(words)

    def check_words(text: str) -> str:
        used = text.split(" ") if text else []
        if len(set(used)) < len(used) or not allowed.issuperset(used):
            raise ValueError(
                f"should be words among {', '.join(sorted(allowed))}, each once, one space between them"
            )
        return text

    return AfterValidator(check_words)


def _json_validator(max_bytes: int) -> AfterValidator:
    def dump_json(data: dict[str, Any]) -> str:
        text = json.dumps(data, allow_nan=False, separators=(",", ":"))
        if len(text) > max_bytes:
            raise ValueError(f"should take at most {max_bytes} bytes as JSON, takes {len(text)}")
        return text

    return AfterValidator(dump_json)


def _field_type(column: Column) -> Any:
    """Return the annotated type by which Pydantic checks a field of a response."""
    checked: Any
    match column.type:
        case "boolean":
            checked = bool
        case "integer":
            checked = Annotated[int, Field(ge=0, le=column.maximum)]
        case "number":
            checked = Annotated[float, Field(ge=0, le=column.maximum, allow_inf_nan=False)]
        case "text" if column.pattern is not None:
            checked = Annotated[str, Field(pattern=column.pattern)]
        case "text":
            checked = Annotated[str, Field(max_length=column.max_length)]
    if column.words:
        checked = Annotated[checked, _words_validator(column.words)]
    if column.nullable:
        checked = checked | None
    return checked if column.default is None else NotRequired[checked]


if TYPE_CHECKING:
    PostedResponse = dict[str, Any]
    EventKind = str
else:
    PostedResponse = TypedDict(
        "PostedResponse",
        {"kind": Literal["response"]} | {column.name: _field_type(column) for column in POSTED_COLUMNS},
    )
    PostedResponse.__doc__ = "One trial as it was shown and answered."
    PostedResponse.__pydantic_config__ = STRICT
    EventKind = Literal[tuple(kind for kind in EVENT_KINDS if kind != "contours")]


class PostedEvent(TypedDict):
    """Anything else that a session reports; `data` becomes the JSON text that is stored."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    kind: EventKind
    seq: Count
    at_ms: EpochMs
    data: Annotated[dict[str, Any], _json_validator(MAX_EVENT_BYTES)]


class PostedContours(TypedDict):
    """The contours that a participant drew on an image: the one kind of event that may be large."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    kind: Literal["contours"]
    seq: Count
    at_ms: EpochMs
    data: Annotated[dict[str, Any], _json_validator(MAX_CONTOUR_BYTES)]


class PostedRecords(TypedDict):
    """The body of a post."""

    __pydantic_config__ = STRICT  # type: ignore[misc]

    records: Annotated[
        list[Annotated[PostedResponse | PostedEvent | PostedContours, Field(discriminator="kind")]],
        Field(min_length=1, max_length=MAX_RECORDS),
    ]


POSTED_RECORDS: TypeAdapter[PostedRecords] = TypeAdapter(PostedRecords)
