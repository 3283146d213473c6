"""The whole job on simulated people: from images to answers, maps, statistics and a report to read.

Two composite textures, one more ambiguous than the other, and a photograph whose number of segments nobody
knows. The people are simulated from the images: what makes them unsure is in the picture, not in a setting.

people        what they see in the pixels, and believe
experiments   what they are asked and answer, and the maps found
pages         the report and the data beside it
"""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vseg import __version__, designs
from vseg.demo import pages
from vseg.demo.experiments import (
    PARTICIPANTS,
    SEGMENTS,
    TEXTURE_GRID,
    Advance,
    photograph_experiment,
    texture_experiment,
)
from vseg.reconstruction.cross_validation import FOLDS, STRENGTHS
from vseg.stimuli import PRESETS

__all__ = ["run", "steps"]


def steps(participants: int = PARTICIPANTS, segments: Sequence[int] = SEGMENTS) -> int:
    """How far the progress of `run` counts: the fits behind each choice of λ, and the report."""
    chosen = 2 * (participants + 1) + len(segments)
    return chosen * FOLDS * len(STRENGTHS) + 1


def run(
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
        Folder to write into; made if it is not there.
    progress : function, optional
        Called with the number of steps done since the last call, `steps(…)` in all.
    participants : int
        Per texture, 2 or more.
    segments : sequence of int
        The K to try for the photograph.

    Examples
    --------
    >>> run("vseg-demo", seed=0)  # doctest: +SKIP
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
    pages.write_data(Path(out), textures, photo)
    page = pages.report(textures, pairs, photo)
    page.footer(
        f"vseg {__version__}, seed {seed}; the experiments, their reconstructions and figures took "
        f"{time.perf_counter() - began:.0f} s."
    )
    advance(1)
    return page.save(Path(out) / "report.html")
