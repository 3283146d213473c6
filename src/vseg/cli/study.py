"""`vseg study`: a new study file, what a study will cost, and the texts that participants read."""

import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vseg._support.text import format_count
from vseg.cli.options import choice
from vseg.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from vseg.study.cost import StudyCost
    from vseg.study.pictures import Picture
    from vseg.study.schema import Study

MOST_LISTED = 8

HELP = """Write and check study files; try methods on real annotators.

\b
Examples:
  vseg study new my-study
  vseg study check my-study.toml
"""
study = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=HELP)


@study.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and hyphens.")],
) -> None:
    """Write NAME.toml, an example that runs as it is and explains every setting.

    \b
    Example:
      vseg study new my-study
    """
    from importlib.resources import files

    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name):
        raise InvalidInput(
            "The name of a study has lower-case letters, digits and hyphens, such as my-study, "
            f"and at most 63 of them, got {name!r}."
        )
    path = Path(f"{name}.toml")
    example = files("vseg.cli").joinpath("example_study.toml").read_text(encoding="utf-8")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(example.replace("NAME", name))
    except FileExistsError:
        raise Conflict(f"{path} exists; choose another name, or remove it first.") from None
    typer.echo(f"{path}: an example with every setting explained; it runs as it is.")
    typer.echo(f"Next: vseg study check {path}")
    typer.echo(f"      vseg serve {path}")


@study.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A study file.")],
) -> None:
    """Say what a study will cost: trials and minutes for each person, people needed, what the pairs cover.

    All images are read or drawn, so that a study which passes here can be served.

    \b
    Example:
      vseg study check my-study.toml
    """
    from vseg.study import cost as costs, pictures as pictures_module
    from vseg.study.schema import load_study

    described = load_study(file)
    pictures = pictures_module.render_pictures(described, file.parent)
    for line in _report(described, pictures, costs.estimate_cost(described)):
        typer.echo(line)


@study.command()
def texts(
    language: Annotated[str, typer.Argument(metavar="LANGUAGE", help="en, fr or de.")] = "en",
) -> None:
    """Print every text that participants read, ready to be changed and put into a study's [texts].

    \b
    Example:
      vseg study texts fr
    """
    from importlib.resources import files

    from vseg.study.texts import LANGUAGES

    known = choice(language, "language", LANGUAGES)
    typer.echo(files("vseg.study.texts").joinpath(f"{known}.toml").read_text(encoding="utf-8").rstrip("\n"))


def _report(described: "Study", pictures: "dict[str, Shown]", cost: "Cost") -> Iterator[str]:
    """A label and its sentences in two columns."""
    label_width, width = 12, min(shutil.get_terminal_size().columns, 110)
    for label, text in _rows(described, pictures, cost):
        lines = textwrap.wrap(text, width - label_width, break_long_words=False, break_on_hyphens=False)
        for number, line in enumerate(lines):
            yield f"{'' if number else label:<{label_width}}{line}"


def _rows(described: "Study", pictures: "dict[str, Shown]", cost: "Cost") -> Iterator[tuple[str, str]]:
    design, each = described.design, described.images_each
    yield (
        "Study",
        f"{described.name}: the file is valid, and {format_count(len(described.images), 'image')} can be shown",
    )
    sizes = [f"{image.name} {_size(pictures[image.name])}" for image in described.images]
    yield "Images", _listed(sizes)
    at_least = f", at least {cost.fewest_trials_each}" if design.target_error else ""
    yield (
        "Trials",
        (
            f"{'at most ' if at_least else ''}{cost.trials_each}{at_least} for each person: {format_count(each, 'image')}, "
            f"{format_count(design.blocks, 'block')} of {format_count(cost.pairs_each, 'pair')} and "
            f"{format_count(described.catch.per_block, 'catch trial')}, "
            f"after {format_count(described.practice.trials, 'practice trial')}"
        ),
    )
    if design.adaptive:
        yield "Adaptive", _adaptive(described)
    shortest = f"{cost.fewest_minutes_each:.0f} to " if at_least else ""
    yield (
        "Time",
        (
            f"about {shortest}{cost.minutes_each:.0f} minutes for each person, "
            f"{'at most ' if at_least else ''}{_hours(cost.hours)} for all together"
        ),
    )
    shared = f", its {cost.pairs} pairs shared by {design.split} people at a time" if design.split > 1 else ""
    yield "People", f"{cost.people} wanted; {_shares(cost.people_an_image)}{shared}"
    if not design.adaptive:  # else those of the file stand in only where none could be chosen
        yield "Pairs", str(cost.coverage).rstrip(".")
    yield (
        "Answers",
        (f"{format_count(cost.answers_an_image, 'answer')} or more for each image, catch trials not counted"),
    )
    if (days := described.privacy.keep_identities_days) is not None:
        yield (
            "Identities",
            f"deleted {format_count(days, 'day')} after someone was last heard of; whoever comes later is not known again",
        )
    if "consent" not in described.texts:
        yield (
            "Note",
            "The consent is vseg's example; write your own in [texts], with who you are and how to reach you.",
        )
    for warning in cost.warnings:
        yield "Warning", warning


def _adaptive(described: "Study") -> str:
    design = described.design
    stop = "after the last pair"
    if design.target_error is not None:
        stop = (
            f"once the expected error is {design.target_error:g} or less, "
            f"but not before {format_count(described.fewest_pairs, 'pair')}"
        )
    whose = "everybody's answers about it" if design.shared else "the person's own answers"
    return (
        f"after {format_count(described.start, 'fixed pair')} of an image the others are chosen from {whose} "
        f"(rule: {design.rule}); an image is done {stop}"
    )


def _size(picture: "Shown") -> str:
    return f"({picture.width_px}x{picture.height_px} px)"


def _listed(things: list[str]) -> str:
    if len(things) <= MOST_LISTED:
        return ", ".join(things)
    return f"{', '.join(things[:MOST_LISTED])} and {len(things) - MOST_LISTED} more"


def _shares(people: dict[str, int]) -> str:
    counts = set(people.values())
    if len(counts) == 1:
        return f"{counts.pop()} for {'the image' if len(people) == 1 else 'each image'}"
    return _listed([f"{count} for {image}" for image, count in people.items()])


def _hours(hours: float) -> str:
    return (
        f"{60 * hours:.0f} minutes"
        if hours < 1
        else f"{hours:.0f} hours"
        if hours >= 1.5
        else "about an hour"
    )
