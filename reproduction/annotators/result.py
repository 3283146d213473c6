"""Comparison: errors against trials, how many trials reach the paper's error, and the files."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.annotators.methods import METHODS, PAPER
from reproduction.annotators.observers import LAPSE
from reproduction.annotators.trials_needed import LEVEL, Needed, needed
from vseg.sweeps import Table

WHO = {
    "aggregate": "a random annotator at each trial",
    "individual": f"one annotator, {100 * LAPSE:.0f} % lapses",
}


@dataclass(frozen=True)
class Comparison:
    """What `study` found.

    Attributes
    ----------
    errors : Table
        A row a photograph, observer, method and number of trials: `error` is mean |q̂ - q| over all pairs.
    grid : int
    seed : int
    """

    errors: Table
    grid: int
    seed: int

    @property
    def observers(self) -> list[str]:
        """Those asked, in order."""
        return self._distinct("observer")

    @property
    def images(self) -> list[str]:
        """The photographs' names."""
        return self._distinct("image")

    @property
    def trials(self) -> list[int]:
        """The numbers of trials, from the fewest."""
        return sorted(self._distinct("trials"))

    def methods(self, observer: str) -> list[str]:
        """Those that asked this observer, in order."""
        return list(dict.fromkeys(self.errors.column("method", observer=observer).tolist()))

    @cached_property
    def table(self) -> Table:
        """A row an observer, method and number of trials: the mean `error` over photographs, its 95 % interval."""
        found = self.errors.mean_interval(
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
            for row in found
        )

    def goal(self, observer: str) -> float:
        """The mean error that the paper's settings reach with the most trials."""
        return float(self._curves(observer, PAPER)[1][:, -1].mean())

    def needed(self, observer: str, method: str) -> Needed:
        """Trials with which a method reaches that error."""
        return self._needed[observer, method]

    def as_good(self, observer: str, method: str) -> str:
        """The same in words, with the interval."""
        found, fewest, most = self.needed(observer, method), self.trials[0], self.trials[-1]
        if method == PAPER:
            return f"{most}"
        if not np.isfinite(found.trials):
            return "not reached"
        fewer = " or fewer" if found.trials <= fewest else ""
        return f"{found.trials:.0f}{fewer} ({_span(found, most)})"

    def headline(self, observer: str) -> str:
        """One sentence: how few trials the best method takes."""
        best = min(
            (name for name in self.methods(observer) if name != PAPER),
            key=lambda name: (self.needed(observer, name).trials, self._curves(observer, name)[1].mean()),
        )
        most, found = self.trials[-1], self.needed(observer, best)
        what = (
            f"{observer.capitalize()} ({WHO[observer]}): the error of the paper's settings at {most} trials, "
            f"{self.goal(observer):.3f}, is"
        )
        if not np.isfinite(found.trials):
            return f"{what} not reached by another method within {most}."
        return (
            f"{what} reached with {self.as_good(observer, best)} trials by {METHODS[best].title}: "
            f"{most / found.trials:.1f} times fewer."
        )

    def __str__(self) -> str:
        """The table as text: a line a method, a column a number of trials, and the headline."""
        return "\n\n".join(
            "\n".join([*self._lines(observer), "", self.headline(observer)]) for observer in self.observers
        )

    def summary(self) -> dict[str, Any]:
        """The numbers that `python -m reproduction annotators` writes to summary.json."""
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
                            for end, value in self.needed(observer, name)._asdict().items()
                        }
                        for name in self.methods(observer)
                    },
                }
                for observer in self.observers
            },
            "table": self.table.rows,
        }

    def save(self, folder: str | Path) -> None:
        """Write errors.csv (a row a photograph), table.csv, table.txt and summary.json into a folder."""
        self.errors.save(Path(folder) / "errors.csv")
        self.table.save(Path(folder) / "table.csv")
        (Path(folder) / "table.txt").write_text(f"{self}\n", encoding="utf-8")
        text = json.dumps(self.summary(), indent=2, ensure_ascii=False)
        (Path(folder) / "summary.json").write_text(text + "\n", encoding="utf-8")

    @cached_property
    def _needed(self) -> dict[tuple[str, str], Needed]:
        found = {}
        for observer in self.observers:
            goal = self._curves(observer, PAPER)[1][:, -1]
            for name in self.methods(observer):
                found[observer, name] = needed(goal, *self._curves(observer, name), seed=self.seed)
        return found

    def _lines(self, observer: str) -> list[str]:
        width = max(len(METHODS[name].title) for name in self.methods(observer))
        head = "".join(f"{count:>7}" for count in self.trials)
        lines = [
            f"{observer}: error by trials, mean over {len(self.images)} images",
            f"{'':<{width}}{head}   as good",
        ]
        for name in self.methods(observer):
            own = {
                row["trials"]: row["error"] for row in self.table.where(observer=observer, method=name).rows
            }
            cells = "".join(f"{own[count]:>7.3f}" if count in own else f"{'':>7}" for count in self.trials)
            lines.append(f"{METHODS[name].title:<{width}}{cells}   {self.as_good(observer, name)}")
        return lines

    def _curves(self, observer: str, method: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The numbers of trials, and errors (images, trials)."""
        own = self.errors.where(observer=observer, method=method)
        trials = sorted(set(own.column("trials").tolist()))
        errors = [part.column("error").tolist() for part in own.groups(["image"]).values()]
        return np.array(trials, np.float64), np.array(errors, np.float64)

    def _distinct(self, name: str) -> list[Any]:
        return list(dict.fromkeys(self.errors.column(name).tolist()))


def _span(found: Needed, most: int) -> str:
    """The interval in words."""
    ends = [f"{end:.0f}" if np.isfinite(end) else f"more than {most}" for end in (found.low, found.high)]
    return " to ".join(ends)
