"""Reconstruct probabilistic maps from responses."""

import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.sparse import issparse

from vseg import __version__
from vseg.data.layout import Grid, Layout
from vseg.data.maps import Maps
from vseg.data.responses import Responses, Tally
from vseg.errors import InvalidInput, NotConverged, VsegWarning
from vseg.reconstruction.kernels import Kernel, build_smoothness
from vseg.reconstruction.objective import build_objective
from vseg.reconstruction.smoothness_selection import (
    KernelComparison,
    SmoothnessPath,
    compare_kernels,
    cross_validate,
)
from vseg.reconstruction.solvers import Solution, Solver, check_options, get_solver

GROUPINGS = ("participant", "image")


@dataclass(frozen=True, eq=False, repr=False)
class Reconstruction:
    """Reconstructed maps and how they were fitted.

    Attributes
    ----------
    maps : Maps
    objective, data_term, penalty : float
        The minimised cost (Eq. 7) and its two terms.
    smoothness : float
        λ, given or chosen by cross-validation.
    kernel : str
        Name of the kernel, given or chosen by cross-validation; "array" for a local kernel, "matrix" for a matrix.
    path : SmoothnessPath or None
        Held-out likelihood over λ, where λ was chosen.
    kernels : KernelComparison or None
        Held-out likelihood of each kernel over λ, where the kernel was chosen.
    solution : Solution
        The result of the solver: iterations, status, trace.
    options : dict
        The options that the solver was given, such as the learning rate.
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
    locations_tested: int
    seconds: float
    seed: int
    path: SmoothnessPath | None
    kernels: KernelComparison | None
    solution: Solution
    options: Mapping[str, Any]

    @property
    def converged(self) -> bool:
        """Whether the solver reached its tolerance."""
        return self.solution.converged

    @property
    def message(self) -> str:
        """One sentence about the fit."""
        won, K = self.maps.segments_won, self.maps.segments
        used = "" if won == K else f" ({won} of which {'wins' if won == 1 else 'win'} a location)"
        chosen = "" if self.path is None else ", the strongest tried" if self.path.is_at_end else ", chosen"
        kernel = "" if self.kernels is None else f" and kernel {self.kernel}"
        return (
            f"{K} segments{used} from {self.trials} {'trial' if self.trials == 1 else 'trials'} on {self.pairs} "
            f"{'pair' if self.pairs == 1 else 'pairs'}, smoothness {self.smoothness:g}{kernel}{chosen}, "
            f"mean entropy {self.maps.mean_entropy:.3f} nats. {self.solution.status}"
        )

    def __repr__(self) -> str:
        return f"<Reconstruction: {self.message}>"

    def align_to(self, maps: Maps) -> "Reconstruction":
        """Return the same reconstruction with its segments ordered as in other maps."""
        return replace(self, maps=self.maps.align_to(maps))

    def summary(self) -> dict[str, Any]:
        """Return the contents of summary.json."""
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
            "segments_won": self.maps.segments_won,
            "iterations": self.solution.iterations,
            "converged": self.converged,
            "message": self.message,
            "mean_entropy": self.maps.mean_entropy,
            "seconds": self.seconds,
            "seed": self.seed,
            "version": __version__,
            "solver": self.solver,
            "solver_options": {
                name: value
                for name, value in self.options.items()
                if isinstance(value, (bool, int, float, str))
            },
            "kernel": self.kernel,
            "weights": self.weights,
            "pairs": self.pairs,
            "trials": self.trials,
            "locations": len(self.maps.layout),
            "locations_tested": self.locations_tested,
            "held_out": held_out,
            "kernels_table": None if self.kernels is None else self.kernels.table(),
        }

    def save(self, folder: str | Path, about: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Write maps.npz and summary.json into a folder; `about` holds further entries of summary.json."""
        self.maps.save(Path(folder) / "maps.npz")
        text = json.dumps({**about, **self.summary()}, indent=2, ensure_ascii=False)
        (Path(folder) / "summary.json").write_text(text + "\n", encoding="utf-8")


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
    """Reconstruct probabilistic maps from same/different answers, treated as those of one observer.

    Parameters
    ----------
    responses : Responses or Tally
        Answers about one image. For each of several participants or images: `reconstruct_each`.
    segments : int
        K ≥ 2. To choose it: `choose_segments`.
    smoothness : "auto" or float
        λ of Eq. 7. "auto" chooses the λ that best predicts held-out pairs (five folds).
    loss : "squared_error" or "cross_entropy"
        The loss of an answer: Eq. 6 or Eq. 1.
    kernel : "four", "eight", "gaussian:WIDTH", "auto", array or matrix
        Which neighbours a location is smoothed with. An array is a local kernel G of Eq. 7 on a grid, such as 3x3: its
        sides are odd, its weights non-negative and divided by their sum. A matrix is (n, n) and row-stochastic. "auto"
        chooses the kernel together with λ by held-out pairs; it keeps "four" unless another one predicts them clearly
        better.
    weights : "trials" or "pairs"
        Weight a pair by how often it was tested (n / mean n), or every pair by 1 as in the paper.
    solver : "coordinate_descent", "exponentiated_gradient", or a function
        The optimiser; a function as in `vseg.reconstruction.solvers`.
    starts : int, optional
        Number of random starts; by default as many as the solver needs.
    start : Maps, optional
        The maps from which the solver starts, for instance an earlier result, instead of random ones. They are used as
        given, but for "exponentiated_gradient" at locations with a probability of zero: its steps multiply and never
        leave zero, so it moves these locations by 0.1 % towards 1/K.
    seed : int
        Seed of random starts and held-out pairs.
    threads : int, optional
        Threads of the cross-validation; the result does not depend on it.
    progress : function, optional
        Called with the number of fits finished.
    **options
        Options of the solver: `tolerance`, `max_iterations`, and of "exponentiated_gradient" also `learning_rate` and
        `epsilon`, λ_r and ε of Algorithm 1.

    Returns
    -------
    Reconstruction
        The maps and how they were fitted.

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
    tally = tally_one_image(responses)
    if start is not None:
        start = _check_start(start, tally, segments)
    chooses_smoothness = isinstance(smoothness, str) and smoothness == "auto"
    chooses_kernel = isinstance(kernel, str) and kernel == "auto"
    if chooses_kernel and not chooses_smoothness:
        raise InvalidInput(
            "The kernel is chosen together with λ, whose scale depends on it; "
            f"with the kernel 'auto' leave smoothness 'auto', got {smoothness!r}."
        )
    check_options(solver, options)
    terms: dict[str, Any] = {"loss": loss, "weights": weights}
    # Built once for all folds; a kernel that is chosen replaces "four" below.
    smoothing = build_smoothness(tally.layout, "four" if chooses_kernel else kernel)
    problem = build_objective(tally, segments, kernel=smoothing, **terms)
    warn_about_coverage(tally, segments)
    if starts is not None:
        options["starts"] = starts
    path, kernels = None, None
    if chooses_smoothness:
        settings = {
            "solver": solver, "seed": seed, "threads": threads, "progress": progress, **terms, **options,
        }  # fmt: skip
        if chooses_kernel:
            kernels = compare_kernels(tally, segments, **settings)
            kernel, path = kernels.chosen, kernels.path
            problem = replace(problem, smoothness=build_smoothness(tally.layout, kernel))
        else:
            path = cross_validate(tally, segments, kernel=smoothing, **settings)
        smoothness = path.chosen
    problem = problem.with_strength(_parse_smoothness(smoothness))
    solution = get_solver(solver)(problem, start and start.probabilities, seed=seed, **options)
    if path is None and progress:
        progress(1)
    data_term, penalty = problem.terms(solution.probabilities)
    result = Reconstruction(
        maps=Maps(tally.layout, solution.probabilities),
        objective=data_term + penalty,
        data_term=data_term,
        penalty=penalty,
        smoothness=problem.strength,
        loss=loss,
        solver=solver if isinstance(solver, str) else solver.__name__,
        weights=weights,
        kernel=_kernel_name(kernel, tally.layout),
        pairs=len(tally),
        trials=tally.trials,
        locations_tested=int(np.sum(tally.pairs.partners > 0)),
        seconds=time.perf_counter() - began,
        seed=seed,
        path=path,
        kernels=kernels,
        solution=solution,
        options=options,
    )
    if not result.converged:
        raise NotConverged(f"{solution.status} Raise max_iterations or the tolerance.", result)
    return result


def reconstruct_each(
    responses: Responses, *, by: str = "participant", seed: int, **settings: Any
) -> dict[str, Reconstruction]:
    """Reconstruct the maps of each participant, or about each image; one that cannot be fitted is an error.

    To skip those who cannot be fitted, for instance because of too few answers, use `vseg.fit_dataset`, which also puts
    everyone's segments into the same order.

    Parameters
    ----------
    responses : Responses
        Answers of several participants, or about several images.
    by : "participant" or "image"
        What has maps of its own.
    seed : int
        Seed of random starts and held-out pairs.
    **settings
        As in `reconstruct`.

    Returns
    -------
    dict of Reconstruction
        By the name of the participant or image.

    Raises
    ------
    InvalidInput, NotConverged
        With the name of the participant or image, and the partial result of the fit as `.result`.
    """
    if by not in GROUPINGS:
        raise InvalidInput(f"Cannot reconstruct by {by!r}; choose one of {', '.join(GROUPINGS)}.")
    names = sorted(np.unique(getattr(responses, by)).tolist())
    results = {}
    for name in names:
        try:
            results[name] = reconstruct(responses.select(**{by: name}), seed=seed, **settings)
        except InvalidInput as error:
            raise InvalidInput(f"{by} {name!r}: {error} {_skipping_hint(by)}") from error
        except NotConverged as error:
            raise NotConverged(f"{by} {name!r}: {error} {_skipping_hint(by)}", error.result) from error
    return results


def _skipping_hint(by: str) -> str:
    return f"To go on without it, use vseg.fit_dataset(…, by={by!r})."


def tally_one_image(responses: Responses | Tally) -> Tally:
    """Check that responses are about one image and count them per pair."""
    if isinstance(responses, Tally):
        return responses
    if not isinstance(responses, Responses):
        raise InvalidInput(f"Expected Responses or a Tally, got {responses!r:.60}; vseg.load reads a file.")
    if len(responses.images) > 1:
        listed = ", ".join(responses.images[:5])
        raise InvalidInput(
            f"These responses are about {len(responses.images)} images ({listed}…); choose one with "
            "responses.select(image=…), or reconstruct each with reconstruct_each(…, by='image')."
        )
    return responses.tally()


def warn_about_coverage(tally: Tally, segments: int) -> None:
    """Warn if locations were never tested, or if fewer distinct pairs were tested than K maps have unknowns."""
    n, partners = len(tally.layout), tally.pairs.partners
    untested = np.flatnonzero(partners == 0)
    if len(untested):
        last = int(np.flatnonzero(partners)[-1])
        side = round(np.sqrt(last + 1))
        hint = f"; is it a {side}x{side} grid?" if side**2 == last + 1 else "."
        warnings.warn(
            f"{len(untested)} of the {n} locations of {tally.layout} were never tested (the first is {untested[0]}, "
            f"the last tested {last}): their maps follow from their neighbours alone{hint}",
            VsegWarning,
            stacklevel=3,
        )
    least = (segments - 1) * n
    size = "N²" if isinstance(tally.layout, Grid) else "n"
    if len(tally) < min(least, n * (n - 1) // 2):
        warnings.warn(
            f"Only {len(tally)} distinct {'pair was' if len(tally) == 1 else 'pairs were'} tested; {segments} segments "
            f"on {tally.layout} need at least (K-1){size} = {least} with this estimator; the posterior has no minimum.",
            VsegWarning,
            stacklevel=3,
        )


def _parse_smoothness(smoothness: float | str) -> float:
    try:
        return float(smoothness)
    except (TypeError, ValueError):
        raise InvalidInput(f"Smoothness is 'auto' or a number from 0 up, got {smoothness!r}.") from None


def _kernel_name(kernel: Kernel, layout: Layout) -> str:
    if isinstance(kernel, tuple) and isinstance(kernel[0], str):
        return f"{kernel[0]}:{kernel[1]:g}"
    if isinstance(kernel, str):
        return kernel
    return "matrix" if issparse(kernel) or np.shape(kernel) == (len(layout), len(layout)) else "array"


def _check_start(start: Maps, tally: Tally, segments: int) -> Maps:
    if not isinstance(start, Maps):
        raise InvalidInput(f"A start is a Maps, got {start!r:.60}.")
    if start.layout != tally.layout or start.segments != segments:
        raise InvalidInput(
            f"The start has {start.segments} segments on {start.layout}; expected {segments} on {tally.layout}."
        )
    return start
