"""The study file: everything an experiment is, in one TOML file, checked with the line and the reason.

`load(path)` reads it into a frozen `Study`; the classes below are the schema, a class a table. What a study
then asks of people is drawn by `vseg.plan`.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vseg import texts, toml_errors
from vseg.errors import InvalidInput, NotFound
from vseg.layout import Grid, Layout, Scatter
from vseg.toml_errors import wrong

EXPECTED_SEGMENTS = 5  # what a free segmentation is planned for: the paper's choice for photographs
LARGEST_FILE = 1_000_000

MOST_PAIRS = 100_000  # of a block; more take minutes to draw and to deal out
MOST_TRIALS = 100_000  # of one person; a day has fewer
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
# TOML has lists where Python has tuples, so these two are not taken strictly.
Fraction = Annotated[float, Field(ge=0, le=1)]
Point = Annotated[tuple[Fraction, Fraction], Field(strict=False)]
Size = Annotated[tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]], Field(strict=False)]


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
    seed: Annotated[int, Field(ge=0)] = 0
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
    """Which pairs are asked, how often, and over how many people one image's pairs are split."""

    name: Literal["covering", "balanced", "scattered", "all"] = "scattered"
    trials: Annotated[int, Field(ge=1, le=MOST_PAIRS)] | None = None
    blocks: Annotated[int, Field(ge=1, le=100)] = 5
    pairs: Literal["repeated", "fresh"] = "repeated"
    split: Annotated[int, Field(ge=1, le=1000)] = 1


class Assignment(Table):
    """Who sees which image: one each (`between`) or several (`within`), balanced by completions."""

    images: Literal["between", "within"] = "between"
    per_participant: Annotated[int, Field(ge=1)] | None = None
    quota_per_image: Annotated[int, Field(ge=1)] | None = None
    quota_per_condition: dict[str, Annotated[int, Field(ge=0)]] = {}


class Practice(Table):
    """Trials on a picture whose answer is known, before the first block."""

    trials: Annotated[int, Field(ge=0, le=200)] = 10
    feedback: bool = True


class Catch(Table):
    """Trials with an obvious answer, strewn into each block: was the person still looking?"""

    per_block: Annotated[int, Field(ge=0, le=100)] = 2


class Breaks(Table):
    """A rest after every so many trials (0: only between blocks), of at least so many seconds."""

    every_trials: Annotated[int, Field(ge=0)] = 125
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
    refresh_hz: Annotated[float, Field(ge=0)] = 50.0
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
    after_minutes: Annotated[int, Field(ge=0)] = 60


class Prolific(Table):
    """The code that tells Prolific that a participant is done."""

    completion_code: Code
    required: bool = False


