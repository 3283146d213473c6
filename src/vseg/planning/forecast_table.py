"""Forecast: what a study would find, against trials and people; its table, its advice, its files."""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vseg.planning.assumptions import Guess
from vseg.planning.methods import NAMES
from vseg.planning.power import ALPHA, LEVEL, Condition, Power, as_guessed, needed, power
from vseg.sweeps import Table

WANTED = 0.8
"""The power that advice is about."""


@dataclass(frozen=True)
class Forecast:
    """What `forecast` found.

    Attributes
    ----------
    guess : Guess
    people : Table
        A row a simulated person, method and number of trials: `error` (MAE per entry), `true_entropy`, `entropy`,
        `entropy_spread` (the posterior's own standard deviation), `entropy_error`.
    participants : tuple of int
        How many people in each condition are considered.
    minutes : dict
        What a person takes for each number of trials.
    seed : int
    """

    guess: Guess
    people: Table
    participants: tuple[int, ...]
    minutes: dict[int, float]
    seed: int

    @property
    def methods(self) -> list[str]:
        """Those compared, in order."""
        return list(dict.fromkeys(self.people.column("method").tolist()))

    @property
    def trials(self) -> list[int]:
        """The numbers of trials, from the fewest."""
        return sorted(self.minutes)

    @property
    def repeats(self) -> int:
        """Simulated people in each condition."""
        return int(self.people.column("repeat").max()) + 1

    @cached_property
    def table(self) -> Table:
        """A row a method, number of trials and number of participants in each condition.

        `error`, `entropy_error` (of one person, both with their 95 % interval), `entropy_bias` and `difference` (of the
        two conditions' mean entropies, as the method sees it) do not depend on the number of participants;
        `mean_error`, the root mean square error of a condition's mean entropy, and `power` do.
        """
        return Table(
            row for method in self.methods for trials in self.trials for row in self._rows(method, trials)
        )

    def power_at(self, method: str, trials: int, participants: int) -> Power | None:
        """How often a study of that size would find the difference; None without a second condition."""
        if self.guess.against is None:
            return None
        first, second = self._conditions(method, trials)
        return power(first, second, participants, seed=self.seed)

    def smallest(self, method: str) -> dict[str, Any] | None:
        """The study of the fewest trials × participants with a power of 0.8, or None within what was looked at."""
        sizes = []
        for trials in self.trials:
            if people := self._needed(self._conditions(method, trials)):
                hours = 2 * people * self.minutes[trials] / 60
                sizes.append(
                    {
                        "trials": trials,
                        "participants": people,
                        "minutes_each": self.minutes[trials],
                        "hours": hours,
                    }
                )
        return min(
            sizes, key=lambda size: (size["trials"] * size["participants"], size["hours"]), default=None
        )

    @property
    def participants_if_exact(self) -> int | None:
        """How many people a condition it would take if everyone's entropy were known exactly."""
        conditions = self._conditions(self.methods[0], self.trials[0])
        return self._needed([each._replace(estimates=each.truths) for each in conditions])

    def _needed(self, conditions: list[Condition]) -> int | None:
        if len(conditions) < 2:
            return None
        first, second = conditions
        return needed(first, second, WANTED, self.participants[-1], seed=self.seed)

    @property
    def advice(self) -> str:
        """One sentence: the smallest study by each method."""
        said = self._about_error if self.guess.against is None else self._about_power
        return said()

    def summary(self) -> dict[str, Any]:
        """The numbers that `vseg plan` writes to summary.json."""
        return {
            "guess": {
                **asdict(self.guess),
                "spreads": {name: self.guess.spread_at(at) for name, at in self.guess.conditions.items()},
            },
            "repeats": self.repeats,
            "seed": self.seed,
            "alpha": ALPHA,
            "confidence": LEVEL,
            "wanted_power": WANTED,
            "smallest": {method: self.smallest(method) for method in self.methods},
            "participants_if_exact": self.participants_if_exact,
            "advice": self.advice,
            "table": self.table.rows,
        }

    def save(self, folder: str | Path) -> None:
        """Write table.csv, people.csv and summary.json into a folder."""
        self.table.save(Path(folder) / "table.csv")
        self.people.save(Path(folder) / "people.csv")
        text = json.dumps(self.summary(), indent=2, ensure_ascii=False)
        (Path(folder) / "summary.json").write_text(text + "\n", encoding="utf-8")

    def _rows(self, method: str, trials: int) -> list[dict[str, Any]]:
        conditions = self._conditions(method, trials)
        each = self._of_a_person(method, trials, conditions)
        return [
            {
                **each,
                "participants": people,
                "hours": len(conditions) * people * self.minutes[trials] / 60,
                "mean_error": _mean_error(conditions, people),
                **self._powers(method, trials, people),
            }
            for people in self.participants
        ]

    def _of_a_person(self, method: str, trials: int, conditions: list[Condition]) -> dict[str, Any]:
        """What does not depend on the number of participants."""
        own = self.people.where(method=method, trials=trials)
        each: dict[str, Any] = {"method": method, "trials": trials, "minutes_each": self.minutes[trials]}
        for column in ("error", "entropy_error"):
            [found] = own.mean_interval(column, seed=self.seed).rows
            each |= {column: found["mean"], f"{column}_low": found["low"], f"{column}_high": found["high"]}
        each["entropy_bias"] = float(np.mean(own.column("entropy") - own.column("true_entropy")))
        means = [float(as_guessed(condition).mean()) for condition in conditions]
        each["difference"] = means[1] - means[0] if len(means) > 1 else None
        return each

    def _powers(self, method: str, trials: int, people: int) -> dict[str, float | None]:
        value, low, high = self.power_at(method, trials, people) or (None, None, None)
        return {"power": value, "power_low": low, "power_high": high}

    def _conditions(self, method: str, trials: int) -> list[Condition]:
        own = self.people.where(method=method, trials=trials)
        return [
            Condition(
                own.column("entropy", condition=name),
                own.column("true_entropy", condition=name),
                entropy,
                self.guess.spread_at(entropy),
            )
            for name, entropy in self.guess.conditions.items()
        ]

    def _about_power(self) -> str:
        parts = [self._reaching(method) for method in self.methods]
        apart = f"{self.guess.entropy:g} from {self.guess.against:g} nats"
        least = self.participants_if_exact
        if least:
            parts.append(
                f"since people differ, {least} people would be needed even if each were known exactly"
            )
        return f"To tell {apart} with power {WANTED:g}, {'; '.join(parts)}."

    def _reaching(self, method: str) -> str:
        if row := self.smallest(method):
            return (
                f"{NAMES[method]} needs {row['trials']} trials from each of {row['participants']} people a condition "
                f"({row['minutes_each']:.0f} minutes each, {row['hours']:.1f} hours in all)"
            )
        best = max(self.table.where(method=method).rows, key=lambda row: row["power"])
        return (
            f"{NAMES[method]} would need more than was looked at (power {best['power']:.2f} with {best['trials']} "
            f"trials from each of {best['participants']} people)"
        )

    def _about_error(self) -> str:
        most, errors = self.trials[-1], {}
        for row in self.table.rows:
            errors[row["method"], row["trials"]] = row["error"]
        base, *others = self.methods
        parts = [f"{NAMES[base]} errs by {errors[base, most]:.3f} a probability with {self._asked(most)}"]
        for method in others:
            enough = [trials for trials in self.trials if errors[method, trials] <= errors[base, most]]
            if enough:
                reached = errors[method, enough[0]]
                parts.append(
                    f"{NAMES[method]} does at least as well with {self._asked(enough[0])}: {reached:.3f}"
                )
            else:
                parts.append(f"{NAMES[method]} errs by {errors[method, most]:.3f} there")
        said = "; ".join(parts)
        return f"{said[0].upper()}{said[1:]}."

    def _asked(self, trials: int) -> str:
        return f"{trials} trials ({self.minutes[trials]:.0f} minutes)"


def _mean_error(conditions: list[Condition], people: int) -> float:
    """Root mean square error of a condition's mean: the bias that all share stays, the rest goes with more people."""
    squares = [
        (estimates.mean() - condition.entropy) ** 2 + estimates.var() / people
        for condition in conditions
        for estimates in [as_guessed(condition)]
    ]
    return float(np.sqrt(np.mean(squares)))
