"""The tables of the study file: one class for each table, one field for each setting.

To add a setting, add a field with its type, its limits (`Annotated[int, Field(ge=…, le=…)]`) and its default to the
class of its table. The error messages about missing, unknown and wrong values follow from that. A check that involves
several settings goes into a validator that raises `setting_error`. Document the setting in docs/collecting.md; a
setting that the participant's page reads is also typed in frontend/src/wire.ts.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from vseg.data.layout import Grid, Layout, Scatter
from vseg.errors import InvalidInput
from vseg.study.toml_errors import setting_error

MOST_PAIRS = 100_000  # in a block; drawing and splitting more takes minutes
# Limits far beyond any real study, and within what a database integer holds: files use large numbers for "no limit".
MOST_MINUTES = 52_560_000  # a hundred years
MOST_COUNTED = 1_000_000
MOST_IMAGES = 1000
PRACTICE_IMAGE = "practice"  # name of the generated image that practice and catch trials show

Name = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9][a-z0-9-]{0,62}$",
        json_schema_extra={
            "should_be": "lower-case letters, digits and hyphens such as my-study, at most 63"
        },
    ),
]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Milliseconds = Annotated[int, Field(ge=0, le=60_000)]
Key = Annotated[
    str,
    Field(
        pattern=r"^([a-z0-9]|arrowleft|arrowright|arrowup|arrowdown|space|enter)$",
        json_schema_extra={
            "should_be": "a lower-case letter, a digit, arrowleft, arrowright, arrowup, arrowdown, space or enter"
        },
    ),
]
Code = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        json_schema_extra={"should_be": "the code that Prolific shows, letters and digits such as C1A2B3C4"},
    ),
]
Fraction = Annotated[float, Field(ge=0, le=1)]
# TOML has lists, not tuples, so strict validation is off for these three.
Point = Annotated[tuple[Fraction, Fraction], Field(strict=False)]
Length = Annotated[int, Field(ge=0, le=20_000)]
Size = Annotated[tuple[Length, Length], Field(strict=False)]
Angle = Annotated[float, Field(ge=-180, le=180)]
Angles = Annotated[tuple[Angle, Angle], Field(strict=False)]


class Section(BaseModel):
    """Base class of the tables: unknown keys are errors, types are not converted, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


PresetName = Literal["low", "high"]


class TextureSection(Section):
    """`texture = { … }`: the parameters of two oriented textures (Table 1); those left out are the preset's."""

    preset: PresetName = "low"
    orientations_deg: Angles | None = None
    spread_deg: Annotated[float, Field(gt=0, le=90)] | None = None
    mode_cpd: Annotated[float, Field(gt=0, le=60)] | None = None
    bandwidth_oct: Annotated[float, Field(gt=0, le=10)] | None = None
    rms_contrast: Annotated[float, Field(gt=0, le=128)] | None = None
    mean_grey: Annotated[float, Field(ge=0, le=255)] | None = None


# The discriminator makes errors name the setting inside the table, not all members of the union.
TextureSetting = Annotated[
    Annotated[PresetName, Tag("(name)")] | Annotated[TextureSection, Tag("(table)")],
    Discriminator(lambda given: "(table)" if isinstance(given, dict | TextureSection) else "(name)"),
]


class ImageSection(Section):
    """`[[images]]`: one image, from exactly one of `file`, `sample`, `texture` and `colours`.

    An oracle design takes the segment of each location from `labels`: known ones, or those of a first study's map.
    """

    name: Name
    file: str | None = None
    sample: str | None = None
    texture: TextureSetting | None = None
    colours: Annotated[int, Field(ge=2, le=8)] | None = None
    seed: Seed = 0
    square: bool = True
    condition: Name | None = None
    labels: (
        Annotated[list[Annotated[int, Field(ge=0, le=11)]], Field(min_length=1, max_length=4096)] | None
    ) = None

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        given = [key for key in ("file", "sample", "texture", "colours") if getattr(self, key) is not None]
        if len(given) != 1:
            raise setting_error(
                f"image {self.name!r} needs exactly one of file, sample, texture or colours, "
                f"got {' and '.join(given) or 'none'}"
            )
        if self.name == PRACTICE_IMAGE:
            raise setting_error(
                f"{PRACTICE_IMAGE!r} is the name of the practice image; choose another name", "name"
            )
        return self