class Study(Table):
    """The frozen description of an experiment.

    Examples
    --------
    >>> study = parsed('''
    ... name = "two-textures"
    ... segments = 2
    ... participants = 30
    ... layout = {grid = 11}
    ... images = [{name = "low", texture = "low"}, {name = "high", texture = "high"}]
    ... ''')
    >>> study.design.blocks, study.quota("low")
    (5, 15)
    """

    name: Name
    title: Annotated[str, Field(max_length=200)] = ""
    language: Literal["en", "fr", "de"] = "en"
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    segments: Annotated[int, Field(ge=2, le=12)] | Literal["free"]
    participants: Annotated[int, Field(ge=1, le=100_000)]
    personal_links_only: bool = False
    layout: Locations
    images: Annotated[list[Image], Field(min_length=1, max_length=1000)]
    design: Design = Design()
    assignment: Assignment = Assignment()
    practice: Practice = Practice()
    catch: Catch = Catch()
    breaks: Breaks = Breaks()
    timing: Timing = Timing()
    keys: Keys = Keys()
    display: Display = Display()
    calibration: Calibration = Calibration()
    contours: Contours = Contours()
    interruption: Interruption = Interruption()
    prolific: Prolific | None = None
    texts: dict[str, str] = {}

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        self._check_images()
        self._check_assignment()
        self._check_trials()
        for key, text in self.texts.items():
            try:
                texts.checked({key: text})
            except ValueError as error:
                raise wrong(str(error), "texts", key) from error
        return self

    def _check_images(self) -> None:
        names = [image.name for image in self.images]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise wrong(
                    f"two images are called {name!r}; give each a name of its own", "images", number, "name"
                )

    def _check_assignment(self) -> None:
        wanted = self.assignment.per_participant
        if wanted is not None and wanted > len(self.images):
            there = f"{len(self.images)} image{'s' if len(self.images) > 1 else ''}"
            raise wrong(
                f"assignment.per_participant is {wanted}, but the study has {there}",
                "assignment",
                "per_participant",
            )
        if wanted is not None and wanted > 1 and self.assignment.images == "between":
            raise wrong(
                f'assignment.per_participant is {wanted}, but images = "between" shows one; '
                'write images = "within"',
                "assignment",
                "per_participant",
            )
        conditions = {image.condition for image in self.images}
        for name in self.assignment.quota_per_condition:
            if name not in conditions:
                raise wrong(
                    f"assignment.quota_per_condition names {name!r}, but no image has that condition",
                    "assignment",
                    "quota_per_condition",
                    name,
                )

    def _check_trials(self) -> None:
        layout, design = self.layout.build(), self.design
        n = len(layout)
        fewest, most = -(-n // 2), n * (n - 1) // 2
        if design.name == "all" and design.trials is not None:
            raise wrong(
                f'design.name = "all" asks all {most} pairs; leave trials out, or choose another design',
                "design",
                "trials",
            )
        if design.trials is not None and not fewest <= design.trials <= most:
            raise wrong(
                f"design.trials on {layout} should be {fewest} (every location once) to {most} (every pair "
                f"once), got {design.trials}",
                "design",
                "trials",
            )
        if self.pairs > MOST_PAIRS:
            raise wrong(
                f"a block on {layout} would have {self.pairs} pairs, and {MOST_PAIRS} is the most; "
                "take fewer locations, or a design of fewer trials",
                "design",
                "name",
            )
        if design.split > self.pairs:
            raise wrong(
                f"design.split is {design.split}, but {self.pairs} pairs can be shared by at most {self.pairs} people",
                "design",
                "split",
            )
        if (each := self.images_each * design.blocks * -(-self.pairs // design.split)) > MOST_TRIALS:
            raise wrong(
                f"one person would be asked {each} trials, and {MOST_TRIALS} is the most; "
                "take fewer locations, pairs, blocks or images, or split the pairs over more people",
                "design",
            )

    @property
    def planned_segments(self) -> int:
        """K, or what a free segmentation is planned for."""
        return EXPECTED_SEGMENTS if self.segments == "free" else self.segments

    @property
    def pairs(self) -> int:
        """How many pairs a block of one image has, before they are split: as asked for, or KN²."""
        n = len(self.layout.build())
        if self.design.name == "all":
            return n * (n - 1) // 2
        return self.design.trials or min(self.planned_segments * n, n * (n - 1) // 2)

    @property
    def images_each(self) -> int:
        """How many images one participant sees."""
        if self.assignment.images == "between":
            return 1
        return self.assignment.per_participant or len(self.images)

    def quota(self, image: str) -> int:
        """How many completed sessions an image is to have; without a word of the file, an even share."""
        if self.assignment.quota_per_image is not None:
            return self.assignment.quota_per_image
        return -(-self.participants * self.images_each // len(self.images))

    @property
    def all_texts(self) -> dict[str, str]:
        """Every text a participant sees, in the study's language, with the file's own in their place."""
        return texts.of(self.language) | self.texts


def load(path: str | Path) -> Study:
    """Read a study file; `InvalidInput` names the line and the reason.

    Examples
    --------
    >>> study = load("study.toml")  # doctest: +SKIP
    """
    return parsed(read(path), str(path))


def read(path: str | Path) -> str:
    """The text of a study file, as it stands."""
    path = Path(path)
    if not path.is_file():
        raise NotFound(f"No study file {path}; write one with: vseg study new NAME.")
    if path.stat().st_size > LARGEST_FILE:
        raise InvalidInput(
            f"{path} has {path.stat().st_size} bytes; a study file has at most {LARGEST_FILE}."
        )
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not UTF-8 text; a study file is TOML, see: vseg study new NAME."
        ) from error


def parsed(text: str, where: str = "study file") -> Study:
    """A study from the text of its file; `where` is what a message calls it."""
    try:
        return Study.model_validate(toml_errors.parsed(text, where))
    except ValidationError as error:
        raise InvalidInput(toml_errors.refused(error, text, Study.model_json_schema(), where)) from error
    except ValueError as error:
        raise InvalidInput(str(error)) from error
