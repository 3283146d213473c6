"""`vseg study`: write, check and film studies, and print the texts that participants read."""

import shutil
import textwrap
from pathlib import Path
from typing import Annotated, Literal

import typer

from vseg.cli import options
from vseg.errors import Conflict, InvalidInput

LABEL_WIDTH, MAX_WIDTH = 12, 110
LANGUAGES = ("en", "fr", "de")

HELP = """Write, check and film study files.

\b
Examples:
  vseg study new my-study
  vseg study check my-study.toml
  vseg study film my-study.toml
"""
study = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=HELP)


LikeOption = Annotated[
    Literal["commented", "texture", "natural", "example", "patches", "photographs"],
    typer.Option(
        help="commented: an example that explains every setting. texture, natural, example: the paper's experiments. "
        "patches, photographs: two short studies."
    ),
]


@study.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and hyphens.")],
    like: LikeOption = "commented",
) -> None:
    """Write NAME.toml, a study file to start from.

    Without --like it is an example that explains every setting and can be served without changes. The paper's
    experiments have the paper's settings: texture (30 participants, 5 blocks of 242 pairs), natural (64 participants,
    8 images of your own, 1024 pairs over 8 sessions) and example (one participant, a grid of 19 x 19).

    \b
    Examples:
      vseg study new my-study
      vseg study new my-textures --like texture
    """
    from vseg.study.starters import write_study

    path = write_study(name, like=like)
    about = (
        "an example that explains every setting and can be served as it is"
        if like == "commented"
        else f"a study like {like}; its first lines say what it is"
    )
    typer.echo(f"{path}: {about}.")
    if like == "natural":
        typer.echo(f"Put your eight images into the folder {name}-images: 1.jpg to 8.jpg.")
    typer.echo(f"Next: vseg study check {path}")
    typer.echo(f"      vseg serve {path}")


@study.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A study file.")],
) -> None:
    """Check a study file and estimate what the study costs.

    Prints the trials and minutes of each participant, the number of participants, and what the pairs cover. All images
    are read or generated, so that a study that passes can be served.

    \b
    Example:
      vseg study check my-study.toml
    """
    from vseg.study.cost import estimate_cost
    from vseg.study.pictures import render_pictures
    from vseg.study.schema import load_study
    from vseg.study.summary import summarise_study

    loaded = load_study(options.check_study_file(file))
    pictures = render_pictures(loaded, file.parent)
    for label, text in summarise_study(loaded, pictures, estimate_cost(loaded)):
        _print_labelled(label, text)


@study.command()
def texts(
    language: Annotated[str, typer.Argument(metavar="LANGUAGE", help="en, fr or de.")] = "en",
) -> None:
    """Print all texts that participants read.

    These are the default texts of a language. Put those that you change into the table [texts] of a study file.

    \b
    Example:
      vseg study texts fr
    """
    from importlib.resources import files

    if language not in LANGUAGES:
        raise InvalidInput(
            f"Expected a language ({', '.join(LANGUAGES)}), got {language!r}; this command prints the default texts, "
            "which a study file can change in its table [texts]."
        )
    text = files("vseg.study.texts").joinpath(f"{language}.toml").read_text(encoding="utf-8")
    typer.echo(text.rstrip("\n"))


@study.command()
def film(
    file: Annotated[Path, typer.Argument(metavar="STUDY", help="A study file.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder to write; default: STUDY-film.")
    ] = None,
    trials: Annotated[int, typer.Option(min=1, max=100, metavar="NUMBER", help="Trials to film.")] = 3,
    browser: Annotated[
        str | None, typer.Option(metavar="PATH", help="The browser to record with.", show_default=False)
    ] = None,
) -> None:
    """Film what participants see: every screen, with its duration.

    Goes through the study as a participant would, in a Chromium, Chrome or Edge without a window, and writes film.gif
    and film.html, a page with the film and each screen. Nothing is stored. Takes a minute or two.

    \b
    Example:
      vseg study film my-study.toml --out my-film
    """
    from vseg.server.film import film_study

    folder = out or file.with_name(f"{file.stem}-film")
    if folder.exists() and not folder.is_dir():  # said now, since filming takes a minute
        raise Conflict(f"{folder} is a file; choose another --out.")
    filmed = film_study(options.check_study_file(file), browser=browser, trials=trials)
    gif, page = filmed.save(folder)
    typer.echo(f"{gif}: {len(filmed.listed)} screens")
    typer.echo(f"{page}: the film, and each screen with its duration")


def _print_labelled(label: str, text: str) -> None:
    """Print a label and a wrapped text in two columns."""
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH) - LABEL_WIDTH
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines):
        typer.echo(f"{'' if number else label:<{LABEL_WIDTH}}{line}")
