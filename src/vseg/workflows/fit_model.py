"""Fit one model to all answers of a dataset: the workflow of `vseg models fit`."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vseg._support.progress import StartProgress, no_progress
from vseg._support.text import format_count, safe_folder_names
from vseg.errors import InvalidInput
from vseg.evaluation.fits import FitOutcome, Groups, MapsByGroup, fit_to_all_answers, reconstruct_human_maps
from vseg.evaluation.folds import FitUnit, group_rows
from vseg.evaluation.sandbox import MEMORY_MB, SECONDS
from vseg.evaluation.scores import bits, compute_calibration
from vseg.models.differential_variance import STARTS
from vseg.models.model_interface import Family
from vseg.models.task import Task
from vseg.workflows.score_models import load_family, load_task, make_maps_figure, open_executor


@dataclass(frozen=True, eq=False)
class ModelFits:
    """One model fitted to all answers of each group: a participant, an image, or all.

    Attributes
    ----------
    model : str
        The model's name.
    task : Task
        The answers and images.
    per : str
        What one fit uses.
    groups : mapping
        The rows of each group.
    fits : dict
        The outcomes by group, with predictions, maps and parameters.
    failures : dict
        Why a group could not be fitted, by group.
    human_maps : mapping
        The maps reconstructed from the answers, by group and image; empty if the model predicts no maps.
    """

    model: str
    task: Task
    per: FitUnit
    groups: Groups
    fits: dict[str, FitOutcome]
    failures: dict[str, str]
    human_maps: MapsByGroup

    @property
    def message(self) -> str:
        """One or more sentences: how many fits there are, and what to know about their parameters."""
        total = len(self.fits) + len(self.failures)
        some = f"{len(self.fits)} of " if self.failures else ""
        unit = self.per if self.per != "all" else "task"
        parts = [f"{self.model} fitted to {some}{format_count(total, unit)}."]
        key = "paper_variances"
        if paper := [fit.parameters[key] for fit in self.fits.values() if key in fit.parameters]:
            parts.append(_describe_paper_fits(paper))
        return " ".join(parts)

    def save(self, folder: str | Path) -> None:
        """Write parameters.json and calibration.png and, of a model that predicts maps, maps/ and maps.png.

        Parameters
        ----------
        folder : path
            An existing folder.
        """
        from vseg import figures

        folder = Path(folder)
        same = self.task.responses.same
        fits = {
            group: {
                "answers": len(fit.q),
                "bits_fitted": float(bits(fit.q, same[self.groups[group]]).mean()),
                "parameters": fit.parameters,
            }
            for group, fit in self.fits.items()
        }
        content = {"model": self.model, "per": self.per, "segments": self.task.segments, "fits": fits}
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        (folder / "parameters.json").write_text(text, encoding="utf-8")
        q = np.concatenate([fit.q for fit in self.fits.values()])
        answers = np.concatenate([same[self.groups[group]] for group in self.fits])
        figures.calibration({self.model: compute_calibration(q, answers)}).savefig(folder / "calibration.png")
        maps = {(group, image): each for group, fit in self.fits.items() for image, each in fit.maps.items()}
        if maps:
            _save_maps(folder / "maps", maps)
            columns = {"people": self.human_maps, self.model: maps}
            make_maps_figure(self.task, columns, self.per).savefig(folder / "maps.png")


def fit_model(
    data: str | Path | Task,
    model: str | Family,
    *,
    per: FitUnit = "participant",
    features: str | None = None,
    segments: int | None = None,
    image: str | None = None,
    seed: int,
    workers: int = 1,
    seconds: float = SECONDS,
    memory_mb: int = MEMORY_MB,
    progress: StartProgress = no_progress,
) -> ModelFits:
    """Fit one model to all answers of each group.

    Parameters
    ----------
    data : path or Task
        A dataset folder written by `vseg export`, `vseg import` or `vseg bench dataset`, or a task.
    model : str or Family
        The name of a built-in model, FILE.py or FILE.py:NAME, or a family.
    per : "participant", "image" or "all"
        What one fit uses.
    features : str, optional
        Features of a model that uses any; by default its own.
    segments : int, optional
        K of models that predict maps; by default the number that the study fixes. For a dataset folder only.
    image : str, optional
        Use only the answers about this image. For a dataset folder only.
    seed : int
        Seed of the fits.
    workers : int
        Number of fits at a time; the numbers do not depend on it.
    seconds, memory_mb : float and int
        Limits of one fit in a process of its own: a model from a file, or any model with several workers.
    progress : callable, optional
        Called with the number of steps; returns a context manager whose value is called with finished steps.

    Returns
    -------
    ModelFits
        Groups that cannot be fitted are in `failures`; it raises InvalidInput if there are no others.
    """
    task = load_task(data, segments, image)
    name = model if isinstance(model, str) else getattr(model, "__name__", "model")
    family = load_family(model, features)
    groups = group_rows(task.responses, per, "pairs")
    with (
        progress(2 * len(groups)) as advance,
        open_executor([model], workers, seconds, memory_mb) as executor,
    ):
        outcomes = fit_to_all_answers(
            task, {name: family}, groups, seed=seed, executor=executor, progress=advance
        )[name]
        fits = {group: each for group, each in outcomes.items() if not each.failure}
        failures = {group: each.failure for group, each in outcomes.items() if each.failure}
        if not fits:
            group, reason = next(iter(failures.items()))
            raise InvalidInput(f"{name} could not be fitted to {group}: {reason}")
        human_maps: MapsByGroup = {}
        if any(each.maps for each in fits.values()):
            human_maps = reconstruct_human_maps(task, groups, seed=seed, executor=executor, progress=advance)
    return ModelFits(name, task, per, groups, fits, failures, human_maps)


def _describe_paper_fits(paper: list[dict[str, dict[str, list[float]]]]) -> str:
    """Say which weights of the variance model are which, and how much those of the paper depend on their start."""
    curves = [[one[start]["variance_difference"] for start in STARTS] for one in paper]
    agreement = np.median([np.asarray(np.corrcoef(pair))[0, 1] for pair in curves])
    several = f", median of {len(paper)}" if len(paper) > 1 else ""
    return (
        "In parameters.json, difference is ω₁ - ω₂, which the answers identify, with its 90 % interval; "
        "paper_variances is σ₁² - σ₂² fitted as in the paper (σ, squared error, no prior), which depends on the start: "
        f"from the two starts, the curves correlate {agreement:.2f}{several}."
    )


def _save_maps(folder: Path, maps: MapsByGroup) -> None:
    """Write an .npz file for each group and image."""
    groups = safe_folder_names(dict.fromkeys(group for group, _ in maps))
    images = safe_folder_names(dict.fromkeys(image for _, image in maps))
    for (group, image), each in maps.items():
        (folder / groups[group]).mkdir(parents=True, exist_ok=True)
        each.save(folder / groups[group] / f"{images[image]}.npz")
