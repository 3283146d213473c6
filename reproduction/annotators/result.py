"""StudyResult: errors over the number of trials, the trials that reach the paper's error, and the output files."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.annotators.methods import METHODS, PAPER
from reproduction.annotators.observers import LAPSE
from reproduction.annotators.trials_needed import LEVEL, TrialsNeeded, estimate_trials_needed
from vseg.sweeps import Table

OBSERVER_LABELS = {
    "aggregate": "a random annotator at each trial",
    "individual": f"one annotator, {100 * LAPSE:.0f} % lapses",
}


@dataclass(frozen=True)
class StudyResult:
    """The result of `run_study`.

    Attributes
    ----------
    errors : Table
        A row per photograph, observer, method and number of trials; `error` is the mean |q̂ - q| over all pairs.
    grid : int
        Locations along a side.
    seed : int
        The random seed of the study.
    """

    errors: Table
    grid: int
    seed: int

    @property
    def observers(self) -> list[str]:
        """The observers, in order."""
        return self._distinct("observer")

    @property
    def images(self) -> list[str]:
        """The photographs' names."""
        return self._distinct("image")

    @property
    def trials(self) -> list[int]:
        """The numbers of trials in increasing order."""
        return sorted(self._distinct("trials"))

    def methods(self, observer: str) -> list[str]:
        """Return the methods that were run on this observer, in order."""
        return list(dict.fromkeys(self.errors.column("method", observer=observer).tolist()))

    @cached_property
    def table(self) -> Table:
        """A row per observer, method and number of trials: the mean `error` over photographs and its 95 % interval."""
        rows = self.errors.mean_interval(
            "error", ["observer", "method", "trials"], LEVEL, seed=self.seed
        ).rows
        return Table(
            {
                **{name: row[name] for name in ("observer", "method", "trials")},
                "error": row["mean"],
                "low": row["low"],
                "high": row["high"],
                "images": row["count"],
            }
            for row in rows
        )

    def goal(self, observer: str) -> float:
        """Return the mean error of the paper's settings at the largest number of trials."""
        return float(self._error_curves(observer, PAPER)[1][:, -1].mean())

    def trials_needed(self, observer: str, method: str) -> TrialsNeeded:
        """Return the number of trials with which a method reaches the goal."""
        return self._trials_needed[observer, method]

    def format_trials_needed(self, observer: str, method: str) -> str:
        """Format the number of trials that a method needs, with its interval."""
        needed, fewest, most = self.trials_needed(observer, method), self.trials[0], self.trials[-1]
        if method == PAPER:
            return f"{most}"
        if not np.isfinite(needed.trials):
            return "not reached"
        fewer = " or fewer" if needed.trials <= fewest else ""
        return f"{needed.trials:.0f}{fewer} ({_format_range(needed, most)})"

    def headline(self, observer: str) -> str:
        """Return one sentence: how many trials the best method needs, compared with the paper's settings."""
        best = min(
            (name for name in self.methods(observer) if name != PAPER),
            key=lambda name: (
                self.trials_needed(observer, name).trials,
                self._error_curves(observer, name)[1].mean(),
            ),
        )
        most, needed = self.trials[-1], self.trials_needed(observer, best)
        start = (
            f"{observer.capitalize()} ({OBSERVER_LABELS[observer]}): the error of the paper's settings at "
            f"{most} trials, "
            f"{self.goal(observer):.3f}, is"
        )
        if not np.isfinite(needed.trials):
            return f"{start} not reached by another method within {most}."
        return (
            f"{start} reached with {self.format_trials_needed(observer, best)} trials by {METHODS[best].title}: "
            f"{most / needed.trials:.1f} times fewer."
        )

    def __str__(self) -> str:
        """Format a table for each observer (rows: methods, columns: numbers of trials) and its headline."""
        return "\n\n".join(
            "\n".join([*self._table_lines(observer), "", self.headline(observer)])
            for observer in self.observers
        )

    def summary(self) -> dict[str, Any]:
        """Return the content of summary.json."""
        return {
            "images": self.images,
            "grid": self.grid,
            "trials": self.trials,
            "seed": self.seed,
            "confidence": LEVEL,
            "observers": {
                observer: {
                    "headline": self.headline(observer),
                    "goal": self.goal(observer),
                    "needed": {
                        name: {
                            end: value if np.isfinite(value) else None
                            for end, value in self.trials_needed(observer, name)._asdict().items()
                        }
                        for name in self.methods(observer)
                    },
                }
                for observer in self.observers
            },
            "table": self.table.rows,
        }

    def save(self, folder: str | Path) -> None:
        """Write errors.csv (a row per photograph), table.csv, table.txt and summary.json into a folder."""
        self.errors.save(Path(folder) / "errors.csv")
        self.table.save(Path(folder) / "table.csv")
        (Path(folder) / "table.txt").write_text(f"{self}\n", encoding="utf-8")
        text = json.dumps(self.summary(), indent=2, ensure_ascii=False)
        (Path(folder) / "summary.json").write_text(text + "\n", encoding="utf-8")

    @cached_property
    def _trials_needed(self) -> dict[tuple[str, str], TrialsNeeded]:
        needed = {}
        for observer in self.observers:
            goal = self._error_curves(observer, PAPER)[1][:, -1]
            for name in self.methods(observer):
                needed[observer, name] = estimate_trials_needed(
                    goal, *self._error_curves(observer, name), seed=self.seed
                )
        return needed

    def _table_lines(self, observer: str) -> list[str]:
        width = max(len(METHODS[name].title) for name in self.methods(observer))
        head = "".join(f"{count:>7}" for count in self.trials)
        lines = [
            f"{observer}: error by trials, mean over {len(self.images)} images",
            f"{'':<{width}}{head}   as good",
        ]
        for name in self.methods(observer):
            errors = {
                row["trials"]: row["error"] for row in self.table.where(observer=observer, method=name).rows
            }
            cells = "".join(
                f"{errors[count]:>7.3f}" if count in errors else f"{'':>7}" for count in self.trials
            )
            lines.append(
                f"{METHODS[name].title:<{width}}{cells}   {self.format_trials_needed(observer, name)}"
            )
        return lines

    def _error_curves(self, observer: str, method: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the numbers of trials and the errors (images, trials)."""
        rows = self.errors.where(observer=observer, method=method)
        trials = sorted(set(rows.column("trials").tolist()))
        errors = [part.column("error").tolist() for part in rows.groups(["image"]).values()]
        return np.array(trials, np.float64), np.array(errors, np.float64)

    def _distinct(self, name: str) -> list[Any]:
        return list(dict.fromkeys(self.errors.column(name).tolist()))


def _format_range(needed: TrialsNeeded, most: int) -> str:
    """Format the interval."""
    ends = [f"{end:.0f}" if np.isfinite(end) else f"more than {most}" for end in (needed.low, needed.high)]
    return " to ".join(ends)