class LayoutSection(Section):
    """`[layout]`: the tested locations, `grid = N` or `points`, a list of x, y as fractions of width and height."""

    grid: Annotated[int, Field(ge=3, le=64)] | None = None
    points: Annotated[list[Point], Field(min_length=4, max_length=4096)] | None = None

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if (self.grid is None) == (self.points is None):
            got = "neither" if self.grid is None else "both"
            raise setting_error(f"a layout is either grid = N or points = [[x, y], ...], got {got}")
        try:
            self.build()
        except InvalidInput as error:
            raise setting_error(
                f"layout.points: {str(error)[:1].lower()}{str(error)[1:]}", "points"
            ) from error
        return self

    def build(self) -> Layout:
        """Return the layout these settings describe."""
        return (
            Grid(self.grid)
            if self.grid is not None
            else Scatter([list(point) for point in self.points or []])
        )


class DesignSection(Section):
    """`[design]`: which pairs are tested, in how many blocks, and over how many participants they are split.

    With `name = "adaptive"` pairs are chosen from the answers so far, in one block. `trials` is then the largest number
    of trials for one participant and image, `rule` the acquisition rule, and `shared` says whether the answers of all
    participants on an image are pooled. An image ends early once its expected error is at most `target_error`, but
    not before `least_trials`. With `name = "oracle"` pairs follow from the `labels` of the images.
    """

    name: Literal["covering", "balanced", "scattered", "all", "oracle", "adaptive"] = "scattered"
    trials: Annotated[int, Field(ge=1, le=MOST_PAIRS)] | None = None
    blocks: Annotated[int, Field(ge=1, le=100)] = 5
    pairs: Literal["repeated", "fresh"] = "repeated"
    split: Annotated[int, Field(ge=1, le=1000)] = 1
    rule: Literal["variance_reduction", "bald", "random"] | None = None
    shared: bool | None = None
    target_error: Annotated[float, Field(gt=0, lt=1)] | None = None
    least_trials: Annotated[int, Field(ge=1, le=MOST_PAIRS)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _set_adaptive_defaults(cls, given: Any) -> Any:
        """Set the defaults of an adaptive design, which differ from those of the other designs."""
        if isinstance(given, dict) and given.get("name") == "adaptive":
            return {"blocks": 1, "pairs": "fresh", "rule": "variance_reduction", "shared": False} | given
        return given

    @model_validator(mode="after")
    def _check_adaptive_settings(self) -> Self:
        if not self.is_adaptive:
            for key in ("rule", "shared", "target_error", "least_trials"):
                if getattr(self, key) is not None:
                    raise setting_error(
                        f'design.{key} needs design.name = "adaptive", got {self.name!r}', key
                    )
            return self
        for key, required in (("blocks", 1), ("pairs", "fresh"), ("split", 1)):
            if (value := getattr(self, key)) != required:
                raise setting_error(
                    f"an adaptive design has design.{key} = {required!r}, since each pair depends on the answers "
                    f"before it, got {value!r}; leave it out",
                    key,
                )
        if self.least_trials is not None and self.target_error is None:
            raise setting_error(
                "design.least_trials needs design.target_error, the error at which an image may end early; "
                "set both, or leave least_trials out",
                "least_trials",
            )
        return self

    @property
    def is_pooled(self) -> bool:
        """Whether a map is that of all participants together: pairs are split, or chosen from everybody's answers."""
        return self.split > 1 or bool(self.shared)

    @property
    def is_adaptive(self) -> bool:
        """Whether pairs are chosen from the answers so far."""
        return self.name == "adaptive"


class AssignmentSection(Section):
    """`[assignment]`: one image per participant (`between`) or several (`within`), balanced by completed sessions."""

    images: Literal["between", "within"] = "between"
    per_participant: Annotated[int, Field(ge=1, le=MOST_IMAGES)] | None = None
    quota_per_image: Annotated[int, Field(ge=1, le=MOST_COUNTED)] | None = None
    quota_per_condition: dict[str, Annotated[int, Field(ge=0, le=MOST_COUNTED)]] = {}


class PracticeSection(Section):
    """`[practice]`: trials with a known answer before the first block."""

    trials: Annotated[int, Field(ge=0, le=200)] = 10
    feedback: bool = True


class CatchSection(Section):
    """`[catch]`: trials with an obvious answer, mixed into each block to check attention."""

    per_block: Annotated[int, Field(ge=0, le=100)] = 2


class BreaksSection(Section):
    """`[breaks]`: a break every `every_trials` trials of a block (0: only between blocks), `at_least_s` s or longer."""

    every_trials: Annotated[int, Field(ge=0, le=MOST_COUNTED)] = 125
    at_least_s: Annotated[int, Field(ge=0, le=600)] = 0


LONGEST_FRAME_MS = 17  # at 60 Hz


class TimingSection(Section):
    """`[timing]`: durations in milliseconds. `pause_ms` is the blank screen between an answer and the next cue."""

    preview_ms: Milliseconds = 3000
    cue_ms: Milliseconds = 300
    image_ms: Annotated[int, Field(ge=10, le=60_000)] = 300
    pause_ms: Milliseconds = 0

    def is_too_fast(self, answers: int, started_at_ms: int, answered_at_ms: int | None) -> bool:
        """Return whether answers arrived sooner after the beginning of a session than their trials can be shown.

        Both times are by the server's clock, whatever a page reports. Only the whole time is judged, since a page that
        was offline sends many answers at once. Each part of a trial may be shown for one frame less than planned. If
        the clock was set back meanwhile, nothing can be said.
        """
        if answered_at_ms is None or answered_at_ms < started_at_ms:
            return False
        parts_ms = (self.cue_ms, self.image_ms, self.pause_ms)
        trial_ms = sum(max(part_ms - LONGEST_FRAME_MS, 0) for part_ms in parts_ms)
        return answered_at_ms - started_at_ms < answers * trial_ms


class KeysSection(Section):
    """`[keys]`: the keys of the two answers; participants may choose others if `remappable`."""

    same: Key = "f"
    different: Key = "j"
    remappable: bool = True

    @model_validator(mode="after")
    def _check_different(self) -> Self:
        if self.same == self.different:
            raise setting_error(
                f"keys.same and keys.different need two keys, both are {self.same!r}", "different"
            )
        return self


class DisplaySection(Section):
    """`[display]`: sizes in degrees if the viewing distance is measured, else in pixels; requirements on the screen."""

    width_deg: Annotated[float, Field(gt=0, le=60)] = 10.0
    width_px: Annotated[int, Field(ge=64, le=4096)] = 512
    dot_deg: Annotated[float, Field(gt=0, le=5)] = 0.25
    dot_px: Annotated[float, Field(gt=0, le=100)] = 12.0
    background: Annotated[int, Field(ge=0, le=255)] = 128
    window_px: Size = (800, 600)
    refresh_hz: Annotated[float, Field(ge=0, le=1000)] = 50.0
    full_screen: bool = True


class CalibrationSection(Section):
    """`[calibration]`: whether viewing distance (card and blind spot) and the screen's gamma (matching) are measured.

    Images are corrected for the measured gamma, so that luminance follows pixel values to the power `image_gamma`:
    2.2 for photographs, 1 if pixel values are proportional to luminance.
    """

    distance: bool = True
    gamma: bool = True
    gamma_matches: Annotated[int, Field(ge=2, le=20)] = 4
    image_gamma: Annotated[float, Field(gt=0, le=4)] = 2.2


class ContoursSection(Section):
    """`[contours]`: whether the participant draws the borders of the segments at the end."""

    draw: bool = False


class InterruptionSection(Section):
    """`[interruption]`: what happens when a participant returns after more than `after_minutes`."""

    policy: Literal["resume", "repeat-block", "end"] = "resume"
    after_minutes: Annotated[int, Field(ge=0, le=MOST_MINUTES)] = 60


class ProlificSection(Section):
    """`[prolific]`: the completion code, and whether participants must come from Prolific."""

    completion_code: Code
    required: bool = False


class PrivacySection(Section):
    """`[privacy]`: days after a participant's last activity when their identity is erased; never, if left out."""

    keep_identities_days: Annotated[int, Field(ge=0, le=36_500)] | None = None


class PhotodiodeSection(Section):
    """`[lab.photodiode]`: a square in a corner of the screen that is white during one phase of a trial, else black."""

    corner: Literal["top-left", "top-right", "bottom-left", "bottom-right"] = "bottom-left"
    size_px: Annotated[int, Field(ge=8, le=1000)] = 80
    phase: Literal["cue", "image"] = "image"


class LabSection(Section):
    """`[lab]`: a photodiode square and exported event markers, for recordings such as EEG."""

    photodiode: PhotodiodeSection | None = None
    markers: bool = False
