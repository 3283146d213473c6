"""Every column of an export, in its order, with its type, its unit and what it means."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """A column. `kind` is text, whole, number or truth (0 or 1); `levels` are all the values there can be."""

    name: str
    kind: str
    description: str
    unit: str = ""
    levels: tuple[str, ...] = ()

    def as_property(self) -> dict[str, Any]:
        """As schema.org says it, for dataset_description.json."""
        kinds = {"text": "string", "whole": "integer", "number": "number", "truth": "boolean"}
        levels = list(self.levels) or (["0", "1"] if self.kind == "truth" else [])
        said: dict[str, Any] = {
            "@type": "PropertyValue",
            "name": self.name,
            "description": self.description,
            "value": kinds[self.kind],
        }
        if self.unit:
            said["unitText"] = self.unit
        if levels:
            said["valueReference"] = levels
        return said


PAGE_CLOCK = "by the clock of the page, which counts from when it was opened"
EPOCH = "ms since 1970-01-01 UTC"

IDENTIFYING_COLUMNS = (
    Column("participant", "text", "Random name of the participant"),
    Column("session", "text", "Random name of the session"),
    Column(
        "seq", "whole", "Number of the record in its session; responses and events count together, from 0"
    ),
)

RESPONSES = (
    *IDENTIFYING_COLUMNS,
    Column("item", "whole", "Number of the trial in the session's list (study/trials); asked again, it keeps it"),
    Column("image", "text", "Name of the image; practice and catch trials are on the one called practice"),
    Column("block", "whole", "Block within the image, from 0"),
    Column("trial", "whole", "Place within the block as planned, from 0, catch trials included"),
    Column("i", "whole", "Location of the first dot; locations count from 0, on a grid row by row from the top left"),
    Column("j", "whole", "Location of the second dot"),
    Column("chosen", "truth", "Whether the pair was chosen from answers so far; 0 for the one the trials have"),
    Column("x1", "number", "Centre of the first dot from the image's left edge", "px of the image"),
    Column("y1", "number", "Centre of the first dot from the image's top edge", "px of the image"),
    Column("x2", "number", "Centre of the second dot from the image's left edge", "px of the image"),
    Column("y2", "number", "Centre of the second dot from the image's top edge", "px of the image"),
    Column("practice", "truth", "Whether it was a practice trial"),
    Column("catch", "truth", "Whether it was a catch trial, with an obvious answer"),
    Column("same", "truth", "The answer: 1 if both dots were said to lie in the same segment"),
    Column("correct", "truth", "Whether the answer is the right one; empty for real trials, which have none"),
    Column("used", "truth", "Whether the answer counts: the last one to its item without flags, of a real trial"),
    Column("rt_ms", "number", "From the frame that showed the response screen to the key press", "ms"),
    Column("key", "text", "The key that was pressed"),
    Column(
        "flags", "text",
        "What went wrong with the presentation, words with a space between; empty if nothing did. "
        "late: a duration off by over half a frame, or a frame dropped right after the onset; hidden: the page was not "
        "visible; blurred: it had lost the focus; window: full screen was left or the window resized; "
        "slow_refresh: the screen had become slower",
    ),
    Column("shown_at_ms", "whole", "When the trial began, by the participant's computer", EPOCH),
    Column("cue_onset_ms", "number", f"Frame that first showed the dots alone, {PAGE_CLOCK}", "ms"),
    Column("cue_asked_ms", "number", "How long the dots were to be shown alone", "ms"),
    Column("cue_ms", "number", "How long they were", "ms"),
    Column("cue_frames", "whole", "Frames for which they were", "frames"),
    Column("image_onset_ms", "number", f"Frame that first showed the image, {PAGE_CLOCK}", "ms"),
    Column("image_asked_ms", "number", "How long the image with the dots was to be shown", "ms"),
    Column("image_ms", "number", "How long it was", "ms"),
    Column("image_frames", "whole", "Frames for which it was", "frames"),
    Column("response_onset_ms", "number", f"Frame that first showed the response screen, {PAGE_CLOCK}", "ms"),
    Column("frames_dropped", "whole", "Frames that were missed during the trial", "frames"),
    Column("longest_gap_ms", "number", "Longest time between two frames of the trial", "ms"),
    Column("refresh_hz", "number", "Refresh rate of the screen, as measured", "Hz"),
    Column("visible", "truth", "Whether the page was visible throughout"),
    Column("focused", "truth", "Whether the page had the focus throughout"),
    Column("full_screen", "truth", "Whether the page filled the screen throughout"),
    Column("received_at_ms", "whole", "When the record reached the server, by its clock", EPOCH),
)  # fmt: skip

EVENTS = (
    *IDENTIFYING_COLUMNS,
    Column(
        "kind", "text", "What the event is about",
        levels=("consent", "device", "keys", "distance", "gamma", "screen", "resumed", "break", "interruption",
                "contours", "left", "comment"),
    ),
    Column("at_ms", "whole", "When it happened, by the participant's computer", EPOCH),
    Column("data", "text", "What was found or done, as JSON"),
    Column("received_at_ms", "whole", "When the record reached the server, by its clock", EPOCH),
)  # fmt: skip

EXPECTED_ERROR = Column(
    "expected_error", "number",
    "Expected error of the maps, mean |p - median| over their entries: when these pairs were chosen; of a session, "
    "when pairs were chosen last or asking was stopped",
)  # fmt: skip

CHOICES = (
    *IDENTIFYING_COLUMNS[:2],
    Column("item", "whole", "Number of the trial in the session's list whose pair was chosen"),
    Column("image", "text", "Name of the image"),
    Column("i", "whole", "Location of the first dot"),
    Column("j", "whole", "Location of the second dot"),
    Column("batch", "whole", "Number of the batch: pairs that were chosen together; batches are in their order"),
    Column("rule", "text", "What a pair was chosen for", levels=("variance_reduction", "bald", "random")),
    Column("seed", "whole", "What started the chance of the batch"),
    Column("answers", "whole", "How many answers it followed from"),
    EXPECTED_ERROR,
    Column("chosen_at_ms", "whole", "When it was stored, by the server's clock", EPOCH),
    Column(
        "taken", "text",
        "Which answers it followed from, a space between sessions: session:records:ahead, where all records below "
        "`records` were known, and choices for items below `ahead` were still to be answered",
    ),
)  # fmt: skip

SESSIONS = (
    *IDENTIFYING_COLUMNS[:2],
    Column(
        "status", "text",
        "How the session stands: active (under way or abandoned), completed, left (early, data kept), "
        "ended (away for too long)",
        levels=("active", "completed", "left", "ended"),
    ),
    Column("images", "text", "The images it was given, in order, a space between"),
    Column("units", "text", "The share of each image's pairs it was given, in the same order"),
    Column("started_at_ms", "whole", "When it began, by the server's clock", EPOCH),
    Column("finished_at_ms", "whole", "When it was completed, left or ended; empty before", EPOCH),
    Column("responses", "whole", "How many answers it gave, all of them"),
    Column("flagged", "whole", "How many of these were not shown right"),
    Column("answers_used", "whole", "How many of these count"),
    Column("practice_correct", "number", "Share of right answers among practice trials; empty without them"),
    Column("catch_correct", "number", "Share of right answers among catch trials; empty without them"),
    Column("median_rt_ms", "number", "Median reaction time of the answers that count", "ms"),
    Column("measured_refresh_hz", "number", "Refresh rate at the device check", "Hz"),
    Column("px_per_mm", "number", "Size of the screen's pixels, from the card", "px of the screen / mm"),
    Column("distance_mm", "number", "Viewing distance, from the blind spot", "mm"),
    Column("width_deg_asked", "number", "Width the image was to have", "degrees"),
    Column("width_deg", "number", "Width it had; empty where the distance is not known", "degrees"),
    Column("gamma", "number", "The screen's gamma, median of the matches"),
    Column("gamma_spread", "number", "Standard deviation of the single estimates of gamma"),
    Column("stops", "text", "Where an adaptive study stopped asking: image:item, the first not asked"),
    EXPECTED_ERROR,
    Column("simulated", "truth", "Whether vseg simulate-participants answered instead of a person"),
    Column("vseg_version", "text", "The version of vseg that drew the trials"),
)  # fmt: skip
