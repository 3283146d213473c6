"""`vseg fit`: probabilistic maps from a table of responses, or from a folder that `vseg export` wrote."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from vseg.cli import options
from vseg.cli.output import new_folder, progress_bar
from vseg.errors import InvalidInput

if TYPE_CHECKING:
    from vseg.workflows.posterior_fits import Lapses

DATA, FIT, PENALISED, POSTERIOR, OUTPUT = (
    "Data", "Fit", "Method penalised", "Method posterior", "Output",
)  # fmt: skip


def fit(
    responses: Annotated[
        Path,
        typer.Argument(
            metavar="RESPONSES",
            help="CSV or Parquet with the columns i, j, same, or a folder of vseg export.",
        ),
    ],
    grid: Annotated[
        int | None,
        typer.Option(
            min=3,
            metavar="N",
            help="Locations along a side, counted row by row from 0; a folder knows its own.",
            rich_help_panel=DATA,
        ),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only the responses about this image.", rich_help_panel=DATA),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The image itself, to draw the boundaries over.", rich_help_panel=DATA
        ),
    ] = None,
    segments: Annotated[
        str | None,
        typer.Option(
            metavar="K",
            help="Number of segments, auto (highest evidence of 2 to 8), or a range to choose from: 2..5 "
            "[default: that of a folder's study].",
            rich_help_panel=FIT,
        ),
    ] = None,
    by: Annotated[
        Literal["all", "participant", "image"] | None,
        typer.Option(
            help="Fit all answers; also each participant; or each image separately "
            "[default: all, or image for a folder of several].",
            rich_help_panel=FIT,
        ),
    ] = None,
    method: Annotated[
        Literal["penalised", "posterior"],
        typer.Option(
            help="The paper's estimator, or the posterior: maps with intervals.", rich_help_panel=FIT
        ),
    ] = "penalised",
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="Seed of random starts, held-out pairs and draws.",
            rich_help_panel=FIT,
        ),
    ] = 0,
    smoothness: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="A number from 0 up, or auto: the one that predicts held-out pairs best [default: auto].",
            rich_help_panel=PENALISED,
        ),
    ] = None,
    loss: Annotated[
        Literal["squared_error", "cross_entropy"] | None,
        typer.Option(help="Loss [default: squared_error].", rich_help_panel=PENALISED),
    ] = None,
    solver: Annotated[
        Literal["coordinate_descent", "exponentiated_gradient"] | None,
        typer.Option(
            help="Solver; the second is the paper's, and slow [default: coordinate_descent].",
            rich_help_panel=PENALISED,
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Neighbours: four, eight or gaussian:WIDTH [default: four].",
            rich_help_panel=PENALISED,
        ),
    ] = None,
    weights: Annotated[
        Literal["trials", "pairs"] | None,
        typer.Option(
            help="Count a pair by its trials, or once as in the paper [default: trials].",
            rich_help_panel=PENALISED,
        ),
    ] = None,
    max_iterations: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="COUNT",
            help="Maximum number of solver iterations [default: the solver's].",
            rich_help_panel=PENALISED,
        ),
    ] = None,
    prior: Annotated[
        Literal["spatial", "image", "group"] | None,
        typer.Option(
            help="spatial; image: what looks alike belongs together; group: with --by participant, what the others "
            "see, where it helps [default: spatial].",
            rich_help_panel=POSTERIOR,
        ),
    ] = None,
    lapses: Annotated[
        str | None,
        typer.Option(
            metavar="RATES",
            help="none, estimate, two such as 0.02,0.05, or auto: estimate if there are catch trials, "
            "else none [default: auto].",
            rich_help_panel=POSTERIOR,
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            min=8,
            max=10_000,
            metavar="COUNT",
            help="Maps to draw; take more if chains do not agree [default: 64].",
            rich_help_panel=POSTERIOR,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="New folder to write.", rich_help_panel=OUTPUT)
    ] = Path("fit"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace the folder if it exists.", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Reconstruct probabilistic maps from RESPONSES.

    Writes maps.npz (array `probabilities`, N x N x K), summary.json and maps.png; with smoothness auto also
    smoothness.png, with several K segments.png, with a picture boundaries.png.

    --method posterior finds the smoothness by evidence, and adds the arrays `lower`, `upper` (90 %) and `draws` to
    maps.npz, the entropy's interval to summary.json, and intervals.png. Catch trials in the data help to estimate
    lapses.

    --segments auto takes the K with the highest evidence, by either method; a range does so too for the posterior,
    while the paper's estimator compares held-out pairs and reports the paper's choice beside it.

    --by participant adds participants.csv and a folder for each participant, and for a posterior entropies.png, to be
    compared with another group's by vseg groups; a K chosen from several is chosen once, from all answers. --by image
    fits each image separately. Participants or images with too few answers are skipped, with a warning and a note in
    the table.

    A folder written by vseg export brings its locations, its images, its catch trials and, unless the study left it
    free, its number of segments.

    \b
    Examples:
      vseg fit exported --out fit
      vseg fit responses.csv --grid 16 --segments 3 --method posterior --out fit
      vseg fit exported --image boat --method posterior --by participant --prior group --out boat
      vseg fit responses.csv --grid 16 --segments auto --by participant --picture photo.jpg
    """
    if responses.is_file():
        _require(grid, "--grid")
        _require(segments, "--segments")
    counts = None if segments is None else _parse_segments(segments)
    strength = None if smoothness is None else options.parse_smoothness(smoothness)
    rates = None if lapses is None else _parse_lapses(lapses)
    with new_folder(out, force=force, inputs=[responses, *([picture] if picture else [])]) as folder:
        from vseg.data.layout import Grid
        from vseg.workflows.fitting import prepare_fit

        job = prepare_fit(
            responses, layout=None if grid is None else Grid(grid), segments=counts, by=by, image=image,
            picture=picture, method=method, smoothness=strength, loss=loss, solver=solver, kernel=kernel,
            weights=weights, max_iterations=max_iterations, prior=prior, lapses=rates, draws=draws, seed=seed,
        )  # fmt: skip
        with progress_bar("Fitting", job.steps) as advance:
            result = job.run(advance)
            result.save(folder)
    typer.echo(f"{out}: {result.message}")


def _require(value: object, option: str) -> None:
    if value is None:
        raise typer.BadParameter(
            "a file of responses needs it; only a folder written by vseg export knows its own.",
            param_hint=option,
        )


def _parse_segments(text: str) -> "list[int] | Literal['auto']":
    return "auto" if text == "auto" else options.parse_segments(text)


def _parse_lapses(text: str) -> "Lapses":
    """Return auto, none, estimate, or the two lapse rates."""
    if text in ("auto", "none", "estimate"):
        return cast("Lapses", text)
    parts = text.split(",")
    if len(parts) != 2:
        raise InvalidInput(
            "--lapses: expected auto, none, estimate, or two rates such as 0.02,0.05 (of wrong 'same', of wrong "
            f"'different'), got {text!r}."
        )
    first, second = (options.parse_number(part, "--lapses", maximum=0.5) for part in parts)
    return first, second
