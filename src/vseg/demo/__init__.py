"""The demonstration: two experiments with simulated participants, their analysis and a report.

The images are two composite textures, one more ambiguous than the other, and a photograph with an unknown number of
segments. The participants are simulated from the pixels (`vseg.image_observers`): their uncertainty comes from the
image.

experiments   simulated answers, and the maps reconstructed from them
report        the report, and the data written beside it
"""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vseg import __version__, designs
from vseg.demo import report
from vseg.demo.experiments import (
    PARTICIPANTS,
    SEGMENTS,
    TEXTURE_GRID,
    Advance,
    photograph_experiment,
    texture_experiment,
)
from vseg.reconstruction.smoothness_selection import FOLDS, STRENGTHS
from vseg.stimuli import PRESETS

__all__ = ["count_steps", "run_demo"]


def count_steps(participants: int = PARTICIPANTS, segments: Sequence[int] = SEGMENTS) -> int:
    """Return the number of progress steps of `run_demo`: the fits of each choice of λ, and the report."""
    reconstructions = 2 * (participants + 1) + len(segments)
    return reconstructions * FOLDS * len(STRENGTHS) + 1


def run_demo(
    out: str | Path,
    *,
    seed: int,
    progress: Advance | None = None,
    participants: int = PARTICIPANTS,
    segments: Sequence[int] = SEGMENTS,
) -> Path:
    """Run both experiments, write their data and the report, and return the report's path.

    Parameters
    ----------
    out : str or Path
        Folder to write into; created if missing.
    seed : int
    progress : function, optional
        Called with the number of steps done since the last call; `count_steps(…)` in total.
    participants : int
        Number of participants per texture, at least 2.
    segments : sequence of int
        The K to try for the photograph.

    Examples
    --------
    >>> run_demo("vseg-demo", seed=0)  # doctest: +SKIP
    PosixPath('vseg-demo/report.html')
    """
    began, advance = time.perf_counter(), progress or (lambda done: None)
    people, photograph = np.random.SeedSequence(seed).spawn(2)
    pairs = designs.balanced(TEXTURE_GRID, segments=2, seed=seed)
    textures = [
        texture_experiment(name, pairs, participants, seed, condition, advance)
        for name, condition in zip(PRESETS, people.spawn(2), strict=True)
    ]
    photo = photograph_experiment(segments, photograph, advance)
    report.write_data(Path(out), textures, photo)
    page = report.build_report(textures, pairs, photo)
    page.footer(
        f"vseg {__version__}, seed {seed}; the experiments, their reconstructions and figures took "
        f"{time.perf_counter() - began:.0f} s."
    )
    advance(1)
    return page.save(Path(out) / "report.html")
