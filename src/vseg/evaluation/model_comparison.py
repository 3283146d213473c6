"""Compare models on answers they have not seen: `compare(task, models, by="pairs", seed=0)`.

compare()          fits every model without each fold and scores its predictions of the held-out answers
ModelComparison    the result: a table with intervals, paired differences, and Markdown, CSV and JSON

Examples
--------
>>> from vseg.models import Task, logistic
>>> result = compare(task, {"colour": logistic("lab"), "free": free_maps()}, seed=0)  # doctest: +SKIP
>>> print(result.markdown())  # doctest: +SKIP
"""

import csv
import io
import json
import warnings
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from vseg._support.progress import Progress
from vseg.data.maps import Maps
from vseg.data.responses import Responses
from vseg.errors import InvalidInput, VsegWarning
from vseg.evaluation import metrics
from vseg.evaluation.fits import (
    FitOutcome,
    MapsByGroup,
    fit_to_all_answers,
    predict_held_out,
    reconstruct_human_maps,
    to_json_value,
)
from vseg.evaluation.folds import FitUnit, HeldOutUnit, assign_folds, group_rows
from vseg.evaluation.scores import (
    REFERENCE_NAMES,
    BootstrapWeights,
    CalibrationCurve,
    ReferencePrediction,
    bits,
    brier,
    compute_calibration,
    compute_references,
    draw_bootstrap_weights,
    mean_bits,
)
from vseg.models.model_interface import Family
from vseg.models.task import Task

CONFIDENCE = 0.95
MAP_SCORES = (
    "mae", "label_accuracy", "adjusted_rand_index", "variation_of_information", "covering", "boundary_f",
    "entropy_error",
)  # fmt: skip
COLUMNS = (
    "model", "bits", "low", "high", "normalised", "normalised_low", "normalised_high", "brier", "entropy_r",
    *MAP_SCORES,
)  # fmt: skip
MARKDOWN_COLUMNS = {
    "of the ceiling": ("normalised", 2),
    "Brier": ("brier", 3),
    "entropy r": ("entropy_r", 2),
    "map error": ("mae", 2),
    "labels": ("label_accuracy", 2),
    "Rand": ("adjusted_rand_index", 2),
}
"""Heading, column and number of digits of the columns after bits."""


class ScoreRow(TypedDict):
    """A row of the table of scores: one model."""

    model: str
    bits: float
    low: float
    high: float
    normalised: float | None
    normalised_low: float | None
    normalised_high: float | None
    brier: float
    entropy_r: float | None
    mae: float | None
    label_accuracy: float | None
    adjusted_rand_index: float | None
    variation_of_information: float | None
    covering: float | None
    boundary_f: float | None
    entropy_error: float | None


class DifferenceRow(TypedDict):
    """How many bits per answer one model is better than another, and the probability that it is better at all."""

    better: str
    worse: str
    bits: float
    low: float
    high: float
    probability: float


