"""`vseg simulate`: random maps, and the answers of participants who see them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vseg._support.text import format_count
from vseg.cli import options
from vseg.cli.output import new_folder, progress_bar

if TYPE_CHECKING:
    from vseg.cli.output import Advance
    from vseg.data.layout import Grid
    from vseg.data.maps import Maps
    from vseg.data.pairs import Pairs
    from vseg.data.responses import Responses


def simulate(
    grid: Annotated[str, typer.Option(metavar="N", help="Locations along a side.")] = "16",
    segments: Annotated[str, typer.Option(metavar="K", help="Number of segments.")] = "3",
    blocks: Annotated[str, typer.Option(metavar="N_B", help="How often the pairs are shown.")] = "10",
    entropy: Annotated[
        str, typer.Option(metavar="NATS", help="Mean entropy of the maps, 0 to log K.")
    ] = "0.4",
    xi: Annotated[
        str | None, typer.Option(metavar="CELLS", help="Size of the segments [default: N / (2.5 sqrt K)].")
    ] = None,
    design: Annotated[
        str, typer.Option(metavar="NAME", help="Which pairs: covering, balanced, scattered or all.")
    ] = "covering",
    trials: Annotated[
        str | None, typer.Option(metavar="COUNT", help="Pairs in a block [default: K N^2].")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="New pairs in each block and for each participant.")
    ] = False,
    participants: Annotated[
        str, typer.Option(metavar="COUNT", help="Participants, who all see the same maps.")
    ] = "1",
    lapse: Annotated[
        str, typer.Option(metavar="SHARE", help="Share of trials answered without looking.")
    ] = "0",
    seed: Annotated[str, typer.Option(metavar="NUMBER", help="Another seed, another draw.")] = "0",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder to write.")] = Path("sim"),
    force: Annotated[bool, typer.Option("--force", help="Replace the folder if it exists.")] = False,
) -> None:
    """Draw random maps and simulate participants who see them.

    Writes truth.npz (the maps), responses.csv (a row a trial) and maps.png (a picture of the maps).

    \b
    Example:
      vseg simulate --grid 16 --segments 3 --blocks 10 --entropy 0.4 --design covering --seed 0 --out sim
    """
    from vseg import Grid, figures
    from vseg.stimuli import random_maps

    layout = Grid(options.whole(grid, "--grid", least=3))
    count = options.whole(segments, "--segments", least=2)
    number = options.whole(seed, "--seed")
    people = options.whole(participants, "--participants", least=1)
    times = options.whole(blocks, "--blocks", least=1)
    steps = people + (people * times if fresh else 1) + 1
    with (
        new_folder(out, force=force) as folder,
        progress_bar("Simulating", steps, fits=False) as advance,
    ):
        truth = random_maps(
            layout,
            segments=count,
            entropy=options.number(entropy, "--entropy"),
            xi=None if xi is None else options.number(xi, "--xi"),
            seed=number,
        )
        responses = _answers(
            truth,
            layout,
            design=design,
            trials=None if trials is None else options.whole(trials, "--trials", least=1),
            blocks=times,
            fresh=fresh,
            participants=people,
            lapse=options.number(lapse, "--lapse", most=1),
            seed=number,
            advance=advance,
        )
        truth.save(folder / "truth.npz")
        responses.save(folder / "responses.csv")
        figures.maps(truth, names=["truth"]).savefig(folder / "maps.png")
        advance(1)
    typer.echo(
        f"{out}: {format_count(len(responses), 'response')} to {format_count(len(responses.tally()), 'pair')} on {layout}, "
        f"{count} segments of mean entropy {truth.mean_entropy:.3f} nats."
    )
    typer.echo(f"Next: vseg fit {out / 'responses.csv'} --grid {layout.size} --segments {count}")


def _answers(
    truth: "Maps",
    layout: "Grid",
    *,
    design: str,
    trials: int | None,
    blocks: int,
    fresh: bool,
    participants: int,
    lapse: float,
    seed: int,
    advance: "Advance",
) -> "Responses":
    """Everyone's responses; each has seeds of their own, so more participants change no one's answers.

    A step for each block drawn, which without `fresh` is one for all, and one for each participant.
    """
    import numpy as np

    from vseg import designs, simulate
    from vseg.data.responses import concatenate
    from vseg.observers import LapsingObserver

    chosen = designs.get_design(design)
    options: dict[str, Any] = {"segments": truth.segments, "trials": trials}

    def drawn(*arguments: Any, **settings: Any) -> "Pairs":
        pairs = chosen(*arguments, **settings)
        advance(1)
        return pairs

    digits = len(str(participants))
    same = [] if fresh else designs.draw_blocks(drawn, layout, blocks=blocks, seed=seed, **options)
    parts = []
    for number, person in enumerate(np.random.SeedSequence(seed).spawn(participants)):
        own = int(person.generate_state(1)[0])
        shown = same or designs.draw_blocks(drawn, layout, blocks=blocks, fresh=True, seed=own, **options)
        name = f"P{number + 1:0{digits}d}"
        parts.append(simulate(truth, shown, observer=LapsingObserver(lapse), participant=name, seed=person))
        advance(1)
    return concatenate(parts)
