"""The columns of the exported tables, each defined once: name, type, meaning, unit, bounds and origin.

`RESPONSES` is the only definition of the columns of a response. Three things are built from it: the check of the
records that a participant's page posts (vseg.server.record_validation), the database table (vseg.store.schema) and the
description of the columns in an export (vseg.data.psych_ds).

To add a column of a response:

1. add a row to `RESPONSES`;
2. add a migration in vseg/store/migrations/versions, and the name to `LAST_RESPONSE_COLUMNS` in vseg/store/schema.py;
3. add the field to the TypeScript interface `Response` in frontend/src and to the record of a simulated participant in
   vseg/bots.

tests/data/test_columns.py names the step that is missing.
"""

from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

ColumnType = Literal["text", "integer", "number", "boolean"]
Origin = Literal["session", "page", "trials", "server", "export"]

SCHEMA_ORG_TYPES: dict[ColumnType, str] = {
    "text": "string", "integer": "integer", "number": "number", "boolean": "boolean",
}  # fmt: skip

EPOCH_MS = "ms since 1970-01-01 UTC"
PAGE_CLOCK = "by the clock of the page, which starts when the page is opened"

MAX_COUNT = 1_000_000
MAX_EPOCH_MS = 10_000_000_000_000  # in the year 2286
MAX_DURATION_MS = 1e9
MAX_ONSET_MS = 1e13
MAX_REFRESH_HZ = 10_000

FLAGS = {
    "late": "a duration was off by more than half a frame, or a frame was dropped right after the onset",
    "hidden": "the page was not visible",
    "blurred": "the page had lost the focus",
    "window": "full screen was left or the window was resized",
    "slow_refresh": "the refresh rate of the screen had dropped",
}
"""What can go wrong while a trial is shown, with an explanation."""

EVENT_KINDS = (
    "consent", "device", "keys", "distance", "gamma", "screen", "resumed", "break", "interruption", "contours", "left",
    "comment",
)  # fmt: skip
"""What an event can be about."""

SESSION_STATUSES = ("active", "completed", "left", "ended")
"""The status of a session in an export; withdrawn sessions are not exported."""


ColumnProperty = TypedDict(
    "ColumnProperty",
    {
        "@type": str,
        "name": str,
        "description": str,
        "value": str,
        "unitText": NotRequired[str],
        "valueReference": NotRequired[list[str]],
    },
)
"""A column in dataset_description.json, as a PropertyValue of schema.org."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    name : str
        The same on the wire, in the database, in the export and in Python.
    type : "text", "integer", "number" or "boolean"
        A boolean is written as 0 or 1.
    description : str
        What the column means; written to dataset_description.json.
    unit : str
        Empty for a column without a unit.
    levels : tuple of str
        All possible values, if they can be listed.
    origin : "session", "page", "trials", "server" or "export"
        Where the value comes from: the session's own row, the participant's page (which posts it), the trials of the
        session (the server looks them up), the server when the record arrives, or a computation during the export.
        All but "session" and "export" are columns of the database table.
    maximum : int or float, optional
        Largest accepted number; the smallest is 0. Required for numbers that a page posts.
    max_length : int, optional
        Longest accepted text, in characters. Required for text in the database.
    pattern : str, optional
        Regular expression that posted text has to match.
    words : tuple of str
        The words that a posted text consists of, each at most once, with one space between them.
    default : bool, optional
        Value of responses without this field: from an older page, or stored before the column was added.
    nullable : bool
        Whether the value may be missing: null on the wire and in the database, an empty cell in the export.
    """

    name: str
    type: ColumnType
    description: str
    unit: str = ""
    levels: tuple[str, ...] = ()
    origin: Origin = "export"
    maximum: float | None = None
    max_length: int | None = None
    pattern: str | None = None
    words: tuple[str, ...] = ()
    default: bool | None = None
    nullable: bool = False

    @property
    def is_posted(self) -> bool:
        """Whether a participant's page posts this column."""
        return self.origin == "page"

    @property
    def is_stored(self) -> bool:
        """Whether the database table has this column under its own name."""
        return self.origin in ("page", "trials", "server")

    def to_property(self) -> ColumnProperty:
        """Return the entry of this column in dataset_description.json."""
        entry: ColumnProperty = {
            "@type": "PropertyValue",
            "name": self.name,
            "description": self.description,
            "value": SCHEMA_ORG_TYPES[self.type],
        }
        if self.unit:
            entry["unitText"] = self.unit
        if levels := list(self.levels) or (["0", "1"] if self.type == "boolean" else []):
            entry["valueReference"] = levels
        return entry


def _posted_boolean(name: str, description: str, default: bool | None = None) -> Column:
    return Column(name, "boolean", description, origin="page", default=default)


def _posted_count(name: str, description: str, unit: str = "") -> Column:
    return Column(name, "integer", description, unit, origin="page", maximum=MAX_COUNT)


def _posted_duration(name: str, description: str) -> Column:
    return Column(name, "number", description, "ms", origin="page", maximum=MAX_DURATION_MS)


