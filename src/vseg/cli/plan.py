"""`vseg plan`: how many trials and how many people a study needs, before anyone is invited."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vseg.cli import options
from vseg.cli.output import new_folder, progress_bar
from vseg.errors import InvalidInput, VsegWarning

if TYPE_CHECKING:
    from vseg.planning import Forecast
    from vseg.study.schema import Study

OURS = {"people.csv", "plan.png", "summary.json", "table.csv"}


def plan(
    study: Annotated[
        Path | None,
        typer.Argument(
            metavar="STUDY",
            help="A study file: its grid, segments, design, trials and timing.",
            show_default=False,
        ),
    ] = None,
    grid: Annotated[
        str | None, typer.Option(metavar="N", help="Locations along a side [default: 11].")
    ] = None,
    segments: Annotated[
        str | None, typer.Option(metavar="K", help="Number of segments [default: 2].")
    ] = None,
    entropy: Annotated[
        str,
        typer.Option(metavar="NATS", help="How unsure people are: mean entropy of their maps, 0 to log K."),
    ] = "0.2",
    against: Annotated[
        str | None,
        typer.Option(
            metavar="NATS", help="The same in a second condition, which is to be told from the first."
        ),
    ] = None,
    spread: Annotated[
        str | None,
        typer.Option(
            metavar="NATS",
            help="How much people differ: standard deviation [default: a third of the entropy].",
        ),
    ] = None,
    lapse: Annotated[
        str, typer.Option(metavar="SHARE", help="Share of trials answered without looking.")
    ] = "0.02",
    trials: Annotated[
        str | None,
        typer.Option(metavar="COUNTS", help="Trials of a person [default: half, one and 2.5 times K N^2]."),
    ] = None,
    participants: Annotated[
        str | None, typer.Option(metavar="COUNTS", help="People in each condition [default: 5,10,15,30].")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="paper, posterior (fresh pairs) and adaptive (chosen pairs; takes much longer) "
            "[default: paper,posterior, and adaptive for an adaptive study].",
        ),
    ] = None,
    smoothness: Annotated[
        str, typer.Option(metavar="NUMBER", help="Of the paper's method: auto (held-out pairs) or a number.")
    ] = "auto",
    repeats: Annotated[str, typer.Option(metavar="COUNT", help="People simulated in each condition.")] = "60",
    executor: options.Executor = "processes",
    seed: Annotated[str, typer.Option(metavar="NUMBER", help="Another seed, other people.")] = "0",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder to write.")] = Path("plan"),
    force: Annotated[bool, typer.Option("--force", help="Replace the folder if it exists.")] = False,
) -> None:
    """Forecast by simulation what a study would find, against trials and participants.

    Prints the error of the maps, of a person's mean entropy and, with --against, the power to tell two conditions
    apart (Welch's test, 5 %), by the paper's method and by the posterior, with the minutes that people spend. Writes
    table.csv, people.csv (a row a simulated person), summary.json and plan.png.

    \b
    Examples:
      vseg plan --grid 11 --segments 2 --entropy 0.2 --against 0.3 --out plan
      vseg plan --grid 16 --segments 4 --entropy 0.4 --trials 512,1024 --repeats 30
      vseg plan my-study.toml --entropy 0.2 --against 0.25 --participants 10,20,40
    """
    asked = _asked(study, grid, segments)
    own_seed = options.whole(seed, "--seed")
    count = options.whole(repeats, "--repeats", least=10)
    from vseg.planning import Guess, forecast
    from vseg.sweeps import workers

    guess = Guess(
        grid=asked.grid,
        segments=asked.segments,
        entropy=options.number(entropy, "--entropy"),
        against=None if against is None else options.number(against, "--against"),
        spread=None if spread is None else options.number(spread, "--spread"),
        lapse=options.number(lapse, "--lapse", most=0.99),
        design=asked.design,
        smoothness=options.smoothness_of(smoothness),
    )
    with (
        new_folder(out, force=force, inputs=[study] if study else [], ours=OURS) as folder,
        workers(executor) as place,
        progress_bar("Simulating people", count) as advance,
    ):
        found = forecast(
            guess,
            trials=asked.trials if trials is None else options.wholes(trials, "--trials"),
            participants=asked.participants
            if participants is None
            else options.wholes(participants, "--participants"),
            methods=asked.methods if methods is None else [name.strip() for name in methods.split(",")],
            repeats=count,
            study=asked.study,
            executor=place,
            progress=advance,
            seed=own_seed,
        )
        found.save(folder)
        from vseg.figures.planning import forecast as drawn

        drawn(found).savefig(folder / "plan.png")
    for line in _lines(found):
        typer.echo(line)
    typer.echo(f"\n{found.advice}")
    typer.echo(f"{out}: {', '.join(sorted(OURS))}.")


@dataclass(frozen=True)
class _Asked:
    """What is known of the study: from its file, or as typed."""

    grid: int
    segments: int
    design: str
    trials: tuple[int, ...] | None
    participants: tuple[int, ...]
    methods: tuple[str, ...]
    study: "Study | None"


def _asked(path: Path | None, grid: str | None, segments: str | None) -> _Asked:
    from vseg.planning.simulation import COMPARED, PARTICIPANTS, fewest_trials

    if path is None:
        size = options.whole(grid or "11", "--grid", least=3)
        count = options.whole(segments or "2", "--segments", least=2)
        return _Asked(size, count, "covering", None, PARTICIPANTS, COMPARED, None)
    from vseg.study.schema import load

    for option, given in (("--grid", grid), ("--segments", segments)):
        if given is not None:
            raise InvalidInput(f"{path} says what {option} is; leave {option} out, or the file.")
    study = load(path)
    if study.layout.grid is None:
        raise InvalidInput(
            f"{path} asks at points of its own; a plan is for grids: leave the file out and give --grid."
        )
    for said in _differences(study):
        warnings.warn(f"{path} {said}", VsegWarning, stacklevel=2)
    each = study.design.blocks * -(-study.pairs // study.design.split)
    fewest = fewest_trials(study.layout.grid)
    people = max(min(study.quota(image.name) for image in study.images), 2)
    return _Asked(
        grid=study.layout.grid,
        segments=study.planned_segments,
        design="covering" if study.design.name in ("all", "adaptive") else study.design.name,
        trials=tuple(sorted({max(each // part, fewest) for part in (4, 2, 1)})),
        participants=tuple(sorted({*PARTICIPANTS, people})),
        methods=(*COMPARED, "adaptive") if study.design.adaptive else COMPARED,
        study=study,
    )


def _differences(study: "Study") -> Iterator[str]:
    """In what a study is not as it is forecast."""
    if study.images_each > 1:
        yield (
            f"shows each person {study.images_each} images; trials and minutes here are those of one image, and "
            "two conditions are taken as seen by different people."
        )
    if study.design.shared:
        yield "chooses pairs from everyone's answers together; here they are chosen for each person alone."
    if study.design.rule not in (None, "variance_reduction"):
        yield f"chooses pairs by the rule {study.design.rule}; here they are chosen by variance_reduction."


def _lines(found: "Forecast") -> Iterator[str]:
    """A line a method and number of trials; power, or the error of a condition's mean, by participants."""
    shown = "mean_error" if found.guess.against is None else "power"
    what = "error of the mean entropy" if shown == "mean_error" else "power"
    head = f"{'':<11}{'trials':>6} {'minutes':>8} {'map error':>10} {'entropy error':>14}"
    width = 7 * len(found.participants)
    yield f"{'':<{len(head)}}   {f'{what} with … people':>{width}}"
    yield f"{head}   {''.join(f'{people:>7}' for people in found.participants)}"
    for (method, trials), part in found.table.groups(["method", "trials"]).items():
        first = part.rows[0]
        numbers = "".join(f"{row[shown]:>7.{3 if shown == 'mean_error' else 2}f}" for row in part.rows)
        yield (
            f"{method:<11}{trials:>6} {first['minutes_each']:>8.0f} {first['error']:>10.3f} "
            f"{first['entropy_error']:>14.3f}   {numbers}"
        )
