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
            help="CSV or Parquet table with the columns i, j, same, or a folder of vseg export.",
        ),
    ],
    grid: Annotated[
        int | None,
        typer.Option(
            min=3,
            metavar="N",
            help="Locations along a side of the grid; only for a table.",
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
            help="Number of segments; or how to choose it: auto (by evidence, from 2 to at most 8), or a range such as "
            "2..5 [default: that of a folder's study; auto if the study leaves it free].",
            rich_help_panel=FIT,
        ),
    ] = None,
    segments_by: Annotated[
        Literal["all", "participant"],
        typer.Option(
            help="What K is chosen from, if it is: all answers, or, with --by participant, those of each participant.",
            rich_help_panel=FIT,
        ),
    ] = "all",
    by: Annotated[
        Literal["all", "participant", "image"] | None,
        typer.Option(
            help="all: one fit of all answers, as if from one observer; participant: also one fit per participant; "
            "image: one fit per image [default: all; image for a folder with several images].",
            rich_help_panel=FIT,
        ),
    ] = None,
    method: Annotated[
        Literal["penalised", "posterior"] | None,
        typer.Option(
            help="posterior: maps with intervals; penalised: the penalised estimator (the paper's) [default: "
            "posterior; penalised if one of its options below is given].",
            rich_help_panel=FIT,
        ),
    ] = None,
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
            help="λ, a number from 0 up, or auto: chosen by predicting held-out pairs [default: auto].",
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
            help="Neighbours: four, eight, gaussian:WIDTH, or auto: chosen together with λ by predicting held-out "
            "pairs [default: four].",
            rich_help_panel=PENALISED,
        ),
    ] = None,
    weights: Annotated[
        Literal["trials", "pairs"] | None,
        typer.Option(
            help="Weight of a pair: its number of trials, or 1 as in the paper (pairs) [default: trials].",
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
    learning_rate: Annotated[
        float | None,
        typer.Option(
            metavar="RATE",
            help="Fixed step of the solver exponentiated_gradient, the paper's λ_r; keep λ·RATE below about 0.5 "
            "[default: steps that never raise the objective].",
            rich_help_panel=PENALISED,
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="CHANGE",
            help="Stop the solver exponentiated_gradient when the objective changes by less, the paper's ε [default: a "
            "relative tolerance].",
            rich_help_panel=PENALISED,
        ),
    ] = None,
    prior: Annotated[
        Literal["spatial", "image", "group"] | None,
        typer.Option(
            help="What is expected before the answers. spatial: nearby locations are alike; image: so are locations "
            "that look alike (needs the image); group: each participant's maps resemble the others', if the answers "
            "support it (needs --by participant) [default: spatial].",
            rich_help_panel=POSTERIOR,
        ),
    ] = None,
    lapses: Annotated[
        str | None,
        typer.Option(
            metavar="RATES",
            help="Rates of careless answers: none, estimate, two numbers such as 0.02,0.05 (wrong 'same', wrong "
            "'different'), or auto: estimate if there are catch trials, else none [default: auto].",
            rich_help_panel=POSTERIOR,
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            min=8,
            max=10_000,
            metavar="COUNT",
            help="Number of maps to draw from the posterior [default: 200].",
            rich_help_panel=POSTERIOR,
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            min=8,
            max=100_000,
            metavar="COUNT",
            help="Draws of each chain at most; increase it if the chains do not agree [default: 2000].",
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

    Writes maps.npz (array `probabilities`, N x N x K), summary.json and maps.png; with several K segments.png, with a
    picture boundaries.png; with reaction times durations.csv.

    The posterior finds the smoothness by itself and says how much the answers leave open: maps.npz also has the arrays
    `lower`, `upper` (90 %) and `draws`, summary.json the interval of the mean entropy, and intervals.png shows both.
    Lapses are estimated if there are catch trials in the data.

    --method penalised is the paper's estimator; so is any fit with --smoothness, --loss, --solver, --kernel, --weights,
    --max-iterations, --learning-rate or --epsilon. With smoothness auto it writes smoothness.png. The paper's Algorithm
    1 is --solver exponentiated_gradient with its λ_r and ε as --learning-rate and --epsilon.

    --segments auto chooses K by the evidence, with either method: it tries 2, 3, … up to 8, stops when two K in a row
    are more than 4 nats below the best, and takes the smallest K within 2 nats of the best. With a range such as 2..5
    the posterior chooses in the same way; the penalised estimator compares predictions of held-out pairs, and reports
    the choice of the paper's rule as well.

    --by participant adds participants.csv, a folder for each participant and, from posteriors, entropies.png; vseg
    groups compares such fits. If K is chosen, it is chosen once, from all answers, or, with --segments-by participant,
    for each participant; their segments are ordered like those of all that they match. --by image fits each image
    separately. Participants or images with too few answers are skipped, with a warning and a note in the table.

    A folder written by vseg export contains its locations, images, catch trials and number of segments. If participants
    drew contours, contours.csv and contours.png compare them with the truth, the maps and each other.

    \b
    Examples:
      vseg fit exported --out fit
      vseg fit responses.csv --grid 16 --segments 3 --method penalised --out fit
      vseg fit exported --image boat --by participant --prior group --out boat
      vseg fit responses.csv --grid 16 --segments auto --by participant --picture photo.jpg
    """
    if responses.is_file():
        _require(grid, "--grid", "16")
        _require(segments, "--segments", "3")
    counts = None if segments is None else _parse_segments(segments)
    strength = None if smoothness is None else options.parse_smoothness(smoothness)
    rates = None if lapses is None else _parse_lapses(lapses)
    with new_folder(out, force=force, inputs=[responses, *([picture] if picture else [])]) as folder:
        from vseg.data.layout import Grid
        from vseg.workflows.fit_dataset import prepare_fit

        job = prepare_fit(
            responses, layout=None if grid is None else Grid(grid), segments=counts, segments_by=segments_by, by=by,
            image=image, picture=picture, method=method, smoothness=strength, loss=loss, solver=solver, kernel=kernel,
            weights=weights, max_iterations=max_iterations, learning_rate=learning_rate, epsilon=epsilon, prior=prior,
            lapses=rates, draws=draws, budget=budget, seed=seed,
        )  # fmt: skip
        with progress_bar("Fitting", job.steps) as advance:
            result = job.run(advance)
            result.save(folder)
    typer.echo(f"{out}: {result.message}")


def _require(value: object, option: str, example: str) -> None:
    if value is None:
        raise InvalidInput(
            f"{option} is missing: a table of responses needs it, for example {option} {example}; only a folder "
            "written by vseg export contains it."
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
