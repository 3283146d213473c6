"""`vseg simulate`: random maps, and the answers of participants who see them."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from vseg._support.text import format_count
from vseg.cli import options
from vseg.cli.output import new_folder, progress_bar

MAPS, DESIGN, PARTICIPANTS = "Maps", "Design", "Participants"


def simulate(
    grid: Annotated[
        int, typer.Option(min=3, metavar="N", help="Locations along a side.", rich_help_panel=MAPS)
    ] = 16,
    segments: Annotated[
        int, typer.Option(min=2, metavar="K", help="Number of segments.", rich_help_panel=MAPS)
    ] = 3,
    entropy: Annotated[
        float,
        typer.Option(
            min=0, metavar="NATS", help="Mean entropy of the maps, 0 to log K.", rich_help_panel=MAPS
        ),
    ] = 0.4,
    xi: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="CELLS",
            help="Size of the segments [default: N / (2.5 sqrt K)].",
            rich_help_panel=MAPS,
        ),
    ] = None,
    design: Annotated[
        Literal["covering", "balanced", "scattered", "all", "oracle", "two_stage"],
        typer.Option(
            help="Which pairs are shown. oracle: for each location, partners in every segment of the true maps; "
            "two_stage: half of the pairs scattered, the others such partners by a map of the first answers.",
            rich_help_panel=DESIGN,
        ),
    ] = "covering",
    blocks: Annotated[
        int,
        typer.Option(min=1, metavar="N_B", help="How often the pairs are shown.", rich_help_panel=DESIGN),
    ] = 10,
    trials: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="COUNT", help="Pairs in a block [default: K N^2].", rich_help_panel=DESIGN
        ),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh", help="New pairs in each block and for each participant.", rich_help_panel=DESIGN
        ),
    ] = False,
    participants: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="COUNT",
            help="Participants, who all see the same maps.",
            rich_help_panel=PARTICIPANTS,
        ),
    ] = 1,
    lapse: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="Share of trials answered without looking.",
            rich_help_panel=PARTICIPANTS,
        ),
    ] = 0,
    seed: options.SeedOption = 0,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="New folder to write.", rich_help_panel=options.OUTPUT)
    ] = Path("sim"),
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace the folder if it exists.", rich_help_panel=options.OUTPUT),
    ] = False,
) -> None:
    """Simulate participants who see random maps.

    Writes truth.npz (the maps), responses.csv (one row per trial) and maps.png (a picture of the maps).

    \b
    Example:
      vseg simulate --grid 16 --segments 3 --blocks 10 --entropy 0.4 --design covering --seed 0 --out sim
    """
    from vseg import Grid, figures
    from vseg.stimuli import random_maps
    from vseg.workflows.simulate_group import count_steps, simulate_group

    layout = Grid(grid)
    steps = count_steps(participants=participants, blocks=blocks, fresh=fresh) + 1  # the figure
    with (
        new_folder(out, force=force) as folder,
        progress_bar("Simulating", steps, fits=False) as advance,
    ):
        truth = random_maps(layout, segments=segments, entropy=entropy, xi=xi, seed=seed)
        responses = simulate_group(
            truth, participants=participants, blocks=blocks, design=design, trials=trials, fresh=fresh, lapse=lapse,
            seed=seed, progress=advance,
        )  # fmt: skip
        truth.save(folder / "truth.npz")
        responses.save(folder / "responses.csv")
        figures.maps(truth, names=["truth"]).savefig(folder / "maps.png")
        advance(1)
    counts = f"{format_count(len(responses), 'response')} to {format_count(len(responses.tally()), 'pair')}"
    typer.echo(
        f"{out}: {counts} on {layout}, {segments} segments with a mean entropy of {truth.mean_entropy:.3f} nats."
    )
    typer.echo(f"Next: vseg fit {out / 'responses.csv'} --grid {grid} --segments {segments}")
