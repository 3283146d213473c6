"""Forecast: what a study would find, by trials and participants; its table, its advice, its files."""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from vseg.planning.assumptions import Assumptions
from vseg.planning.methods import METHOD_NAMES
from vseg.planning.power import (
    ALPHA,
    CONFIDENCE,
    Condition,
    PowerEstimate,
    estimate_power,
    match_assumptions,
    participants_needed,
)
from vseg.sweeps import Table

TARGET_POWER = 0.8
"""The power that advice is about."""


class StudySize(TypedDict):
    """A study by its size: trials of each participant, participants in each condition, and the time it takes."""

    trials: int
    participants: int
    minutes_each: float
    hours: float


@dataclass(frozen=True)
class Forecast:
    """What a study would find, as `forecast` returns it.

    Attributes
    ----------
    assumptions : Assumptions
    simulated : Table
        A row for each simulated participant, method and number of trials: `error` (MAE per entry), `true_entropy`,
        `entropy`, `compared_entropy` (under a flat prior: that by which `compare_groups` compares), `entropy_spread`
        (the posterior's own standard deviation), `entropy_error`.
    participants : tuple of int
        The numbers of participants in each condition that are considered.
    minutes : dict
        Minutes of one participant for each number of trials.
    seed : int
    """

    assumptions: Assumptions
    simulated: Table
    participants: tuple[int, ...]
    minutes: dict[int, float]
    seed: int

    @property
    def methods(self) -> list[str]:
        """The methods that are compared, in order."""
        return list(dict.fromkeys(self.simulated.column("method").tolist()))

    @property
    def trials(self) -> list[int]:
        """The numbers of trials in ascending order."""
        return sorted(self.minutes)

    @property
    def repeats(self) -> int:
        """The number of simulated participants in each condition."""
        return int(self.simulated.column("repeat").max()) + 1

    @cached_property
    def table(self) -> Table:
        """A row for each method, number of trials and number of participants in each condition.

        `error`, `entropy_error` (of one participant, both with their 95 % interval), `entropy_bias` and `difference`
        (of the two conditions' mean entropies, as the method estimates it) do not depend on the number of participants;
        `mean_error`, the root mean square error of a condition's mean entropy, and `power` do.
        """
        return Table(
            row for method in self.methods for trials in self.trials for row in self._rows(method, trials)
        )

    def power_at(self, method: str, trials: int, participants: int) -> PowerEstimate | None:
        """Return how often a study of this size would find the difference; None without a second condition."""
        if self.assumptions.against is None:
            return None
        first, second = self._conditions(method, trials)
        return estimate_power(first, second, participants, seed=self.seed)

    def smallest_study(self, method: str) -> StudySize | None:
        """Return the study with the fewest trials × participants that reaches a power of 0.8, or None."""
        sizes: list[StudySize] = []
        for trials in self.trials:
            if participants := self._participants_needed(self._conditions(method, trials)):
                minutes = self.minutes[trials]
                sizes.append(
                    {
                        "trials": trials,
                        "participants": participants,
                        "minutes_each": minutes,
                        "hours": 2 * participants * minutes / 60,
                    }
                )
        return min(
            sizes, key=lambda size: (size["trials"] * size["participants"], size["hours"]), default=None
        )

    @property
    def participants_if_exact(self) -> int | None:
        """The participants needed in each condition if every participant's entropy were measured exactly."""
        conditions = self._conditions(self.methods[0], self.trials[0])
        return self._participants_needed([each._replace(estimates=each.truths) for each in conditions])

    @property
    def advice(self) -> str:
        """One sentence: the smallest study with each method, or its error without a second condition."""
        return self._describe_errors() if self.assumptions.against is None else self._describe_power()

    def summary(self) -> dict[str, Any]:
        """Return the numbers that `save` writes to summary.json."""
        spreads = {
            name: self.assumptions.spread_at(entropy) for name, entropy in self.assumptions.conditions.items()
        }
        return {
            "guess": {**asdict(self.assumptions), "spreads": spreads},
            "repeats": self.repeats,
            "seed": self.seed,
            "alpha": ALPHA,
            "confidence": CONFIDENCE,
            "wanted_power": TARGET_POWER,
            "smallest": {method: self.smallest_study(method) for method in self.methods},
            "participants_if_exact": self.participants_if_exact,
            "advice": self.advice,
            "table": self.table.rows,
        }

    def save(self, folder: str | Path) -> None:
        """Write table.csv, people.csv and summary.json into a folder."""
        self.table.save(Path(folder) / "table.csv")
        self.simulated.save(Path(folder) / "people.csv")
        text = json.dumps(self.summary(), indent=2, ensure_ascii=False)
        (Path(folder) / "summary.json").write_text(text + "\n", encoding="utf-8")

    def _participants_needed(self, conditions: list[Condition]) -> int | None:
        if len(conditions) < 2:
            return None
        first, second = conditions
        return participants_needed(first, second, TARGET_POWER, self.participants[-1], seed=self.seed)

    def _rows(self, method: str, trials: int) -> list[dict[str, Any]]:
        conditions = self._conditions(method, trials)
        shared = self._shared_columns(method, trials, conditions)
        return [
            {
                **shared,
                "participants": participants,
                "hours": len(conditions) * participants * self.minutes[trials] / 60,
                "mean_error": _mean_error(conditions, participants),
                **self._power_columns(method, trials, participants),
            }
            for participants in self.participants
        ]

    def _shared_columns(self, method: str, trials: int, conditions: list[Condition]) -> dict[str, Any]:
        """Return the columns that do not depend on the number of participants."""
        own = self.simulated.where(method=method, trials=trials)
        columns: dict[str, Any] = {
            "method": method, "trials": trials, "minutes_each": self.minutes[trials],
        }  # fmt: skip
        for column in ("error", "entropy_error"):
            [row] = own.mean_interval(column, seed=self.seed).rows
            columns |= {column: row["mean"], f"{column}_low": row["low"], f"{column}_high": row["high"]}
        columns["entropy_bias"] = float(np.mean(own.column("entropy") - own.column("true_entropy")))
        means = [float(match_assumptions(condition).mean()) for condition in conditions]
        columns["difference"] = means[1] - means[0] if len(means) > 1 else None
        return columns

    def _power_columns(self, method: str, trials: int, participants: int) -> dict[str, float | None]:
        value, low, high = self.power_at(method, trials, participants) or (None, None, None)
        return {"power": value, "power_low": low, "power_high": high}

    def _conditions(self, method: str, trials: int) -> list[Condition]:
        own = self.simulated.where(method=method, trials=trials)
        return [
            Condition(
                own.column("compared_entropy", condition=name),
                own.column("true_entropy", condition=name),
                entropy,
                self.assumptions.spread_at(entropy),
            )
            for name, entropy in self.assumptions.conditions.items()
        ]

    def _describe_power(self) -> str:
        parts = [self._describe_smallest(method) for method in self.methods]
        apart = f"{self.assumptions.entropy:g} from {self.assumptions.against:g} nats"
        if needed := self.participants_if_exact:
            parts.append(
                f"because participants differ, {needed} would be needed even if each one's entropy were known exactly"
            )
        return f"To tell {apart} with power {TARGET_POWER:g}, {'; '.join(parts)}."

    def _describe_smallest(self, method: str) -> str:
        if size := self.smallest_study(method):
            return (
                f"{METHOD_NAMES[method]} needs {size['trials']} trials from each of "
                f"{size['participants']} participants per condition "
                f"({size['minutes_each']:.0f} minutes each, {size['hours']:.1f} hours in all)"
            )
        best = max(self.table.where(method=method).rows, key=lambda row: row["power"])
        return (
            f"{METHOD_NAMES[method]} would need more than was looked at (power {best['power']:.2f} with "
            f"{best['trials']} trials from each of {best['participants']} participants per condition)"
        )

    def _describe_errors(self) -> str:
        most, errors = self.trials[-1], {}
        for row in self.table.rows:
            errors[row["method"], row["trials"]] = row["error"]
        base, *others = self.methods
        parts = [
            f"{METHOD_NAMES[base]} errs by {errors[base, most]:.3f} a probability with {self._describe_trials(most)}"
        ]
        for method in others:
            enough = [trials for trials in self.trials if errors[method, trials] <= errors[base, most]]
            if enough:
                parts.append(
                    f"{METHOD_NAMES[method]} does at least as well with {self._describe_trials(enough[0])}: "
                    f"{errors[method, enough[0]]:.3f}"
                )
            else:
                parts.append(f"{METHOD_NAMES[method]} errs by {errors[method, most]:.3f} there")
        sentence = "; ".join(parts)
        return f"{sentence[0].upper()}{sentence[1:]}."

    def _describe_trials(self, trials: int) -> str:
        return f"{trials} trials ({self.minutes[trials]:.0f} minutes)"


def _mean_error(conditions: list[Condition], participants: int) -> float:
    """Return the root mean square error of a condition's mean: a bias common to all stays, the rest averages out."""
    squares = [
        (estimates.mean() - condition.entropy) ** 2 + estimates.var() / participants
        for condition in conditions
        for estimates in [match_assumptions(condition)]
    ]
    return float(np.sqrt(np.mean(squares)))
