"""Numbers and names as they are typed, or a sentence that names the option, the value and what to do."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from vseg.errors import InvalidInput

Executor = Annotated[
    str,
    typer.Option(
        metavar="WHERE",
        help="Where to run: threads, processes (either with :N) or dask://HOST:PORT; the results are the same.",
        rich_help_panel="Simulation",
    ),
]


def whole(text: str, option: str, least: int = 0) -> int:
    """A whole number from `least` up."""
    if not re.fullmatch(r"[+-]?[0-9]{1,15}", text.strip()) or int(text) < least:
        raise InvalidInput(f"{option} is a whole number from {least} up, got {text!r}.")
    return int(text)


def wholes(text: str, option: str) -> list[int]:
    """Whole numbers from 1 up with commas between them."""
    try:
        return [whole(part, option, least=1) for part in text.split(",")]
    except InvalidInput:
        raise InvalidInput(
            f"{option} are whole numbers with commas between them, such as 10,20,30, got {text!r}."
        ) from None


def number(text: str, option: str, least: float = 0.0, most: float = math.inf) -> float:
    """A finite number from `least` to `most`."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and least <= value <= most):
        span = f"from {least:g} up" if most == math.inf else f"from {least:g} to {most:g}"
        raise InvalidInput(f"{option} is a number {span}, got {text!r}.")
    return value


def choice(text: str, option: str, choices: Sequence[str]) -> str:
    """One of these names."""
    if text not in choices:
        raise InvalidInput(f"Unknown {option} {text!r}; choose one of {', '.join(choices)}.")
    return text


def study_name(text: str) -> str:
    """A study by its name; by its file, the name that stands in it."""
    if not text.endswith(".toml") and Path(text).name == text:
        return text
    from vseg.study.schema import load_study

    return load_study(text).name


def segments_range(text: str) -> list[int]:
    """The K to try: one number such as 3, or a range such as 2..7, also written 2-7."""
    ends = re.split(r"\.\.|(?<=[0-9])-", text)
    if len(ends) > 2 or not all(re.fullmatch(r"[0-9]{1,6}", end.strip()) for end in ends):
        raise InvalidInput(f"--segments is a whole number such as 3 or a range such as 2..7, got {text!r}.")
    low, high = int(ends[0]), int(ends[-1])
    if low < 2:
        raise InvalidInput(
            f"--segments starts at 2, since one segment leaves nothing to judge, got {text!r}."
        )
    if high < low:
        raise InvalidInput(
            f"--segments runs from the smaller number to the larger: {high}..{low}, not {text!r}."
        )
    return list(range(low, high + 1))


def smoothness_of(text: str) -> float | str:
    """λ: auto, or a number from 0 up."""
    try:
        return "auto" if text == "auto" else number(text, "--smoothness")
    except InvalidInput:
        raise InvalidInput(f"--smoothness is 'auto' or a number from 0 up, got {text!r}.") from None
