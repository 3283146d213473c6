"""The JSON bodies of requests and responses; others are dataclasses of vseg.store and vseg.monitor."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from vseg.monitor import ParticipantSummary, StudyProgress
from vseg.server import simulated_participants
from vseg.store.sessions.rows import SessionStatus
from vseg.store.studies import StudyStatus
from vseg.study.schema import LARGEST_FILE

STUDY_EXAMPLE = """\
name = "two-textures"
segments = 2
participants = 30
layout = {grid = 11}
images = [{name = "low", texture = "low"}, {name = "high", texture = "high"}]
"""


def _request_config(example: dict[str, Any]) -> ConfigDict:
    """Return the configuration of a request body: strict types, no unknown fields, an example for the documentation."""
    return ConfigDict(strict=True, extra="forbid", json_schema_extra={"example": example})


class Problem(BaseModel):
    """An error: its kind and a sentence; for conflicts also a reason that programs can test."""

    error: str
    message: str
    reason: str | None = None


class NewStudy(BaseModel):
    """A study to create; its images must be generated or samples."""

    model_config = _request_config({"text": STUDY_EXAMPLE})
    text: Annotated[str, Field(max_length=LARGEST_FILE, description="The text of the study file (TOML).")]


class NewToken(BaseModel):
    """A token to create."""

    model_config = _request_config({"label": "analysis notebook"})
    label: Annotated[str, Field(description="What the token is for, 1 to 64 characters.")]


class Token(BaseModel):
    """A new token; it cannot be shown again."""

    token: Annotated[str, Field(examples=["vseg_9bXw…"])]


class Me(BaseModel):
    """The current researcher, and the header that requests with a cookie need if they change something."""

    name: str
    csrf_token: Annotated[
        str, Field(description="The value of X-CSRF-Token; empty if the request has a token.")
    ]


class StudySummary(BaseModel):
    """A study with the numbers of its sessions."""

    name: str
    title: str
    status: StudyStatus
    frozen: Annotated[
        bool, Field(description="Whether a participant has begun; the file can no longer change.")
    ]
    participants: Annotated[int, Field(description="The number of participants wanted.")]
    completed: int
    active: Annotated[int, Field(description="In progress, with recent activity.")]
    silent: Annotated[int, Field(description="Begun, without recent activity; their places are free again.")]
    left: int
    ended: Annotated[
        int, Field(description="Ended because the participant was away for longer than the study allows.")
    ]
    withdrawn: int
    link: Annotated[str, Field(description="The address at which participants begin.")]
    prolific_link: Annotated[
        str | None, Field(description="The address for Prolific, with its placeholders.")
    ]


class ImageCounts(BaseModel):
    """The sessions with one image; `units` has the status of each unit (share of its pairs) that is taken."""

    wanted: int
    completed: int
    alive: int
    units: dict[int, str]


class StudyDetail(StudySummary):
    """A study with its file, and the numbers of its sessions for each image."""

    text: str
    created_at_ms: int
    frozen_at_ms: int | None
    images: dict[str, ImageCounts]


class Session(BaseModel):
    """One session, without the identity of its participant."""

    participant: str
    name: str
    status: SessionStatus
    started_at_ms: int
    finished_at_ms: int | None
    responses: int
    last_response_at_ms: int | None


class Links(BaseModel):
    """New personal links; they cannot be shown again."""

    links: list[str]


class Revoked(BaseModel):
    """The number of personal links that were revoked."""

    revoked: int


class SimulationRequest(BaseModel):
    """How many simulated participants to send, what they see, how they answer, and how fast."""

    model_config = _request_config({"count": 5, "source": "truth"})

    count: Annotated[int, Field(ge=1, le=simulated_participants.MAX_PARTICIPANTS)]
    source: Annotated[
        simulated_participants.Source,
        Field(description="What they see: true maps, the image, or the server's model."),
    ] = "picture"
    observer: Annotated[str, Field(max_length=40, description="How they answer.")] = "lapsing:0.05"
    pace: Annotated[
        float, Field(ge=0, le=10, description="0 does not wait between trials; 1 is the speed of people.")
    ] = 0.0
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None


class Group(BaseModel):
    """A group of simulated participants; all zero if there was none."""

    wanted: int = 0
    done: int = 0
    running: bool = False
    failed: bool = False
    said: Annotated[str, Field(description="The outcome, or why the group stopped.")] = ""


class ProgressAndPeople(BaseModel):
    """The progress of a study, and all participants who have not withdrawn."""

    progress: StudyProgress
    people: list[ParticipantSummary]


class AnswerColumns(BaseModel):
    """A participant's answers in order, as columns of equal length."""

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
    """Another event of a session, such as consent, calibration, a break or drawn contours."""

    session: str
    seq: int
    kind: str
    at_ms: int
    data: dict[str, Any]


