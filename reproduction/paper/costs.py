"""What figures cost: here, for the time that is left; and with the paper's own implementation, from a sample."""

from collections.abc import Iterable, Sequence
from typing import Any

from reproduction.paper.estimators import stable_rate
from vseg.data.responses import Tally
from vseg.reconstruction.objective import build_objective

SECONDS = {
    "deterministic": 100.0,
    "losses": 440.0,
    "blocks": 415.0,
    "uncertainty": 540.0,
    "natural": 120.0,
    "texture": 350.0,
    "colours": 100.0,
    "variance": 330.0,
    "many_segments": 90.0,
    "unknown_segments": 135.0,
    "resolution": 320.0,
    "kernels": 225.0,
}
"""CPU seconds of each figure at 1000 resamples, roughly; only the time left that the bar shows depends on it."""

Fit = tuple[Tally, int, float]  # the answers, K, and λ


def of(
    module: Any, groups: Iterable[tuple[int, Sequence[Any]]], resamples: int, *, seed: int
) -> dict[str, float] | None:
    """Seconds that PyTorch would take for the fits of Algorithm 1 in this figure.

    A module says with `papers_fits(**setting, seed)` which fits one resample takes; one of each is timed. None where
    it does not say, or where PyTorch is not installed.

    Returns
    -------
    dict or None
        For as many resamples as were run: `fits`, their number, and their CPU seconds in PyTorch (`seconds`) and
        compiled (`compiled`); and `in_full`, the seconds in PyTorch if every setting had all resamples.
    """
    if not hasattr(module, "papers_fits"):
        return None
    try:
        from reproduction.paper import pytorch
    except ImportError:
        return None
    found = {"fits": 0, "seconds": 0.0, "compiled": 0.0, "in_full": 0.0}
    for repeats, settings in groups:
        for setting in settings:
            for tally, segments, strength in module.papers_fits(**setting, seed=seed):
                problem = build_objective(tally, segments, strength=strength, weights="pairs")
                theirs, compiled = pytorch.seconds(problem, stable_rate(strength), seed=seed)
                found["fits"] += repeats
                found["seconds"] += repeats * theirs
                found["compiled"] += repeats * compiled
                found["in_full"] += resamples * theirs
    return {name: round(value, 2) for name, value in found.items()}
