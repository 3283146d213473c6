"""The study file: everything an experiment is, in one TOML file, checked with the line and the reason.

`load(path)` reads it into a frozen `Study`; the classes in `vseg.study.sections` are the rest of the schema, a class a
table. What a study then asks of people is drawn by `vseg.study`.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from vseg.errors import InvalidInput, NotFound
from vseg.study import texts, toml_errors
from vseg.study.sections import (
    MOST_IMAGES,
    MOST_PAIRS,
    RESERVED,
    Assignment,
    Breaks,
    Calibration,
    Catch,
    Contours,
    Design,
    Display,
    Image,
    Interruption,
    Keys,
    Lab,
    Locations,
    Name,
    Photodiode,
    Practice,
    Privacy,
    Prolific,
    Seed,
    Table,
    Timing,
)
from vseg.study.toml_errors import wrong

__all__ = ["RESERVED", "Design", "Image", "Lab", "Photodiode", "Study", "Table", "load", "parsed", "read"]

EXPECTED_SEGMENTS = 5  # what a free segmentation is planned for: the paper's choice for photographs
LARGEST_FILE = 1_000_000
LOCATIONS_A_START = 3  # an adaptive design begins with a fixed pair for every three locations
MOST_TRIALS = 100_000  # of one person; a day has fewer


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
    seed: Seed = 0
    segments: Annotated[int, Field(ge=2, le=12)] | Literal["free"]
    participants: Annotated[int, Field(ge=1, le=100_000)]
    personal_links_only: bool = False
    layout: Locations
    images: Annotated[list[Image], Field(min_length=1, max_length=MOST_IMAGES)]
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
    privacy: Privacy = Privacy()
    lab: Lab = Lab()
    texts: dict[str, str] = Field(default_factory=dict)

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
        if design.least_trials is not None and design.least_trials > self.pairs:
            raise wrong(
                f"design.least_trials is {design.least_trials}, but there are at most {self.pairs} trials an image",
                "design",
                "least_trials",
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
    def fewest_pairs(self) -> int:
        """After how many trials on an image one person may be done with it: all, unless the design has a target."""
        if self.design.target_error is None:
            return -(-self.pairs // self.design.split)
        return self.design.least_trials or self.start

    @property
    def start(self) -> int:
        """How many answers an adaptive design takes from fixed pairs before it chooses any."""
        return min(-(-len(self.layout.build()) // LOCATIONS_A_START), self.pairs)

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
