"""reconstruct(): the front door, from responses to probabilistic maps."""

import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any

import numpy as np

from vseg import __version__
from vseg.errors import InvalidInput, NotConverged, VsegWarning
from vseg.maps import Maps
from vseg.objective import objective
from vseg.responses import Responses, Tally
from vseg.smoothness import Kernel
from vseg.solvers import Solution, Solver, solver_of
from vseg.validation import Path, cross_validate

GROUPINGS = ("participant", "image")


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Maps, and how they were reached.

    Attributes
    ----------
    maps : Maps
    objective, data_term, penalty : float
        What was minimised (Eq. 7), and its two parts.
    smoothness : float
        λ, chosen or given.
    path : Path or None
        Held-out likelihood over λ, where λ was chosen.
    solution : Solution
        The solver's own account: iterations, status, trace.
    """

    maps: Maps
    objective: float
    data_term: float
    penalty: float
    smoothness: float
    loss: str
    solver: str
    weights: str
    kernel: str
    pairs: int
    trials: int
    seconds: float
    seed: int
    path: Path | None
    solution: Solution

    @property
    def converged(self) -> bool:
        """Whether the solver reached its tolerance."""
        return self.solution.converged

    @property
    def message(self) -> str:
        """One sentence for a person."""
        return (
            f"{self.maps.segments} segments from {self.trials} trials on {self.pairs} pairs, "
            f"smoothness {self.smoothness:g}, mean entropy {self.maps.mean_entropy:.3f} nats. "
            f"{self.solution.status}"
        )

    def summary(self) -> dict[str, Any]:
        """The numbers that `vseg fit` writes to summary.json."""
        held_out = None
        if self.path is not None:
            held_out = {
                "smoothness": self.path.strengths.tolist(),
                "log_likelihood_per_trial": self.path.mean.tolist(),
                "standard_error": self.path.standard_error.tolist(),
            }
        return {
            "objective": self.objective,
            "data_term": self.data_term,
            "penalty": self.penalty,
            "smoothness": self.smoothness,
            "loss": self.loss,
            "segments": self.maps.segments,
            "segments_won": self.maps.winning,
            "iterations": self.solution.iterations,
            "converged": self.converged,
            "message": self.message,
            "mean_entropy": self.maps.mean_entropy,
            "seconds": self.seconds,
            "seed": self.seed,
            "version": __version__,
            "solver": self.solver,
            "kernel": self.kernel,
            "weights": self.weights,
            "pairs": self.pairs,
            "trials": self.trials,
            "held_out": held_out,
        }

    def save(self, folder: str | FilePath, about: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Write maps.npz and summary.json, with what else there is to say `about` it, into a folder."""
        self.maps.save(FilePath(folder) / "maps.npz")
        text = json.dumps({**about, **self.summary()}, indent=2, ensure_ascii=False)
        (FilePath(folder) / "summary.json").write_text(text + "\n", encoding="utf-8")


