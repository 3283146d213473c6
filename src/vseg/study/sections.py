"""The tables of the study file, a class each, and the kinds of values they hold."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from vseg.data.layout import Grid, Layout, Scatter
from vseg.errors import InvalidInput
from vseg.study.toml_errors import wrong

MOST_PAIRS = 100_000  # of a block; more take minutes to draw and to deal out
# Far beyond any study, and safely within what a database holds: a file may well say "never" or "no limit" by a number.
MOST_MINUTES = 52_560_000  # a hundred years
MOST_COUNTED = 1_000_000
MOST_IMAGES = 1000
RESERVED = "practice"  # the picture that practice and catch trials show

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
# TOML has lists where Python has tuples, so these two are not taken strictly.
Point = Annotated[tuple[Fraction, Fraction], Field(strict=False)]
Length = Annotated[int, Field(ge=0, le=20_000)]
Size = Annotated[tuple[Length, Length], Field(strict=False)]


class Table(BaseModel):
    """A table of the study file: no unknown keys, no guessing of types, no change afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Image(Table):
    """One image: a file, or something vseg generates. Exactly one of `file`, `sample`, `texture`, `colours`."""

    name: Name
    file: str | None = None
    sample: str | None = None
    texture: Literal["low", "high"] | None = None
    colours: Annotated[int, Field(ge=2, le=8)] | None = None
    seed: Seed = 0
    square: bool = True
    condition: Name | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [key for key in ("file", "sample", "texture", "colours") if getattr(self, key) is not None]
        if len(given) != 1:
            raise wrong(
                f"image {self.name!r} needs exactly one of file, sample, texture or colours, "
                f"got {' and '.join(given) or 'none'}"
            )
        if self.name == RESERVED:
            raise wrong(
                f"{RESERVED!r} is the name of the picture for practice; give this image another", "name"
            )
        return self


class Locations(Table):
    """Where people are asked: `grid = N`, or `points`, a list of x, y as fractions of width and height."""

    grid: Annotated[int, Field(ge=3, le=64)] | None = None
    points: Annotated[list[Point], Field(min_length=4, max_length=4096)] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.grid is None) == (self.points is None):
            got = "neither" if self.grid is None else "both"
            raise wrong(f"a layout is either grid = N or points = [[x, y], ...], got {got}")
        try:
            self.build()
        except InvalidInput as error:
            raise wrong(f"layout.points: {str(error)[:1].lower()}{str(error)[1:]}", "points") from error
        return self

    def build(self) -> Layout:
        """The layout itself."""
        return (
            Grid(self.grid)
            if self.grid is not None
            else Scatter([list(point) for point in self.points or []])
        )


class Design(Table):
    """Which pairs are asked, how often, and over how many people one image's pairs are split.

    With `name = "adaptive"` pairs are chosen from the answers so far: `trials` is then the most that one person is
    asked about an image, in one block; `rule` says what a pair is worth; with `shared` all people on an image feed one
    map; an image is done before its last trial once its expected error is at most `target_error`, but not before
    `least_trials`.
    """

    name: Literal["covering", "balanced", "scattered", "all", "adaptive"] = "scattered"
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
    def _one_block_of_fresh_pairs(cls, given: Any) -> Any:
        """What an adaptive design has where the file says nothing."""
        if isinstance(given, dict) and given.get("name") == "adaptive":
            return {"blocks": 1, "pairs": "fresh", "rule": "variance_reduction", "shared": False} | given
        return given

    @model_validator(mode="after")
    def _keys_of_its_own(self) -> Self:
        if not self.adaptive:
            for key in ("rule", "shared", "target_error", "least_trials"):
                if getattr(self, key) is not None:
                    raise wrong(f'design.{key} needs design.name = "adaptive", got {self.name!r}', key)
            return self
        for key, only in (("blocks", 1), ("pairs", "fresh"), ("split", 1)):
            if (value := getattr(self, key)) != only:
                raise wrong(
                    f"an adaptive design has design.{key} = {only!r}, since each pair follows from the answers "
                    f"before it, got {value!r}; leave it out",
                    key,
                )
        if self.least_trials is not None and self.target_error is None:
            raise wrong(
                "design.least_trials says when design.target_error may end a session at the earliest; "
                "give that too, or leave it out",
                "least_trials",
            )
        return self

    @property
    def adaptive(self) -> bool:
        """Whether pairs are chosen from the answers so far."""
        return self.name == "adaptive"


