"""What requests and answers look like; what is not here are the dataclasses of the store and of monitor."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from vseg.monitor import Person, Progress
from vseg.study.schema import LARGEST_FILE

STUDY_EXAMPLE = """\
name = "two-textures"
segments = 2
participants = 30
layout = {grid = 11}
images = [{name = "low", texture = "low"}, {name = "high", texture = "high"}]
"""


def _body(example: dict[str, Any]) -> ConfigDict:
    return ConfigDict(strict=True, extra="forbid", json_schema_extra={"example": example})


class Problem(BaseModel):
    """Whatever went wrong: its kind and a sentence; for conflicts also a word for programs."""

    error: str
    message: str
    reason: str | None = None


class NewStudy(BaseModel):
    """A study to create: the text of its file, whose images are generated or samples."""

    model_config = _body({"text": STUDY_EXAMPLE})
    text: Annotated[str, Field(max_length=LARGEST_FILE, description="The study file, TOML.")]


class NewToken(BaseModel):
    """A token to make: what it is for."""

    model_config = _body({"label": "analysis notebook"})
    label: Annotated[str, Field(description="What it is for, 1 to 64 characters.")]


class Token(BaseModel):
    """A new token, which is not shown again."""

    token: Annotated[str, Field(examples=["vseg_9bXw…"])]


class Me(BaseModel):
    """Who is asking, and the header that requests with a cookie bring along if they change something."""

    name: str
    csrf_token: Annotated[str, Field(description="For X-CSRF-Token; empty for those who come with a token.")]


class StudySummary(BaseModel):
    """A study and how far it is; counts are sessions."""

    name: str
    title: str
    status: Literal["open", "paused", "closed"]
    frozen: Annotated[bool, Field(description="Whether someone has begun, so that the file stays as it is.")]
    participants: Annotated[int, Field(description="How many are wanted.")]
    completed: int
    active: Annotated[int, Field(description="Under way, heard of lately.")]
    silent: Annotated[int, Field(description="Begun, but not heard of lately; their places are free again.")]
    left: int
    ended: Annotated[int, Field(description="Away for longer than the study allows.")]
    withdrawn: int
    link: Annotated[str, Field(description="Where participants begin.")]
    prolific_link: Annotated[str | None, Field(description="The same for Prolific, with its placeholders.")]


class ImageCounts(BaseModel):
    """Sessions with one image: wanted, completed, alive, and the status of each share of its pairs."""

    wanted: int
    completed: int
    alive: int
    units: dict[int, str]


class StudyDetail(StudySummary):
    """A study with its file and its sessions by image."""

    text: str
    created_at_ms: int
    frozen_at_ms: int | None
    images: dict[str, ImageCounts]


class Session(BaseModel):
    """One session: nobody's identity."""

    participant: str
    name: str
    status: Literal["active", "completed", "left", "withdrawn", "ended"]
    started_at_ms: int
    finished_at_ms: int | None
    responses: int
    last_response_at_ms: int | None


class Links(BaseModel):
    """New personal links; they are not shown again."""

    links: list[str]


class Revoked(BaseModel):
    """How many personal links nobody can come in with any more."""

    revoked: int


class ProgressAndPeople(BaseModel):
    """A study at a glance, and everyone in it who has not withdrawn."""

    progress: Progress
    people: list[Person]


class AnswerColumns(BaseModel):
    """One session's answers as columns of equal length, in their order."""

    seq: list[int]
    shown_at_ms: list[int]
    image: list[str]
    i: list[int]
    j: list[int]
    same: list[bool]
    rt_ms: list[float]
    flagged: list[bool]
    used: list[bool]
    correct: list[bool | None]


class Event(BaseModel):
    """Something else that a session reported: consent, calibration, breaks, contours."""

    session: str
    seq: int
    kind: str
    at_ms: int
    data: dict[str, Any]