class ReferenceRow(TypedDict):
    """The score of the floor or of a ceiling; `said` describes it."""

    name: str
    bits: float
    answers: int
    said: str


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison:
    """The predictions of held-out answers by several models, and their scores.

    Attributes
    ----------
    responses : Responses
        The answers.
    predictions : dict
        P(same) of every answer, by model.
    references : list of ReferencePrediction
        The floor and the ceilings.
    failures : dict
        Why a model could not be scored, by model.
    maps : dict
        By model, then by (group, image): maps fitted to all answers, of models that predict maps.
    human_maps : dict
        By (group, image): the maps reconstructed from the answers.
    agreement : dict
        By model: `entropy_r` and the map metrics of its maps against the human maps, None without maps.
    by, per, folds, seed
        How the models were compared; see `compare`.
    resample_count : int
        Number of bootstrap resamples.
    seconds : dict
        By submission to a leaderboard: how long it took for all images.
    """

    responses: Responses
    predictions: dict[str, NDArray[np.float64]]
    references: list[ReferencePrediction]
    failures: dict[str, str]
    maps: dict[str, dict[tuple[str, str], Maps]]
    human_maps: dict[tuple[str, str], Maps]
    agreement: dict[str, dict[str, float | None]]
    by: HeldOutUnit
    per: FitUnit
    folds: int
    seed: int
    resample_count: int = 2000
    seconds: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        models = ", ".join(self.predictions) or "no models"
        return f"<ModelComparison of {models} by {self.by}, {self.folds} folds>"

    @cached_property
    def bootstrap_weights(self) -> BootstrapWeights:
        """The resamples that all intervals and differences share."""
        return draw_bootstrap_weights(self.responses, self.resample_count, seed=self.seed)

    @cached_property
    def scores(self) -> dict[str, NDArray[np.float64]]:
        """Bits of every answer, by model and reference."""
        predictions = {**{each.name: each.q for each in self.references}, **self.predictions}
        return {
            name: np.where(np.isfinite(q), bits(q, self.responses.same), np.nan)
            for name, q in predictions.items()
        }

    @cached_property
    def ceiling(self) -> str | None:
        """The ceiling that scores are set against: within or between participants, whichever predicts better.

        With few repeats, the same participant's other answers predict poorly, and many other participants better.
        """
        available = [
            each for each in self.references if each.name in ("within", "between") and each.is_available
        ]
        return max(available, key=lambda each: mean_bits(each, self.responses)).name if available else None

    def table(self) -> list[ScoreRow]:
        """Return a row for each model, best first: bits per answer with an interval, raw and normalised."""
        return sorted(map(self._score_model, self.predictions), key=lambda row: -row["bits"])

    def differences(self) -> list[DifferenceRow]:
        """Return for each pair of models how many bits per answer the first is better, and how probably it is."""
        order = [row["model"] for row in self.table()]
        rows: list[DifferenceRow] = []
        for position, better in enumerate(order):
            for worse in order[position + 1 :]:
                difference = self.scores[better] - self.scores[worse]
                resampled = self.bootstrap_weights.means(difference)
                low, high = _interval(resampled)
                probability = float(np.mean(resampled > 0) + 0.5 * np.mean(resampled == 0))
                rows.append(
                    {"better": better, "worse": worse, "bits": float(np.mean(difference)), "low": low,
                     "high": high, "probability": probability}
                )  # fmt: skip
        return rows

    def calibration(self, model: str, bins: int = 10) -> CalibrationCurve:
        """Return the calibration curve of one model."""
        return compute_calibration(self.predictions[model], self.responses.same, bins)

    def ceilings(self) -> list[ReferenceRow]:
        """Return the floor and the ceilings: their bits, the number of answers they predict, and a description."""
        return [
            {"name": each.name, "bits": mean_bits(each, self.responses),
             "answers": int(np.isfinite(each.q).sum()), "said": each.description}
            for each in self.references
        ]  # fmt: skip

    def markdown(self) -> str:
        """Return table, references, failures and an explanation as Markdown."""
        lines = [
            f"| model | bits per answer (95 %) | {' | '.join(MARKDOWN_COLUMNS)} |",
            f"|{'---|' * (2 + len(MARKDOWN_COLUMNS))}",
        ]
        for row in self.table():
            values: Mapping[str, object] = row
            cells = [_format_number(values[name], digits) for name, digits in MARKDOWN_COLUMNS.values()]
            score = f"{row['bits']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
            lines.append(f"| {row['model']} | {score} | {' | '.join(cells)} |")
        lines += ["", *map(_describe_reference, self.ceilings()), ""]
        lines += [f"- {name} was not scored: {reason}" for name, reason in self.failures.items()]
        lines += [""] if self.failures else []
        lines.append(self._explain())
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """Return the table as CSV."""
        file = io.StringIO()
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.table())
        return file.getvalue()

    def json(self) -> str:
        """Return everything except the predictions and maps as JSON."""
        content = {
            "models": self.table(), "differences": self.differences(), "references": self.ceilings(),
            "failures": self.failures, "by": self.by, "per": self.per, "folds": self.folds, "seed": self.seed,
            "answers": len(self.responses), "resampled": self.bootstrap_weights.units,
            "calibration": {name: vars(self.calibration(name)) for name in self.predictions},
        }  # fmt: skip
        return json.dumps(to_json_value(content), indent=2) + "\n"

    def _explain(self) -> str:
        return (
            f"{len(self.responses)} answers, {self.folds} folds held out by {self.by}, fitted per {self.per}, "
            f"seed {self.seed}; intervals resample {self.bootstrap_weights.units}. Bits are log2 of the probability "
            "given to an answer: 0 at best, -1 for P(same) = 0.5. 'Of the ceiling' is where a model lies between "
            f"floor and {self.ceiling or 'a ceiling, which is not available here'}. The last four columns compare a "
            "model's maps with the maps reconstructed from the answers: correlation of entropies, mean error (0 to "
            "2), share of locations with the same label, adjusted Rand index."
        )

    def _score_model(self, name: str) -> ScoreRow:
        scores = self.scores[name]
        low, high = _interval(self.bootstrap_weights.means(scores))
        row = {
            "model": name, "bits": float(np.mean(scores)), "low": low, "high": high, **self._normalise(name),
            "brier": float(np.mean(brier(self.predictions[name], self.responses.same))), **self.agreement[name],
        }  # fmt: skip
        return cast(ScoreRow, row)

    def _normalise(self, name: str) -> dict[str, float | None]:
        """Return (model - floor) / (ceiling - floor) on the answers that the ceiling predicts; never clipped."""
        columns = ("normalised", "normalised_low", "normalised_high")
        if self.ceiling is None:
            return dict.fromkeys(columns)
        predicted = np.isfinite(self.scores[self.ceiling])
        model, ceiling, floor = (
            np.where(predicted, self.scores[each], np.nan) for each in (name, self.ceiling, "floor")
        )
        if np.nanmean(ceiling) <= np.nanmean(floor):
            return dict.fromkeys(columns)
        resampled = self.bootstrap_weights.means(model - floor) / self.bootstrap_weights.means(
            ceiling - floor
        )
        value = float(np.nanmean(model - floor) / np.nanmean(ceiling - floor))
        return dict(zip(columns, (value, *_interval(resampled)), strict=True))