class Assignment(Table):
    """Who sees which image: one each (`between`) or several (`within`), balanced by completions."""

    images: Literal["between", "within"] = "between"
    per_participant: Annotated[int, Field(ge=1, le=MOST_IMAGES)] | None = None
    quota_per_image: Annotated[int, Field(ge=1, le=MOST_COUNTED)] | None = None
    quota_per_condition: dict[str, Annotated[int, Field(ge=0, le=MOST_COUNTED)]] = {}


class Practice(Table):
    """Trials on a picture whose answer is known, before the first block."""

    trials: Annotated[int, Field(ge=0, le=200)] = 10
    feedback: bool = True


class Catch(Table):
    """Trials with an obvious answer, strewn into each block: was the person still looking?"""

    per_block: Annotated[int, Field(ge=0, le=100)] = 2


class Breaks(Table):
    """A rest after every so many trials (0: only between blocks), of at least so many seconds."""

    every_trials: Annotated[int, Field(ge=0, le=MOST_COUNTED)] = 125
    at_least_s: Annotated[int, Field(ge=0, le=600)] = 0


class Timing(Table):
    """Milliseconds of a trial. `pause_ms` is the empty screen between an answer and the next cue."""

    preview_ms: Milliseconds = 3000
    cue_ms: Milliseconds = 300
    image_ms: Annotated[int, Field(ge=10, le=60_000)] = 300
    pause_ms: Milliseconds = 0


class Keys(Table):
    """The keys of the two answers; a participant may choose others if `remappable`."""

    same: Key = "f"
    different: Key = "j"
    remappable: bool = True

    @model_validator(mode="after")
    def _two_keys(self) -> Self:
        if self.same == self.different:
            raise wrong(f"keys.same and keys.different need two keys, both are {self.same!r}", "different")
        return self


class Display(Table):
    """How large things are: in degrees once the distance is known, in pixels without calibration."""

    width_deg: Annotated[float, Field(gt=0, le=60)] = 10.0
    width_px: Annotated[int, Field(ge=64, le=4096)] = 512
    dot_deg: Annotated[float, Field(gt=0, le=5)] = 0.25
    dot_px: Annotated[float, Field(gt=0, le=100)] = 12.0
    background: Annotated[int, Field(ge=0, le=255)] = 128
    window_px: Size = (800, 600)
    refresh_hz: Annotated[float, Field(ge=0, le=1000)] = 50.0
    full_screen: bool = True


class Calibration(Table):
    """Card and blind spot for the distance; matches of a patch to a dither for the screen's gamma.

    The image is shown through the inverse, so that luminance follows pixel values to the power `image_gamma`:
    2.2 for photographs, 1 where pixel values mean luminance.
    """

    distance: bool = True
    gamma: bool = True
    gamma_matches: Annotated[int, Field(ge=2, le=20)] = 4
    image_gamma: Annotated[float, Field(gt=0, le=4)] = 2.2


class Contours(Table):
    """Whether the participant draws the segments' contours at the end."""

    draw: bool = False


class Interruption(Table):
    """What happens to someone who comes back after more than `after_minutes`; before, they simply go on."""

    policy: Literal["resume", "repeat-block", "end"] = "resume"
    after_minutes: Annotated[int, Field(ge=0, le=MOST_MINUTES)] = 60


class Prolific(Table):
    """The code that tells Prolific that a participant is done."""

    completion_code: Code
    required: bool = False


class Privacy(Table):
    """How long it is known who people are: days since something was last heard of them; left out, until erased."""

    keep_identities_days: Annotated[int, Field(ge=0, le=36_500)] | None = None


class Photodiode(Table):
    """A square in a corner of the screen, white exactly with the frames of one phase of a trial, else black."""

    corner: Literal["top-left", "top-right", "bottom-left", "bottom-right"] = "bottom-left"
    size_px: Annotated[int, Field(ge=8, le=1000)] = 80
    phase: Literal["cue", "image"] = "image"


class Lab(Table):
    """For recordings beside the answers, such as EEG: a patch for a photodiode, and exported event markers."""

    photodiode: Photodiode | None = None
    markers: bool = False
