"""`python -m reproduction expected-error`: compare the error by which adaptive studies stop with the true one."""

from pathlib import Path
from typing import Annotated

import typer

from reproduction.annotators_command import (
    CHECKPOINT_FOLDER,
    AnnotatorsFolder,
    ResumableOutput,
    check_output_folder,
)
from vseg._support.text import format_count
from vseg.cli import options
from vseg.cli.output import progress_bar, report_interruption


def expected_error(
    folder: AnnotatorsFolder,
    part: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Every second photograph: tuning (the first, third, …), held (the others); or all.",
        ),
    ] = "held",
    grid: Annotated[int, typer.Option(min=4, max=32, metavar="N", help="Locations along a side.")] = 12,
    segments: Annotated[int, typer.Option(min=2, metavar="K", help="Number of segments.")] = 5,
    trials: Annotated[
        str, typer.Option(metavar="COUNTS", help="Numbers of trials.")
    ] = "64,96,128,192,256,384,512",
    posterior: Annotated[
        bool,
        typer.Option("--posterior", help="Also measure the posterior; takes seconds per number of trials."),
    ] = False,
    executor: options.Executor = "processes",
    seed: options.SeedOption = 0,
    out: ResumableOutput = Path("expected-error"),
) -> None:
    """Compare the expected error of adaptive sessions with the true one, with BSDS500's annotators as observers.

    A session is answered by a random annotator at each trial, as if all shared one map (aggregate), or by one annotator
    who lapses on 5 % of the trials (individual). The true error is the distance per probability to the maps that are
    closest to the annotators' P(same) of all pairs. Writes errors.csv (a row per photograph) and table.txt.

    \b
    Examples:
      python -m reproduction expected-error BSDS500/data --out expected-error
      python -m reproduction expected-error BSDS500/data --trials 128,256,512 --posterior --out with-posterior
    """
    counts = options.parse_whole_numbers(trials, "--trials")
    check_output_folder(out)
    from reproduction.annotators.expected_error import compare_expected_errors, select_part
    from reproduction.annotators.observers import OBSERVERS
    from vseg.stimuli import Bsds
    from vseg.sweeps import open_workers

    images = select_part(Bsds(folder).ids, part)
    with (
        report_interruption(out),
        open_workers(executor) as place,
        progress_bar("Simulating annotators", len(images) * len(OBSERVERS)) as advance,
    ):
        result = compare_expected_errors(
            folder, part=part, grid=grid, segments=segments, trials=counts, with_posterior=posterior,
            executor=place, checkpoint=out / CHECKPOINT_FOLDER, progress=advance, seed=seed,
        )  # fmt: skip
    result.errors.save(out / "errors.csv")
    (out / "table.txt").write_text(f"{result}\n", encoding="utf-8")
    typer.echo(str(result))
    typer.echo(f"\n{out}: {format_count(len(images), 'photograph')}; errors.csv, table.txt.")