class PersonAndTimeline(BaseModel):
    """One participant, all their answers, and everything else their session reported."""

    person: Person
    answers: AnswerColumns
    events: list[Event]


class MapsAsArrays(BaseModel):
    """Maps as numbers, locations in their order.

    `probabilities` has a row a location and a column a segment; `entropy` is in nats.
    """

    image: str
    participant: str | None
    segments: int
    smoothness: Annotated[float, Field(description="λ, as given or as the answers chose it.")]
    answers: Annotated[int, Field(description="Answers that count.")]
    distinct_pairs: int
    needed: Annotated[int, Field(description="Distinct pairs that such a map needs at least, (K-1)n.")]
    advised: Annotated[int, Field(description="Distinct pairs that are advised, Kn.")]
    message: Annotated[str, Field(description="The fit in one sentence.")]
    positions: Annotated[list[list[float]], Field(description="x, y as fractions of width and height.")]
    probabilities: list[list[float]]
    labels: Annotated[list[int], Field(description="The most probable segment of each location.")]
    entropy: list[float]
    mean_entropy: float


class SegmentsEvidence(BaseModel):
    """How well one number of segments explains the answers."""

    segments: int
    evidence: Annotated[float, Field(description="Log probability of the answers, in nats.")]
    below_best: Annotated[float, Field(description="How far below that of the best K, in nats.")]


class PosteriorIsComing(BaseModel):
    """There is no posterior yet; it is being worked out."""

    message: str


class PosteriorAsArrays(BaseModel):
    """The posterior as numbers, locations in their order.

    `probabilities`, `lower` and `upper` have a row a location and a column a segment; entropies are in nats.
    """

    image: str
    participant: str | None
    mark: Annotated[
        str, Field(description="Names this very posterior: pictures asked for with it show the same.")
    ]
    current: Annotated[
        bool, Field(description="Whether it is of all answers there are; if not, a newer one is coming.")
    ]
    by_chooser: Annotated[
        bool, Field(description="Whether an adaptive study chose its pairs from these draws.")
    ]
    segments: int
    segments_by_evidence: Annotated[
        int, Field(description="The smallest K within 2 nats of the best; K where it was given.")
    ]
    segments_plausible: Annotated[
        list[int], Field(description="All K, of those tried, within 4 nats of the best.")
    ]
    segments_table: Annotated[
        list[SegmentsEvidence], Field(description="Every K tried; empty where K was given.")
    ]
    confidence: Annotated[float, Field(description="Of all intervals.")]
    answers: Annotated[int, Field(description="Answers that it follows from.")]
    distinct_pairs: int
    mean_entropy: Annotated[float, Field(description="Over locations: the posterior median.")]
    entropy_low: float
    entropy_high: float
    expected_error: Annotated[float, Field(description="Of one probability: mean |p - median|.")]
    lapses: Annotated[
        list[float], Field(description="P('same') where all differs, P('different') where nothing does.")
    ]
    lapses_estimated: Annotated[
        bool, Field(description="By evidence and catch trials; else assumed, by the chooser.")
    ]
    warning: Annotated[str, Field(description="A sentence where the draws cannot be trusted, else empty.")]
    rhat: float | None
    effective_draws: float | None
    draws: int
    seconds: float
    positions: Annotated[list[list[float]], Field(description="x, y as fractions of width and height.")]
    probabilities: Annotated[list[list[float]], Field(description="Posterior medians, renormalised.")]
    lower: list[list[float]]
    upper: list[list[float]]
    labels: Annotated[list[int], Field(description="The most probable segment of each location.")]


NEW_STUDY: TypeAdapter[NewStudy] = TypeAdapter(NewStudy)
NEW_TOKEN: TypeAdapter[NewToken] = TypeAdapter(NewToken)
PEOPLE: TypeAdapter[list[Person]] = TypeAdapter(list[Person])
PROGRESS: TypeAdapter[Progress] = TypeAdapter(Progress)
