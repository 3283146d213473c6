"""Options that several commands share, and options that Typer cannot parse."""

import math
import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from vseg.errors import InvalidInput, NotFound

OUTPUT = "Output"  # the panel of --out and --force
SIMULATION = "Simulation"

DEFAULT_DATABASE = "sqlite:///vseg.db"

DatabaseOption = Annotated[
    str,
    typer.Option(
        "--db", metavar="URL", envvar="VSEG_DB", help="sqlite:///FILE or postgresql://USER@HOST/NAME."
    ),
]
StudyArgument = Annotated[
    str,
    typer.Argument(metavar="STUDY", help="Name of the study, or its file.", show_default=False),
]
OutOption = Annotated[
    Path,
    typer.Option(metavar="FOLDER", help="New folder to write.", show_default=False, rich_help_panel=OUTPUT),
]
PortOption = Annotated[
    int, typer.Option(min=0, max=65535, metavar="NUMBER", help="Port; 0 takes a free one.")
]
SeedOption = Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Random seed.")]
Executor = Annotated[
    str,
    typer.Option(
        metavar="WHERE",
        help="Where to run: threads, processes (either with :N) or dask://HOST:PORT; the results are the same.",
        rich_help_panel=SIMULATION,
    ),
]


def parse_whole_numbers(text: str, option: str) -> list[int]:
    """Parse whole numbers of 1 or more that are separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"\+?[0-9]{1,15}", part) and int(part) >= 1 for part in parts):
        raise InvalidInput(
            f"{option}: expected whole numbers of 1 or more separated by commas, such as 10,20,30, got {text!r}."
        )
    return [int(part) for part in parts]


def parse_number(text: str, option: str, *, maximum: float = math.inf) -> float:
    """Parse a finite number from 0 to `maximum`."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and 0 <= value <= maximum):
        span = "of 0 or more" if maximum == math.inf else f"from 0 to {maximum:g}"
        raise InvalidInput(f"{option}: expected a number {span}, got {text!r}.")
    return value


def read_study_name(text: str) -> str:
    """Return the name of a study: the text itself, or the name in the study file at this path."""
    if not text.endswith(".toml") and Path(text).name == text:
        return text
    from vseg.study.schema import load_study

    return load_study(text).name


def check_study_file(path: Path) -> Path:
    """Return the path; if it lacks only the ending .toml, raise `NotFound` with the name of the file."""
    if not path.exists() and (likely := path.with_name(f"{path.name}.toml")).is_file():
        raise NotFound(f"No study file {path}; did you mean {likely}?")
    return path


def parse_segments(text: str) -> list[int]:
    """Parse the numbers of segments to try: one number such as 3, or a range such as 2..7 or 2-7."""
    ends = re.split(r"\.\.|(?<=[0-9])-", text)
    if len(ends) > 2 or not all(re.fullmatch(r"[0-9]{1,6}", end.strip()) for end in ends):
        raise InvalidInput(
            f"--segments: expected a whole number such as 3 or a range such as 2..7, got {text!r}."
        )
    low, high = int(ends[0]), int(ends[-1])
    if low < 2:
        raise InvalidInput(f"--segments: expected 2 or more segments, got {text!r}.")
    if high < low:
        raise InvalidInput(
            f"--segments: expected the smaller number first, as in {high}..{low}, got {text!r}."
        )
    return list(range(low, high + 1))


def parse_smoothness(text: str) -> float | Literal["auto"]:
    """Parse the smoothness λ: "auto", or a number of 0 or more."""
    if text == "auto":
        return "auto"
    try:
        return parse_number(text, "--smoothness")
    except InvalidInput:
        raise InvalidInput(f"--smoothness: expected 'auto' or a number of 0 or more, got {text!r}.") from None