def compare(
    task: Task,
    models: Mapping[str, Family],
    *,
    by: HeldOutUnit = "pairs",
    per: FitUnit = "participant",
    folds: int = 5,
    seed: int,
    resamples: int = 2000,
    executor: Executor | None = None,
    progress: Progress = lambda steps: None,
    checkpoint: Path | None = None,
    human_maps: MapsByGroup | None = None,
) -> ModelComparison:
    """Fit every model without each fold in turn, and score its predictions of the held-out answers.

    Parameters
    ----------
    task : Task
        The answers and images.
    models : mapping from names to families
        Functions `(task, *, seed) -> FittedModel`.
    by : "pairs", "blocks", "participants" or "images"
        What is held out together.
    per : "participant", "image" or "all"
        What one fit uses: each participant or image has parameters of its own, or all share them.
    folds : int
        Number of folds.
    seed : int
        Seed of folds, fits and intervals.
    resamples : int
        Number of bootstrap resamples for the intervals.
    executor : concurrent.futures.Executor, optional
        Where the fits run: threads, processes, or processes with limits (`vseg.evaluation.sandbox.SandboxExecutor`);
        the numbers do not depend on it. What runs in processes must be picklable, as vseg's own families are.
    progress : callable, optional
        Called with 1 after each fit: `count_fits` of them.
    checkpoint : Path, optional
        Finished fits are stored here, so that an interrupted run resumes.
    human_maps : mapping from (group, image) to Maps, optional
        The maps that models' maps are compared with; by default reconstructed from the answers.

    Returns
    -------
    ModelComparison
        Scores of each model with intervals, and references to compare them with; `table()` lists them.
    """
    if not models:
        raise InvalidInput("There are no models to compare; name at least one.")
    if taken := sorted(set(REFERENCE_NAMES) & set(models)):
        raise InvalidInput(f"{taken[0]} is the name of a reference; give the model another name.")
    groups = group_rows(task.responses, per, by)
    fold = assign_folds(task.responses, by, folds, seed=_derive_fold_seed(seed))
    predictions, failures = predict_held_out(
        task, models, groups, fold, seed=seed, executor=executor, progress=progress,
        checkpoint=checkpoint,
    )  # fmt: skip
    scored = {name: models[name] for name in predictions}
    outcomes = fit_to_all_answers(
        task,
        scored,
        groups,
        seed=seed,
        executor=executor,
        progress=progress,
        checkpoint=checkpoint,
    )
    maps = {name: _collect_maps(name, each) for name, each in outcomes.items()}
    if human_maps is None:
        human_maps = reconstruct_human_maps(
            task, groups, seed=seed, executor=executor, progress=progress, checkpoint=checkpoint
        )
    return ModelComparison(
        responses=task.responses,
        predictions=predictions,
        references=compute_references(task.responses, fold),
        failures=failures,
        maps={name: each for name, each in maps.items() if each},
        human_maps=dict(human_maps),
        agreement={name: compute_agreement(each, human_maps) for name, each in maps.items()},
        by=by,
        per=per,
        folds=int(fold.max()) + 1,
        seed=seed,
        resample_count=resamples,
    )


