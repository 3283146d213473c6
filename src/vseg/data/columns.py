"""Every column of an export, in its order, with its type, its unit and what it means."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Variable:
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

WHO = (
    Variable("participant", "text", "Random name of the participant"),
    Variable("session", "text", "Random name of the session"),
    Variable(
        "seq", "whole", "Number of the record in its session; responses and events count together, from 0"
    ),
)

RESPONSES = (
    *WHO,
    Variable("item", "whole", "Number of the trial in the session's list (study/trials); asked again, it keeps it"),
    Variable("image", "text", "Name of the image; practice and catch trials are on the one called practice"),
    Variable("block", "whole", "Block within the image, from 0"),
    Variable("trial", "whole", "Place within the block as planned, from 0, catch trials included"),
    Variable("i", "whole", "Location of the first dot; locations count from 0, on a grid row by row from the top left"),
    Variable("j", "whole", "Location of the second dot"),
    Variable("chosen", "truth", "Whether the pair was chosen from answers so far; 0 for the one the trials have"),
    Variable("x1", "number", "Centre of the first dot from the image's left edge", "px of the image"),
    Variable("y1", "number", "Centre of the first dot from the image's top edge", "px of the image"),
    Variable("x2", "number", "Centre of the second dot from the image's left edge", "px of the image"),
    Variable("y2", "number", "Centre of the second dot from the image's top edge", "px of the image"),
    Variable("practice", "truth", "Whether it was a practice trial"),
    Variable("catch", "truth", "Whether it was a catch trial, with an obvious answer"),
    Variable("same", "truth", "The answer: 1 if both dots were said to lie in the same segment"),
    Variable("correct", "truth", "Whether the answer is the right one; empty for real trials, which have none"),
    Variable("used", "truth", "Whether the answer counts: the last one to its item without flags, of a real trial"),
    Variable("rt_ms", "number", "From the frame that showed the response screen to the key press", "ms"),
    Variable("key", "text", "The key that was pressed"),
    Variable(
        "flags", "text",
        "What went wrong with the presentation, words with a space between; empty if nothing did. "
        "late: a duration off by over half a frame, or a frame dropped right after the onset; hidden: the page was not "
        "visible; blurred: it had lost the focus; window: full screen was left or the window resized; "
        "slow_refresh: the screen had become slower",
    ),
    Variable("shown_at_ms", "whole", "When the trial began, by the participant's computer", EPOCH),
    Variable("cue_onset_ms", "number", f"Frame that first showed the dots alone, {PAGE_CLOCK}", "ms"),
    Variable("cue_asked_ms", "number", "How long the dots were to be shown alone", "ms"),
    Variable("cue_ms", "number", "How long they were", "ms"),
    Variable("cue_frames", "whole", "Frames for which they were", "frames"),
    Variable("image_onset_ms", "number", f"Frame that first showed the image, {PAGE_CLOCK}", "ms"),
    Variable("image_asked_ms", "number", "How long the image with the dots was to be shown", "ms"),
    Variable("image_ms", "number", "How long it was", "ms"),
    Variable("image_frames", "whole", "Frames for which it was", "frames"),
    Variable("response_onset_ms", "number", f"Frame that first showed the response screen, {PAGE_CLOCK}", "ms"),
    Variable("frames_dropped", "whole", "Frames that were missed during the trial", "frames"),
    Variable("longest_gap_ms", "number", "Longest time between two frames of the trial", "ms"),
    Variable("refresh_hz", "number", "Refresh rate of the screen, as measured", "Hz"),
    Variable("visible", "truth", "Whether the page was visible throughout"),
    Variable("focused", "truth", "Whether the page had the focus throughout"),
    Variable("full_screen", "truth", "Whether the page filled the screen throughout"),
    Variable("received_at_ms", "whole", "When the record reached the server, by its clock", EPOCH),
)  # fmt: skip

EVENTS = (
    *WHO,
    Variable(
        "kind", "text", "What the event is about",
        levels=("consent", "device", "keys", "distance", "gamma", "screen", "resumed", "break", "interruption",
                "contours", "left", "comment"),
    ),
    Variable("at_ms", "whole", "When it happened, by the participant's computer", EPOCH),
    Variable("data", "text", "What was found or done, as JSON"),
    Variable("received_at_ms", "whole", "When the record reached the server, by its clock", EPOCH),
)  # fmt: skip

EXPECTED_ERROR = Variable(
    "expected_error", "number",
    "Expected error of the maps, mean |p - median| over their entries: when these pairs were chosen; of a session, "
    "when pairs were chosen last or asking was stopped",
)  # fmt: skip

CHOICES = (
    *WHO[:2],
    Variable("item", "whole", "Number of the trial in the session's list whose pair was chosen"),
    Variable("image", "text", "Name of the image"),
    Variable("i", "whole", "Location of the first dot"),
    Variable("j", "whole", "Location of the second dot"),
    Variable("batch", "whole", "Number of the batch: pairs that were chosen together; batches are in their order"),
    Variable("rule", "text", "What a pair was chosen for", levels=("variance_reduction", "bald", "random")),
    Variable("seed", "whole", "What started the chance of the batch"),
    Variable("answers", "whole", "How many answers it followed from"),
    EXPECTED_ERROR,
    Variable("chosen_at_ms", "whole", "When it was stored, by the server's clock", EPOCH),
    Variable(
        "taken", "text",
        "Which answers it followed from, a space between sessions: session:records:ahead, where all records below "
        "`records` were known, and choices for items below `ahead` were still to be answered",
    ),
)  # fmt: skip

SESSIONS = (
    *WHO[:2],
    Variable(
        "status", "text",
        "How the session stands: active (under way or abandoned), completed, left (early, data kept), "
        "ended (away for too long)",
        levels=("active", "completed", "left", "ended"),
    ),
    Variable("images", "text", "The images it was given, in order, a space between"),
    Variable("units", "text", "The share of each image's pairs it was given, in the same order"),
    Variable("started_at_ms", "whole", "When it began, by the server's clock", EPOCH),
    Variable("finished_at_ms", "whole", "When it was completed, left or ended; empty before", EPOCH),
    Variable("responses", "whole", "How many answers it gave, all of them"),
    Variable("flagged", "whole", "How many of these were not shown right"),
    Variable("answers_used", "whole", "How many of these count"),
    Variable("practice_correct", "number", "Share of right answers among practice trials; empty without them"),
    Variable("catch_correct", "number", "Share of right answers among catch trials; empty without them"),
    Variable("median_rt_ms", "number", "Median reaction time of the answers that count", "ms"),
    Variable("measured_refresh_hz", "number", "Refresh rate at the device check", "Hz"),
    Variable("px_per_mm", "number", "Size of the screen's pixels, from the card", "px of the screen / mm"),
    Variable("distance_mm", "number", "Viewing distance, from the blind spot", "mm"),
    Variable("width_deg_asked", "number", "Width the image was to have", "degrees"),
    Variable("width_deg", "number", "Width it had; empty where the distance is not known", "degrees"),
    Variable("gamma", "number", "The screen's gamma, median of the matches"),
    Variable("gamma_spread", "number", "Standard deviation of the single estimates of gamma"),
    Variable("stops", "text", "Where an adaptive study stopped asking: image:item, the first not asked"),
    EXPECTED_ERROR,
    Variable("simulated", "truth", "Whether vseg simulate-participants answered instead of a person"),
    Variable("vseg_version", "text", "The version of vseg that drew the trials"),
)  # fmt: skip