def reconstruct(
    responses: Responses | Tally,
    *,
    segments: int,
    smoothness: float | str = "auto",
    loss: str = "squared_error",
    kernel: Kernel = "four",
    weights: str = "trials",
    solver: str | Solver = "coordinate_descent",
    starts: int | None = None,
    start: Maps | None = None,
    seed: int,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Reconstruction:
    """Probabilistic maps from same/different answers, all taken as one observer's.

    Parameters
    ----------
    responses : Responses or Tally
        Answers about one image. For each of several participants or images: `reconstruct_each`.
    segments : int
        K ≥ 2. To choose it: `choose_segments`.
    smoothness : "auto" or float
        λ of Eq. 7. "auto" takes the λ that best predicts held-out pairs (five folds).
    loss : "squared_error" (Eq. 5) or "cross_entropy" (Eq. 1)
    kernel : "four", "eight", "gaussian:WIDTH", or a row-stochastic (n, n) matrix
    weights : "trials" or "pairs"
        A pair counts by how often it was tested (n / mean n), or once as in the paper.
    solver : "coordinate_descent", "exponentiated_gradient", or a function
    starts : int, optional
        Random starts; by default as many as the solver needs.
    start : Maps, optional
        Warm start, for instance an earlier result.
    progress : function, optional
        Called with the number of fits finished.
    options : passed on to the solver (`tolerance`, `max_iterations`, `learning_rate`, …)

    Raises
    ------
    NotConverged
        With the partial result as `.result`.

    Examples
    --------
    >>> import vseg
    >>> truth = vseg.stimuli.random_maps(vseg.Grid(8), segments=2, entropy=0.1, seed=0)
    >>> pairs = vseg.designs.covering(truth.layout, segments=2, seed=1)
    >>> responses = vseg.simulate(truth, pairs, blocks=10, seed=2)
    >>> result = reconstruct(responses, segments=2, seed=3)
    >>> vseg.metrics.label_accuracy(result.maps, truth) > 0.9
    True
    """
    began = time.perf_counter()
    tally = _tally(responses)
    terms: dict[str, Any] = {"loss": loss, "kernel": kernel, "weights": weights}
    problem = objective(tally, segments, **terms)
    warn_of_few_pairs(tally, segments)
    path = None
    if smoothness == "auto":
        path = cross_validate(
            tally,
            segments,
            solver=solver,
            starts=starts,
            seed=seed,
            threads=threads,
            progress=progress,
            **terms,
        )
        smoothness = path.chosen
    problem = objective(tally, segments, strength=_number(smoothness), **terms)
    begin = None if start is None else _start(start, tally, segments)
    if starts is not None:
        options["starts"] = starts
    solution = solver_of(solver)(problem, begin, seed=seed, **options)
    data_term, penalty = problem.parts(solution.probabilities)
    result = Reconstruction(
        maps=Maps(tally.layout, solution.probabilities),
        objective=data_term + penalty,
        data_term=data_term,
        penalty=penalty,
        smoothness=problem.strength,
        loss=loss,
        solver=solver if isinstance(solver, str) else solver.__name__,
        weights=weights,
        kernel=_name(kernel),
        pairs=len(tally),
        trials=tally.trials,
        seconds=time.perf_counter() - began,
        seed=seed,
        path=path,
        solution=solution,
    )
    if not result.converged:
        raise NotConverged(f"{solution.status} Raise max_iterations or the tolerance.", result)
    return result


def reconstruct_each(
    responses: Responses, *, by: str = "participant", seed: int, **settings: Any
) -> dict[str, Reconstruction]:
    """One reconstruction for each participant (or each image); the settings are those of `reconstruct`."""
    if by not in GROUPINGS:
        raise InvalidInput(f"Cannot reconstruct by {by!r}; choose one of {', '.join(GROUPINGS)}.")
    names = sorted(np.unique(getattr(responses, by)).tolist())
    return {name: reconstruct(responses.of(**{by: name}), seed=seed, **settings) for name in names}


def _tally(responses: Responses | Tally) -> Tally:
    if isinstance(responses, Tally):
        return responses
    if len(responses.images) > 1:
        listed = ", ".join(responses.images[:5])
        raise InvalidInput(
            f"These responses are about {len(responses.images)} images ({listed}…); choose one with "
            "responses.of(image=…), or reconstruct each with reconstruct_each(…, by='image')."
        )
    return responses.tally()


def warn_of_few_pairs(tally: Tally, segments: int) -> None:
    """Say so where fewer distinct pairs were tested than K maps have unknowns."""
    n = len(tally.layout)
    least, advised = (segments - 1) * n, segments * n
    possible = n * (n - 1) // 2
    if len(tally) < min(least, possible):
        warnings.warn(
            f"Only {len(tally)} distinct pairs were tested; {segments} segments on {tally.layout} need "
            f"at least (K-1)N² = {least}, and KN² = {advised} are advised.",
            VsegWarning,
            stacklevel=3,
        )


def _number(smoothness: float | str) -> float:
    try:
        return float(smoothness)
    except (TypeError, ValueError):
        raise InvalidInput(f"Smoothness is 'auto' or a number from 0 up, got {smoothness!r}.") from None


def _name(kernel: Kernel) -> str:
    if isinstance(kernel, tuple):
        return f"{kernel[0]}:{kernel[1]:g}"
    return kernel if isinstance(kernel, str) else "matrix"


def _start(maps: Maps, tally: Tally, segments: int) -> np.ndarray:
    if maps.layout != tally.layout or maps.segments != segments:
        raise InvalidInput(
            f"The start has {maps.segments} segments on {maps.layout}; expected {segments} on {tally.layout}."
        )
    return maps.probabilities
