"""`vseg evaluate`: how close maps come to the true maps."""

import json
from pathlib import Path
from typing import Annotated

import typer

from vseg.errors import InvalidInput

EXPLANATIONS = {
    "mae": ("0-2", "mean L1 distance of a location's probabilities; 0 is best"),
    "mae_per_entry": ("0-1", "the same divided by K: the error of one probability"),
    "label_accuracy": ("0-1", "share of locations whose most probable segment is right"),
    "adjusted_rand_index": ("up to 1", "agreement about pairs of locations; chance is 0"),
    "variation_of_information": ("nats", "information not shared by the segmentations; 0 is best"),
    "covering": ("0-1", "overlap of true segments with their best match"),
    "boundary_precision": ("0-1", "share of boundary pixels that are right"),
    "boundary_recall": ("0-1", "share of true boundary pixels that were found"),
    "boundary_f": ("0-1", "harmonic mean of the two"),
    "mean_entropy": ("nats", "uncertainty of the maps (of a posterior: its median map)"),
    "true_mean_entropy": ("nats", "uncertainty of the truth"),
    "entropy_error": ("nats", "mean absolute difference of the two, location by location"),
    "segments_won": ("count", "maps that win at least one location"),
    "true_segments_won": ("count", "the same of the truth"),
}


def evaluate(
    maps: Annotated[Path, typer.Argument(metavar="MAPS", help="maps.npz, or the folder of vseg fit.")],
    truth: Annotated[Path, typer.Option(metavar="FILE", help="truth.npz, or the folder of vseg simulate.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")] = False,
) -> None:
    """Compare maps with the true ones.

    Prints a table of scores. Segments are matched first, since their order is arbitrary.

    \b
    Example:
      vseg evaluate fit --truth sim
    """
    from vseg import Maps
    from vseg.evaluation import metrics

    maps, truth = _find_file(maps, "maps.npz"), _find_file(truth, "truth.npz")
    estimated, true = Maps.load(maps), Maps.load(truth)
    if estimated.layout != true.layout:
        raise InvalidInput(
            f"{maps} lies on {estimated.layout}, but {truth} on {true.layout}; give the truth of the same size."
        )
    scores = metrics.evaluate(estimated, true)
    typer.echo(json.dumps(scores, indent=2) if as_json else _format_table(scores))


def _find_file(path: Path, name: str) -> Path:
    """Return the file of this name in a folder that vseg wrote, or the path itself if it is not a folder."""
    return path / name if path.is_dir() else path


def _format_table(scores: dict[str, float]) -> str:
    return "\n".join(
        _format_row(name, value, *EXPLANATIONS.get(name, ("", ""))) for name, value in scores.items()
    )


def _format_row(name: str, value: float, unit: str, meaning: str) -> str:
    number = f"{value:8.0f}" if unit == "count" else f"{value:8.4f}"
    return f"{name:<26}{number}  {unit:<8} {meaning}".rstrip()
