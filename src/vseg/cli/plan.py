"""`vseg plan`: how many trials and participants a study needs, before anyone is invited."""

from pathlib import Path
from typing import Annotated

import typer

from vseg.cli import options
from vseg.cli.output import new_folder, progress_bar
from vseg.errors import InvalidInput

STUDY, ASSUMPTIONS, SIMULATION, OUTPUT = "Study", "Assumptions", "Simulation", "Output"


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
        int | None,
        typer.Option(min=3, metavar="N", help="Locations along a side [default: 11].", rich_help_panel=STUDY),
    ] = None,
    segments: Annotated[
        int | None,
        typer.Option(min=2, metavar="K", help="Number of segments [default: 2].", rich_help_panel=STUDY),
    ] = None,
    trials: Annotated[
        str | None,
        typer.Option(
            metavar="COUNTS",
            help="Trials of each participant, such as 121,242 [default: half, one and 2.5 times the advised number].",
            rich_help_panel=STUDY,
        ),
    ] = None,
    participants: Annotated[
        str | None,
        typer.Option(
            metavar="COUNTS",
            help="Participants in each condition, such as 5,10 [default: 5,10,15,30].",
            rich_help_panel=STUDY,
        ),
    ] = None,
    entropy: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="NATS",
            help="How uncertain participants are: mean entropy of their maps, 0 to log K.",
            rich_help_panel=ASSUMPTIONS,
        ),
    ] = 0.2,
    against: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="NATS",
            help="The same in a second condition: also print the power to detect the difference.",
            rich_help_panel=ASSUMPTIONS,
        ),
    ] = None,
    spread: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="NATS",
            help="How much participants differ: standard deviation [default: a third of the entropy].",
            rich_help_panel=ASSUMPTIONS,
        ),
    ] = None,
    lapse: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.99,
            metavar="SHARE",
            help="Share of trials answered without looking.",
            rich_help_panel=ASSUMPTIONS,
        ),
    ] = 0.02,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="paper (the penalised estimator), posterior (new pairs in every trial) and adaptive (chosen pairs; "
            "takes much longer) [default: paper,posterior, and adaptive for an adaptive study].",
            rich_help_panel=SIMULATION,
        ),
    ] = None,
    smoothness: Annotated[
        str,
        typer.Option(
            metavar="NUMBER",
            help="λ of the penalised estimator: a number, or auto: chosen by predicting held-out pairs.",
            rich_help_panel=SIMULATION,
        ),
    ] = "auto",
    repeats: Annotated[
        int,
        typer.Option(
            min=10,
            metavar="COUNT",
            help="Participants simulated in each condition.",
            rich_help_panel=SIMULATION,
        ),
    ] = 60,
    executor: options.Executor = "processes",
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="Another seed simulates other participants.",
            rich_help_panel=SIMULATION,
        ),
    ] = 0,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="New folder to write.", rich_help_panel=OUTPUT)
    ] = Path("plan"),
    force: Annotated[
        bool, typer.Option("--force", help="Replace the folder if it exists.", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Forecast what a study would find, by simulation.

    For each number of trials and of participants, prints the error of the maps, of a participant's mean entropy and,
    with --against, the power to tell two conditions apart (Welch's test, 5 %), with the penalised estimator (the
    paper's) and with the posterior, and the minutes that participants spend. Writes table.csv, people.csv (one row per
    simulated participant), summary.json and plan.png.

    \b
    Examples:
      vseg plan --grid 11 --segments 2 --entropy 0.2 --against 0.3 --out plan
      vseg plan --grid 16 --segments 4 --entropy 0.4 --trials 512,1024 --repeats 30
      vseg plan my-study.toml --entropy 0.2 --against 0.25 --participants 10,20,40
    """
    from vseg.sweeps import open_workers
    from vseg.workflows.plan_study import FILES, plan_study

    if study is not None:
        options.check_study_file(study)
        _refuse_fixed(study, {"--grid": grid, "--segments": segments})
    with new_folder(out, force=force, inputs=[study] if study else [], ours=FILES) as folder:
        with open_workers(executor) as workers, progress_bar("Simulating people", repeats) as advance:
            result = plan_study(
                study,
                grid=grid,
                segments=segments,
                entropy=entropy,
                against=against,
                spread=spread,
                lapse=lapse,
                smoothness=options.parse_smoothness(smoothness),
                trials=None if trials is None else options.parse_whole_numbers(trials, "--trials"),
                participants=None
                if participants is None
                else options.parse_whole_numbers(participants, "--participants"),
                methods=None if methods is None else [name.strip() for name in methods.split(",")],
                repeats=repeats,
                executor=workers,
                seed=seed,
                progress=advance,
            )
        result.save(folder)
    typer.echo(result)
    typer.echo(f"{out}: {', '.join(FILES)}.")


def _refuse_fixed(study: Path, values: dict[str, int | None]) -> None:
    """Refuse options whose value a study file determines."""
    for option, value in values.items():
        if value is not None:
            raise InvalidInput(f"{study} determines {option}; leave out {option}, or the study file.")
