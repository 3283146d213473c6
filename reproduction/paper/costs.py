"""Running times of the figures: here, for the progress bar, and estimated for the paper's own implementation."""

from collections.abc import Iterable, Sequence
from typing import Any

from reproduction.paper import FigureModule
from reproduction.paper.estimators import stable_learning_rate
from vseg.data.responses import Tally
from vseg.reconstruction.objective import build_objective

CPU_SECONDS = {
    "deterministic": 40.0,
    "losses": 355.0,
    "pairs": 120.0,
    "blocks": 160.0,
    "uncertainty": 260.0,
    "natural": 255.0,
    "texture": 180.0,
    "colours": 165.0,
    "variance": 60.0,
    "many_segments": 80.0,
    "unknown_segments": 250.0,
    "resolution": 150.0,
    "kernels": 260.0,
}
"""Approximate CPU seconds of each figure at 1000 resamples; only used for the progress bar."""

PaperFit = tuple[Tally, int, float]  # answers, K and λ


def time_pytorch(
    module: FigureModule, groups: Iterable[tuple[int, Sequence[Any]]], resamples: int, *, seed: int
) -> dict[str, float] | None:
    """Estimate the seconds that PyTorch would take for the fits of Algorithm 1 in this figure.

    The module lists the fits of one resample with `paper_fits(**setting, seed)`; each of them is timed once.

    Parameters
    ----------
    module : FigureModule
        The figure.
    groups : iterable of (int, sequence of settings)
        Numbers of resamples with the settings that get them.
    resamples : int
        The number of resamples requested for the figure.
    seed : int
        Random seed.

    Returns
    -------
    dict or None
        For the resamples that were run: the number of `fits` and their CPU seconds in PyTorch (`seconds`) and
        compiled (`compiled`); `in_full` is the seconds in PyTorch if every setting had all resamples. None if the
        module does not list its fits, or if PyTorch is not installed.
    """
    if not hasattr(module, "paper_fits"):
        return None
    try:
        from reproduction.paper import pytorch
    except ImportError:
        return None
    cost = {"fits": 0, "seconds": 0.0, "compiled": 0.0, "in_full": 0.0}
    for repeats, settings in groups:
        for setting in settings:
            for tally, segments, strength in module.paper_fits(**setting, seed=seed):
                problem = build_objective(tally, segments, strength=strength, weights="pairs")
                seconds, compiled = pytorch.time_fit(problem, stable_learning_rate(strength), seed=seed)
                cost["fits"] += repeats
                cost["seconds"] += repeats * seconds
                cost["compiled"] += repeats * compiled
                cost["in_full"] += resamples * seconds
    return {name: round(value, 2) for name, value in cost.items()}