def _posted_onset(name: str, shown: str) -> Column:
    description = f"First frame that showed {shown}, {PAGE_CLOCK}"
    return Column(name, "number", description, "ms", origin="page", maximum=MAX_ONSET_MS)


PARTICIPANT = Column("participant", "text", "Random name of the participant", origin="session")
SESSION = Column("session", "text", "Random name of the session", origin="session")
SEQ = _posted_count(
    "seq", "Number of the record in its session, from 0; responses and events are counted together"
)
RECEIVED_AT_MS = Column(
    "received_at_ms", "integer", "When the record reached the server, by the server's clock", EPOCH_MS, origin="server",
    maximum=MAX_EPOCH_MS,
)  # fmt: skip

RESPONSES = (
    PARTICIPANT,
    SESSION,
    SEQ,
    _posted_count(
        "item", "Number of the trial in the session's list (study/trials); a trial that is asked again keeps its number"
    ),
    Column(
        "image", "text", "Name of the image; practice and catch trials use the image called practice",
        origin="trials", max_length=63,
    ),
    Column("block", "integer", "Block within the image, from 0", origin="trials"),
    Column("trial", "integer", "Planned position within the block, from 0, counting catch trials", origin="trials"),
    Column(
        "i", "integer", "Location of the first dot; locations count from 0, on a grid row by row from the top left",
        origin="trials",
    ),
    Column("j", "integer", "Location of the second dot", origin="trials"),
    _posted_boolean(
        "chosen", "Whether the pair was chosen from the answers so far; 0 for the pair in the session's list of trials",
        default=False,
    ),
    Column("x1", "number", "Centre of the first dot from the image's left edge", "px of the image"),
    Column("y1", "number", "Centre of the first dot from the image's top edge", "px of the image"),
    Column("x2", "number", "Centre of the second dot from the image's left edge", "px of the image"),
    Column("y2", "number", "Centre of the second dot from the image's top edge", "px of the image"),
    Column("practice", "boolean", "Whether it was a practice trial", origin="trials"),
    Column("catch", "boolean", "Whether it was a catch trial, with an obvious answer", origin="trials"),
    _posted_boolean("same", "The answer: 1 for the same segment, 0 for different segments"),
    Column(
        "correct", "boolean", "Whether the answer is correct; empty for real trials, which have no correct answer",
        nullable=True,
    ),
    Column("used", "boolean", "Whether the answer counts: the last one without flags to each item of the real trials"),
    _posted_duration("rt_ms", "From the first frame of the response screen to the key press"),
    Column(
        "key", "text", "The key that was pressed", origin="page", max_length=16, pattern=r"^[^\x00-\x1f\x7f]{1,16}$"
    ),
    Column(
        "flags", "text",
        "Problems with the presentation, as words separated by spaces; empty if there were none. "
        + "; ".join(f"{flag}: {meaning}" for flag, meaning in FLAGS.items()),
        origin="page", max_length=200, words=tuple(FLAGS),
    ),
    Column(
        "shown_at_ms", "integer", "When the trial began, by the clock of the participant's computer", EPOCH_MS,
        origin="page", maximum=MAX_EPOCH_MS,
    ),
    _posted_onset("cue_onset_ms", "the dots alone"),
    _posted_duration("cue_asked_ms", "Planned duration of the dots alone"),
    _posted_duration("cue_ms", "Measured duration of the dots alone"),
    _posted_count("cue_frames", "Number of frames that showed the dots alone", "frames"),
    _posted_onset("image_onset_ms", "the image"),
    _posted_duration("image_asked_ms", "Planned duration of the image with the dots"),
    _posted_duration("image_ms", "Measured duration of the image with the dots"),
    _posted_count("image_frames", "Number of frames that showed the image with the dots", "frames"),
    _posted_onset("response_onset_ms", "the response screen"),
    _posted_count("frames_dropped", "Number of frames that were dropped during the trial", "frames"),
    _posted_duration("longest_gap_ms", "Longest time between two frames of the trial"),
    Column(
        "refresh_hz", "number", "Measured refresh rate of the screen", "Hz", origin="page", maximum=MAX_REFRESH_HZ
    ),
    _posted_boolean("visible", "Whether the page was visible throughout"),
    _posted_boolean("focused", "Whether the page had the focus throughout"),
    _posted_boolean("full_screen", "Whether the page filled the screen throughout"),
    RECEIVED_AT_MS,
)  # fmt: skip
"""A response; the order is that of the export."""

EVENTS = (
    PARTICIPANT,
    SESSION,
    SEQ,
    Column("kind", "text", "What the event is about", levels=EVENT_KINDS),
    Column("at_ms", "integer", "When it happened, by the clock of the participant's computer", EPOCH_MS),
    Column("data", "text", "What was measured or done, as JSON"),
    RECEIVED_AT_MS,
)

