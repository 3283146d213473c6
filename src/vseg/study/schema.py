"""The study file: one TOML file that describes an experiment, read into a frozen `Study`.

`load_study(path)` reads and checks a file; an error names the line and the reason.

To add a setting, add a field to the class of its table in `vseg.study.sections`; to add a table, add a class there
and a field to `Study`. Checks that involve several tables are in `Study` (`_check_…`). Unknown keys, wrong types and
values out of range are reported without further code, from the types of the fields.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from vseg._support.text import format_count
from vseg.errors import InvalidInput, NotFound
from vseg.study import texts
from vseg.study.sections import (
    MOST_IMAGES,
    MOST_PAIRS,
    AssignmentSection,
    BreaksSection,
    CalibrationSection,
    CatchSection,
    ContoursSection,
    DesignSection,
    DisplaySection,
    ImageSection,
    InterruptionSection,
    KeysSection,
    LabSection,
    LayoutSection,
    Name,
    PracticeSection,
    PrivacySection,
    ProlificSection,
    Section,
    Seed,
    TimingSection,
)
from vseg.study.toml_errors import describe_validation_error, parse_toml, setting_error

DEFAULT_SEGMENTS = 5  # assumed for planning when segments = "free": the paper's choice for photographs
LARGEST_FILE = 1_000_000  # bytes or characters
LOCATIONS_PER_INITIAL_PAIR = 3  # an adaptive design begins with one fixed pair for every three locations
MOST_TRIALS = 100_000  # per participant


class Study(Section):
    """The description of an experiment: the settings at the top of the study file, and its tables.

    Examples
    --------
    >>> study = parse_study('''
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
    layout: LayoutSection
    images: Annotated[list[ImageSection], Field(min_length=1, max_length=MOST_IMAGES)]
    design: DesignSection = DesignSection()
    assignment: AssignmentSection = AssignmentSection()
    practice: PracticeSection = PracticeSection()
    catch: CatchSection = CatchSection()
    breaks: BreaksSection = BreaksSection()
    timing: TimingSection = TimingSection()
    keys: KeysSection = KeysSection()
    display: DisplaySection = DisplaySection()
    calibration: CalibrationSection = CalibrationSection()
    contours: ContoursSection = ContoursSection()
    interruption: InterruptionSection = InterruptionSection()
    prolific: ProlificSection | None = None
    privacy: PrivacySection = PrivacySection()
    lab: LabSection = LabSection()
    texts: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_across_sections(self) -> Self:
        self._check_images()
        self._check_labels()
        self._check_assignment()
        self._check_trials()
        for key, text in self.texts.items():
            try:
                texts.check_texts({key: text})
            except ValueError as error:
                raise setting_error(str(error), "texts", key) from error
        return self

    def _check_images(self) -> None:
        names = [image.name for image in self.images]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise setting_error(
                    f"two images are called {name!r}; give each a name of its own", "images", number, "name"
                )

    def _check_labels(self) -> None:
        n, needs_labels = len(self.layout.build()), self.design.name == "oracle"
        for number, image in enumerate(self.images):
            if (image.labels is None) == needs_labels:
                reason = (
                    f'design.name = "oracle" needs the labels of image {image.name!r}, the segment of each location'
                    if needs_labels
                    else f'the labels of image {image.name!r} need design.name = "oracle", got {self.design.name!r}'
                )
                raise setting_error(reason, "images", number)
            if image.labels is None:
                continue
            if len(image.labels) != n or max(image.labels) >= self.planned_segments:
                raise setting_error(
                    f"the labels of image {image.name!r} should be {n} numbers from 0 to {self.planned_segments - 1}, "
                    f"one for each location, got {len(image.labels)} from {min(image.labels)} to {max(image.labels)}",
                    "images",
                    number,
                    "labels",
                )

    def _check_assignment(self) -> None:
        images_wanted = self.assignment.per_participant
        if images_wanted is not None and images_wanted > len(self.images):
            available = format_count(len(self.images), "image")
            raise setting_error(
                f"assignment.per_participant is {images_wanted}, but the study has {available}",
                "assignment",
                "per_participant",
            )
        if images_wanted is not None and images_wanted > 1 and self.assignment.images == "between":
            raise setting_error(
                f'assignment.per_participant is {images_wanted}, but images = "between" shows one; '
                'write images = "within"',
                "assignment",
                "per_participant",
            )
        conditions = {image.condition for image in self.images}
        for name in self.assignment.quota_per_condition:
            if name not in conditions:
                raise setting_error(
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
            raise setting_error(
                f'design.name = "all" asks all {most} pairs; leave trials out, or choose another design',
                "design",
                "trials",
            )
        if design.trials is not None and not fewest <= design.trials <= most:
            raise setting_error(
                f"design.trials on {layout} should be {fewest} (every location once) to {most} (every pair "
                f"once), got {design.trials}",
                "design",
                "trials",
            )
        if design.least_trials is not None and design.least_trials > self.pairs_per_block:
            raise setting_error(
                f"design.least_trials is {design.least_trials}, but there are at most {self.pairs_per_block} trials "
                "per image",
                "design",
                "least_trials",
            )
        if self.pairs_per_block > MOST_PAIRS:
            raise setting_error(
                f"a block on {layout} would have {self.pairs_per_block} pairs, and {MOST_PAIRS} is the most; "
                "take fewer locations, or a design of fewer trials",
                "design",
                "name",
            )
        if design.split > self.pairs_per_block:
            raise setting_error(
                f"design.split is {design.split}, but {self.pairs_per_block} pairs can be split over at most "
                f"{self.pairs_per_block} participants",
                "design",
                "split",
            )
        if (
            trials := self.images_per_participant * design.blocks * -(-self.pairs_per_block // design.split)
        ) > MOST_TRIALS:
            raise setting_error(
                f"one participant would have {trials} trials, and {MOST_TRIALS} is the most; "
                "take fewer locations, pairs, blocks or images, or split the pairs over more participants",
                "design",
            )

    @property
    def planned_segments(self) -> int:
        """K, or the number assumed for planning when segments = "free"."""
        return DEFAULT_SEGMENTS if self.segments == "free" else self.segments

    @property
    def pairs_per_block(self) -> int:
        """The number of pairs in a block of one image, before splitting: `design.trials`, or KN² by default."""
        n = len(self.layout.build())
        if self.design.name == "all":
            return n * (n - 1) // 2
        return self.design.trials or min(self.planned_segments * n, n * (n - 1) // 2)

    @property
    def min_pairs(self) -> int:
        """The smallest number of pairs one participant may be asked about an image: all, without a target error."""
        if self.design.target_error is None:
            return -(-self.pairs_per_block // self.design.split)
        return self.design.least_trials or self.initial_pairs

    @property
    def initial_pairs(self) -> int:
        """The number of fixed pairs with which an adaptive design begins, before it chooses any."""
        return min(-(-len(self.layout.build()) // LOCATIONS_PER_INITIAL_PAIR), self.pairs_per_block)

    @property
    def images_per_participant(self) -> int:
        """The number of images one participant sees."""
        if self.assignment.images == "between":
            return 1
        return self.assignment.per_participant or len(self.images)

    def quota(self, image: str) -> int:
        """Return the number of completed sessions wanted for an image; by default an even share of the participants."""
        if self.assignment.quota_per_image is not None:
            return self.assignment.quota_per_image
        return -(-self.participants * self.images_per_participant // len(self.images))

    @property
    def all_texts(self) -> dict[str, str]:
        """Every text a participant sees, in the study's language; those in the file's [texts] replace the defaults.

        With catch trials, the debriefing ends with `debriefing_catch`; a study's own debriefing, only if it sets both.
        """
        found = texts.load_texts(self.language) | self.texts
        if self.catch.per_block and ("debriefing" not in self.texts or "debriefing_catch" in self.texts):
            found["debriefing"] += f"\n\n{found['debriefing_catch']}"
        return found


def load_study(path: str | Path) -> Study:
    """Read and check a study file; an `InvalidInput` names the line and the reason.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Study

    Examples
    --------
    >>> study = load_study("study.toml")  # doctest: +SKIP
    """
    return parse_study(read_study_text(path), str(path))


def read_study_text(path: str | Path) -> str:
    """Read the text of a study file without parsing it."""
    path = Path(path)
    if not path.is_file():
        raise NotFound(f"No study file {path}; `vseg study new` writes one.")
    if path.stat().st_size > LARGEST_FILE:
        raise InvalidInput(
            f"{path} has {path.stat().st_size} bytes; a study file has at most {LARGEST_FILE}."
        )
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not UTF-8 text; a study file is TOML, and `vseg study new` writes one."
        ) from error


def parse_study(text: str, source: str = "study file") -> Study:
    """Parse the text of a study file.

    Parameters
    ----------
    text : str
        The text of the file, TOML.
    source : str
        What error messages call the file, such as its path.

    Returns
    -------
    Study
    """
    if len(text) > LARGEST_FILE:
        raise InvalidInput(f"{source} has {len(text)} characters; a study file has at most {LARGEST_FILE}.")
    try:
        return Study.model_validate(parse_toml(text, source))
    except ValidationError as error:
        message = describe_validation_error(error, text, Study.model_json_schema(), source)
        raise InvalidInput(message) from error
    except ValueError as error:
        raise InvalidInput(str(error)) from error