def count_fits(task: Task, models: int, *, per: FitUnit, folds: int) -> int:
    """Return how many fits `compare` runs: each fold, all answers, and the human maps of each group."""
    groups = {
        "participant": len(task.responses.participants),
        "image": len(task.responses.images),
        "all": 1,
    }[per]
    return groups * (models * (folds + 1) + 1)


def compute_agreement(maps: MapsByGroup, human_maps: MapsByGroup) -> dict[str, float | None]:
    """Return the entropy correlation and the map metrics of a model, averaged over the groups and images of both.

    Labels are matched in each group and image separately. All values are None if there are no maps in common.
    """
    shared = sorted(set(maps) & set(human_maps))
    if not shared:
        return dict.fromkeys(("entropy_r", *MAP_SCORES))
    model, human = [maps[key] for key in shared], [human_maps[key] for key in shared]
    scores = list(map(metrics.evaluate, model, human))
    means: dict[str, float | None] = {
        name: float(np.mean([each[name] for each in scores])) for name in MAP_SCORES
    }
    return {"entropy_r": entropy_correlation(model, human), **means}


def entropy_correlation(maps: list[Maps], human_maps: list[Maps]) -> float | None:
    """Return the correlation of the entropies at all locations; None if either does not vary."""
    model, human = (np.concatenate([one.entropy for one in each]) for each in (maps, human_maps))
    if model.std() == 0 or human.std() == 0:
        return None
    return float(np.corrcoef(model, human)[0, 1])


def _derive_fold_seed(seed: int) -> int:
    return int(np.random.SeedSequence(seed).spawn(2)[1].generate_state(1)[0])


def _collect_maps(name: str, outcomes: Mapping[str, FitOutcome]) -> dict[tuple[str, str], Maps]:
    """Return the maps by group and image; warn of a failed fit, which does not affect the scores."""
    failures = {group: each.failure for group, each in outcomes.items() if each.failure}
    for group, reason in list(failures.items())[:1]:
        warnings.warn(f"There are no maps by {name} of {group}: {reason}", VsegWarning, stacklevel=3)
    return {(group, image): maps for group, each in outcomes.items() for image, maps in each.maps.items()}


def _interval(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.nanquantile(values, [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2])
    return float(low), float(high)


def _describe_reference(row: ReferenceRow) -> str:
    value = "" if np.isnan(row["bits"]) else f" {row['bits']:.3f} bits on {row['answers']} answers"
    return f"- {row['name']}:{value} ({row['said']})"


def _format_number(value: object, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
