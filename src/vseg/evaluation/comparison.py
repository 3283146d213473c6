"""What a comparison found: a table with intervals, paired differences, and the words around them."""

import csv
import io
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg.data.maps import Maps
from vseg.data.responses import Responses
from vseg.evaluation.ceilings import Reference, mean_bits
from vseg.evaluation.fit_jobs import plain
from vseg.evaluation.human_maps import MAP_SCORES
from vseg.evaluation.resampling import Resamples, resamples
from vseg.evaluation.scores import Calibration, bits, brier, calibration

LEVEL = 0.95
COLUMNS = (
    "model", "bits", "low", "high", "normalised", "normalised_low", "normalised_high", "brier", "entropy_r",
    *MAP_SCORES,
)  # fmt: skip
# In a table to read, after bits: heading, column, digits.
SHOWN = {
    "of the ceiling": ("normalised", 2),
    "Brier": ("brier", 3),
    "entropy r": ("entropy_r", 2),
    "map error": ("mae", 2),
    "labels": ("label_accuracy", 2),
    "Rand": ("adjusted_rand_index", 2),
}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Predictions of answers that were held out, and everything that follows from them.

    Attributes
    ----------
    predictions : dict
        P(same) of every answer, by model.
    references : list of Reference
        The floor and the ceilings, in bits on the answers that they can predict.
    failures : dict
        Why a model could not be scored, by model.
    maps : dict
        By model, then by (group, image): maps fitted to all answers, of models that have maps.
    people : dict
        By (group, image): the maps that people's answers give.
    agreement : dict
        By model: `entropy_r` and the map metrics of its maps against people's, None without maps.
    """

    responses: Responses
    predictions: dict[str, NDArray[np.float64]]
    references: list[Reference]
    failures: dict[str, str]
    maps: dict[str, dict[tuple[str, str], Maps]]
    people: dict[tuple[str, str], Maps]
    agreement: dict[str, dict[str, float | None]]
    by: str
    per: str
    folds: int
    seed: int
    draws: int = 2000

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.predictions) or 'nothing'} by {self.by}, {self.folds} folds>"

    @cached_property
    def resamples(self) -> Resamples:
        """The bootstrap that all intervals and differences share."""
        return resamples(self.responses, self.draws, seed=self.seed)

    @cached_property
    def scores(self) -> dict[str, NDArray[np.float64]]:
        """Bits of every answer, by model and reference."""
        said = {**{each.name: each.q for each in self.references}, **self.predictions}
        return {
            name: np.where(np.isfinite(q), bits(q, self.responses.same), np.nan) for name, q in said.items()
        }

    @cached_property
    def ceiling(self) -> str | None:
        """The ceiling that scores are set against: within or between people, whichever predicts better.

        With few repeats the same person's other answers are a poor guide, and many other people a better one.
        """
        there = [each for each in self.references if each.name in ("within", "between") and each.available]
        return max(there, key=lambda each: mean_bits(each, self.responses)).name if there else None

    def table(self) -> list[dict[str, Any]]:
        """A row a model, best first: bits per answer with an interval, raw and between floor and ceiling."""
        rows = [self._row(name) for name in self.predictions]
        return sorted(rows, key=lambda row: -row["bits"])

    def differences(self) -> list[dict[str, Any]]:
        """Each pair of models: by how many bits per answer the first is better, and how probably it is."""
        order = [row["model"] for row in self.table()]
        found = []
        for place, better in enumerate(order):
            for worse in order[place + 1 :]:
                apart = self.scores[better] - self.scores[worse]
                drawn = self.resamples.means(apart)
                low, high = _interval(drawn)
                wins = float(np.mean(drawn > 0) + 0.5 * np.mean(drawn == 0))
                found.append(
                    {"better": better, "worse": worse, "bits": float(np.mean(apart)), "low": low, "high": high,
                     "probability": wins}
                )  # fmt: skip
        return found

    def calibration(self, model: str, bins: int = 10) -> Calibration:
        """Whether 70 % means 70 %, for one model."""
        return calibration(self.predictions[model], self.responses.same, bins)

    def ceilings(self) -> list[dict[str, Any]]:
        """The floor and the ceilings: bits on the answers they predict, how many those are, and what they are."""
        return [
            {"name": each.name, "bits": mean_bits(each, self.responses),
             "answers": int(np.isfinite(each.q).sum()), "said": each.said}
            for each in self.references
        ]  # fmt: skip

    def markdown(self) -> str:
        """The whole as a text to read."""
        lines = [
            f"| model | bits per answer (95 %) | {' | '.join(SHOWN)} |",
            f"|{'---|' * (2 + len(SHOWN))}",
        ]
        lines += [
            f"| {row['model']} | {row['bits']:.3f} ({row['low']:.3f} to {row['high']:.3f}) | "
            f"{' | '.join(_number(row[name], digits) for name, digits in SHOWN.values())} |"
            for row in self.table()
        ]
        lines += ["", *(self._said(each) for each in self.ceilings()), ""]
        lines += [f"- {name} was not scored: {why}" for name, why in self.failures.items()]
        lines += [""] if self.failures else []
        lines.append(self._explained())
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """The table as CSV."""
        file = io.StringIO()
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.table())
        return file.getvalue()

    def json(self) -> str:
        """Everything but the predictions, as JSON."""
        found = {
            "models": self.table(), "differences": self.differences(), "references": self.ceilings(),
            "failures": self.failures, "by": self.by, "per": self.per, "folds": self.folds, "seed": self.seed,
            "answers": len(self.responses), "resampled": self.resamples.what,
            "calibration": {name: vars(self.calibration(name)) for name in self.predictions},
        }  # fmt: skip
        return json.dumps(plain(found), indent=2) + "\n"

    def _explained(self) -> str:
        return (
            f"{len(self.responses)} answers, {self.folds} folds held out by {self.by}, fitted per {self.per}, "
            f"seed {self.seed}; intervals resample {self.resamples.what}. Bits are log2 of the probability given to an "
            "answer: 0 at best, -1 for a coin. 'Of the ceiling' is where a model lies between floor and "
            f"{self.ceiling or 'a ceiling, of which there is none here'}. The last four columns set a model's maps "
            "against those that people's answers give: correlation of entropies, mean error (0 to 2), share of "
            "locations with the same label, adjusted Rand index."
        )

    def _row(self, name: str) -> dict[str, Any]:
        scores = self.scores[name]
        low, high = _interval(self.resamples.means(scores))
        return {
            "model": name, "bits": float(np.mean(scores)), "low": low, "high": high, **self._normalised(name),
            "brier": float(np.mean(brier(self.predictions[name], self.responses.same))), **self.agreement[name],
        }  # fmt: skip

    def _normalised(self, name: str) -> dict[str, float | None]:
        """(model - floor) / (ceiling - floor) on the answers that the ceiling predicts; never clipped."""
        columns = ("normalised", "normalised_low", "normalised_high")
        if self.ceiling is None:
            return dict.fromkeys(columns)
        there = np.isfinite(self.scores[self.ceiling])
        own, top, bottom = (
            np.where(there, self.scores[each], np.nan) for each in (name, self.ceiling, "floor")
        )
        if np.nanmean(top) <= np.nanmean(bottom):
            return dict.fromkeys(columns)
        drawn = self.resamples.means(own - bottom) / self.resamples.means(top - bottom)
        value = float(np.nanmean(own - bottom) / np.nanmean(top - bottom))
        return dict(zip(columns, (value, *_interval(drawn)), strict=True))

    def _said(self, reference: dict[str, Any]) -> str:
        value = (
            ""
            if np.isnan(reference["bits"])
            else f" {reference['bits']:.3f} bits on {reference['answers']} answers"
        )
        return f"- {reference['name']}:{value} ({reference['said']})"


def _interval(drawn: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.nanquantile(drawn, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return float(low), float(high)


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