CONTOURS = (
    PARTICIPANT,
    SESSION,
    next(column for column in RESPONSES if column.name == "image"),
    Column("width_px", "integer", "Width of the image on which was drawn", "px of the image"),
    Column("height_px", "integer", "Height of the image on which was drawn", "px of the image"),
    Column("line", "integer", "Number of the line in the drawing, from 0"),
    Column("point", "integer", "Number of the point in its line, from 0"),
    Column("x", "number", "Position of the point from the image's left edge", "px of the image"),
    Column("y", "number", "Position of the point from the image's top edge", "px of the image"),
)
"""A point of a line that a participant drew; a straight line joins it to the next point."""

EXPECTED_ERROR = Column(
    "expected_error", "number",
    "Expected error of the maps, the mean of |p - median| over their entries: for a choice, when its batch was chosen; "
    "for a session, when pairs were last chosen or an early stop was decided",
    nullable=True,
)  # fmt: skip

CHOICES = (
    PARTICIPANT,
    SESSION,
    Column("item", "integer", "Number of the trial in the session's list whose pair was chosen"),
    Column("image", "text", "Name of the image"),
    Column("i", "integer", "Location of the first dot"),
    Column("j", "integer", "Location of the second dot"),
    Column("batch", "integer", "Number of the batch: pairs that were chosen together; batches are numbered in order"),
    Column("rule", "text", "The criterion for choosing pairs", levels=("variance_reduction", "bald", "random")),
    Column("seed", "integer", "Seed of the random numbers of the batch"),
    Column("answers", "integer", "Number of answers that the choice was based on"),
    EXPECTED_ERROR,
    Column("chosen_at_ms", "integer", "When it was stored, by the server's clock", EPOCH_MS),
    Column(
        "taken", "text",
        "The answers that the choice was based on, separated by spaces, one entry for each session: "
        "session:records:ahead, where all records with a number below `records` were known and the choices for items "
        "below `ahead` were not answered yet",
    ),
)  # fmt: skip
"""A pair that an adaptive study chose."""

SESSIONS = (
    PARTICIPANT,
    SESSION,
    Column(
        "status", "text",
        "Status of the session: active (in progress or abandoned), completed, left (early, data kept), "
        "ended (interrupted for too long)",
        levels=SESSION_STATUSES,
    ),
    Column("images", "text", "The images assigned to the session, in order, separated by spaces"),
    Column("units", "text", "Which unit (share of the pairs) of each image was assigned, in the same order"),
    Column("started_at_ms", "integer", "When the session began, by the server's clock", EPOCH_MS),
    Column(
        "finished_at_ms", "integer", "When the session was completed, left or ended; empty before that", EPOCH_MS,
        nullable=True,
    ),
    Column("responses", "integer", "Number of responses"),
    Column("flagged", "integer", "Number of responses with flags"),
    Column("answers_used", "integer", "Number of responses that count"),
    Column(
        "practice_correct", "number",
        "Proportion of correct answers in practice trials without flags; empty if there were none",
        nullable=True,
    ),
    Column(
        "catch_correct", "number",
        "Proportion of correct answers in catch trials without flags; empty if there were none",
        nullable=True,
    ),
    Column("median_rt_ms", "number", "Median reaction time of the answers that count", "ms", nullable=True),
    Column(
        "median_trial_ms", "number",
        "Median duration of a trial, of the answers that count: cue_ms + image_ms + rt_ms, without the pause between "
        "trials",
        "ms", nullable=True,
    ),
    Column(
        "trial_low_ms", "number",
        "Lower end of the 95 % interval of median_trial_ms, from the order of the answers' durations; empty below 6",
        "ms", nullable=True,
    ),
    Column("trial_high_ms", "number", "Upper end of the same interval", "ms", nullable=True),
    Column(
        "engaged_minutes", "number",
        "Time spent in trials: responses x median_trial_ms; breaks, calibration, instructions, pauses between trials "
        "and a long absence within a trial are not part of it",
        "min", nullable=True,
    ),
    Column(
        "minutes", "number",
        "From the beginning of the session to its end, or to its last record if it has not ended, with breaks and "
        "interruptions, by the server's clock",
        "min",
    ),
    Column("measured_refresh_hz", "number", "Refresh rate measured by the device check", "Hz", nullable=True),
    Column(
        "px_per_mm", "number", "Pixel density of the screen, measured with a card", "px of the screen / mm",
        nullable=True,
    ),
    Column("distance_mm", "number", "Viewing distance, measured with the blind spot", "mm", nullable=True),
    Column("width_deg_asked", "number", "Planned width of the image", "degrees", nullable=True),
    Column("width_deg", "number", "Width of the image; empty if the distance is unknown", "degrees", nullable=True),
    Column("gamma", "number", "Gamma of the screen, the median of the matches", nullable=True),
    Column("gamma_spread", "number", "Standard deviation of the estimates of gamma", nullable=True),
    Column("stops", "text", "Where an adaptive study stopped early: image:item, the first item that was not asked"),
    EXPECTED_ERROR,
    Column("simulated", "boolean", "Whether the participant was simulated (vseg simulate-participants)"),
    Column("vseg_version", "text", "Version of vseg that drew the trials"),
    Column(
        "too_fast", "boolean",
        "Whether the last answer arrived sooner after the session began than all trials take to be shown, by the "
        "server's clock",
    ),
)  # fmt: skip