class PersonAndTimeline(BaseModel):
    """One participant, all their answers, and the other events of their sessions."""

    person: ParticipantSummary
    answers: AnswerColumns
    events: list[Event]


class MapsAsArrays(BaseModel):
    """Maps as arrays.

    `probabilities` has one row per location and one column per segment; `entropy` is in nats.
    """

    image: str
    participant: str | None
    segments: int
    smoothness: Annotated[float, Field(description="λ, as given or as chosen by cross-validation.")]
    answers: Annotated[int, Field(description="The number of answers in use.")]
    distinct_pairs: int
    needed: Annotated[
        int, Field(description="The minimum number of distinct pairs for this estimator, (K-1)n.")
    ]
    advised: Annotated[
        int,
        Field(
            description="The number of answers with which the posterior's mean entropy is known to ±0.1 log K."
        ),
    ]
    message: Annotated[str, Field(description="A description of the fit.")]
    positions: Annotated[list[list[float]], Field(description="x, y as fractions of width and height.")]
    probabilities: list[list[float]]
    labels: Annotated[list[int], Field(description="The most probable segment of each location.")]
    entropy: list[float]
    mean_entropy: float


class SegmentsEvidence(BaseModel):
    """The evidence for one number of segments K."""

    segments: int
    evidence: Annotated[float, Field(description="The log probability of the answers, in nats.")]
    below_best: Annotated[float, Field(description="The difference from the best K, in nats.")]


class PosteriorIsComing(BaseModel):
    """There is no posterior yet; it is being computed."""

    message: str


class PosteriorAsArrays(BaseModel):
    """The posterior as arrays.

    `probabilities`, `lower` and `upper` have one row per location and one column per segment; entropies are in nats.
    """

    image: str
    participant: str | None
    mark: Annotated[
        str,
        Field(
            description="Identifies this posterior; send it with other requests to get pictures of the same one."
        ),
    ]
    current: Annotated[
        bool, Field(description="Whether it uses all answers; if not, a newer one is being computed.")
    ]
    by_chooser: Annotated[
        bool, Field(description="Whether an adaptive study chooses its pairs from these draws.")
    ]
    segments: int
    segments_by_evidence: Annotated[
        int, Field(description="The smallest K within 2 nats of the best; the given K if there was one.")
    ]
    segments_plausible: Annotated[list[int], Field(description="All tried K within 4 nats of the best.")]
    segments_table: Annotated[
        list[SegmentsEvidence], Field(description="Every K tried; empty if K was given.")
    ]
    confidence: Annotated[float, Field(description="The probability of all intervals.")]
    answers: Annotated[int, Field(description="The number of answers in use.")]
    distinct_pairs: int
    mean_entropy: Annotated[
        float, Field(description="The posterior median of the entropy averaged over locations.")
    ]
    entropy_low: float
    entropy_high: float
    expected_error: Annotated[
        float, Field(description="The expected error of a probability: mean |p - median|.")
    ]
    lapses: Annotated[
        list[float],
        Field(
            description="P('same') for certainly different locations, P('different') for certainly equal ones."
        ),
    ]
    lapses_estimated: Annotated[
        bool, Field(description="Whether lapses were estimated; the chooser assumes them.")
    ]
    converged: Annotated[bool, Field(description="Whether the chains agree.")]
    convergence: Annotated[
        str, Field(description="A sentence on whether the chains agree; empty for a chooser.")
    ]
    warning: Annotated[str, Field(description="Why the draws are not reliable; empty if they are.")]
    rhat: float | None
    effective_draws: float | None
    draws: int
    seconds: float
    positions: Annotated[list[list[float]], Field(description="x, y as fractions of width and height.")]
    probabilities: Annotated[list[list[float]], Field(description="Posterior medians, renormalised.")]
    lower: list[list[float]]
    upper: list[list[float]]
    labels: Annotated[list[int], Field(description="The most probable segment of each location.")]
    entropy: Annotated[
        list[float], Field(description="The entropy at each location, averaged over the draws.")
    ]


NEW_STUDY: TypeAdapter[NewStudy] = TypeAdapter(NewStudy)
NEW_TOKEN: TypeAdapter[NewToken] = TypeAdapter(NewToken)
PEOPLE: TypeAdapter[list[ParticipantSummary]] = TypeAdapter(list[ParticipantSummary])
SIMULATION_REQUEST: TypeAdapter[SimulationRequest] = TypeAdapter(SimulationRequest)
PROGRESS: TypeAdapter[StudyProgress] = TypeAdapter(StudyProgress)
