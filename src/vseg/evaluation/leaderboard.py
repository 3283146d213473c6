"""A leaderboard: the stored scores of models on a dataset (leaderboard.json), and their page (index.html)."""

import base64
import contextlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from itertools import count
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from vseg import __version__
from vseg._support.atomic_files import write_text
from vseg._support.html_report import Drawing, environment, style
from vseg.errors import InvalidInput
from vseg.evaluation.fits import to_json_value
from vseg.evaluation.model_comparison import COLUMNS, ModelComparison
from vseg.models.task import Task

JSON_FILE, PAGE_FILE, PICTURE_FOLDER = "leaderboard.json", "index.html", "maps"
FORMAT = 1
BAR_WIDTH = 176  # of the interval's drawing
MAX_TICKS = 5
ROUNDING = 1e-9  # log10(10.0**-3) may lie just below -3


@dataclass(frozen=True)
class LeaderboardEntry:
    """The scores of one model on one dataset. Everything except `seconds` is the same when it is scored again.

    Attributes
    ----------
    name : str
        The model's name.
    file, dataset : str
        SHA-256 of the submitted file, empty for a model of vseg, and of the dataset's answers and images.
    dataset_name : str
        The name of the study.
    vseg : str
        The version of vseg.
    settings : dict
        How it was scored: by, folds, seed, segments; per, unless "all"; and features, if given.
    scores : dict
        bits per answer with low and high (95 %), normalised with its interval, brier, entropy_r, and the map metrics
        against human maps.
    slips : list
        The lapse rates γ₀ and γ₁ of a submission, fitted to all answers.
    references : list
        The floor and the ceilings.
    answers : int
        Number of answers.
    resampled : str
        What the intervals resample.
    repeatable : bool
        Whether a second call of a submission gave the same maps.
    seconds : float or None
        How long a submission took for all images.
    """

    name: str
    file: str
    dataset: str
    dataset_name: str
    vseg: str
    settings: dict[str, Any]
    scores: dict[str, float | None]
    slips: list[float]
    references: list[dict[str, Any]]
    answers: int
    resampled: str
    repeatable: bool
    seconds: float | None

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies an entry: one with the same key is replaced."""
        return self.name, self.file, self.dataset, self.vseg, json.dumps(self.settings, sort_keys=True)

    @property
    def section(self) -> tuple[str, str]:
        """The dataset and the settings; entries that share them are ranked in one table."""
        return self.dataset, json.dumps(self.settings, sort_keys=True)

    @property
    def picture(self) -> str:
        """The file name of its picture in the folder maps."""
        return f"{self.dataset[:12]}-{self.file[:12]}-{''.join(filter(str.isalnum, self.name))[:40]}.png"


def create_entry(
    comparison: ModelComparison,
    model: str,
    task: Task,
    *,
    name: str | None = None,
    dataset_name: str = "",
    features: str | None = None,
    file: str = "",
    lapses: Sequence[float] = (),
    repeatable: bool = True,
    seconds: float | None = None,
) -> LeaderboardEntry:
    """Create the entry of one model of a comparison.

    Parameters
    ----------
    comparison : ModelComparison
        The scores.
    model : str
        The model's name in the comparison.
    task : Task
        The task that was scored.
    name : str, optional
        The name on the leaderboard; by default `model`.
    dataset_name, features, file, lapses, repeatable, seconds
        As in `LeaderboardEntry`.
    """
    row = next(row for row in comparison.table() if row["model"] == model)
    settings: dict[str, Any] = {
        "by": comparison.by,
        "folds": comparison.folds,
        "seed": comparison.seed,
        "segments": task.segments,
    }
    if comparison.per != "all":
        settings["per"] = comparison.per
    if features is not None:
        settings["features"] = features
    return LeaderboardEntry(
        name=name or model,
        file=file,
        dataset=task.digest,
        dataset_name=dataset_name,
        vseg=__version__,
        settings=settings,
        scores={column: row[column] for column in COLUMNS[1:]},  # type: ignore[literal-required]
        slips=list(lapses),
        references=to_json_value(comparison.ceilings()),
        answers=len(task.responses),
        resampled=comparison.bootstrap_weights.units,
        repeatable=repeatable,
        seconds=None if seconds is None else round(seconds, 2),
    )


@dataclass(frozen=True)
class Leaderboard:
    """A folder with leaderboard.json, index.html and the pictures in the page.

    Parameters
    ----------
    folder : path
        The folder; it is created with the first entry.

    Examples
    --------
    >>> Leaderboard("leaderboard").entries()  # doctest: +SKIP
    """

    folder: Path

    def __init__(self, folder: str | Path):
        object.__setattr__(self, "folder", Path(folder))

    def entries(self) -> list[LeaderboardEntry]:
        """Return all entries in the order in which they were added."""
        path = self.folder / JSON_FILE
        if not path.is_file():
            return []
        try:
            content: Any = json.loads(path.read_text("utf-8"))
            names = {field.name for field in fields(LeaderboardEntry)}
            return [LeaderboardEntry(**{name: row[name] for name in names}) for row in content["entries"]]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"{path} is not a leaderboard of vseg ({error!r:.80}); choose another folder."
            ) from error

    def add(self, entry: LeaderboardEntry, picture: Drawing | None = None) -> LeaderboardEntry | None:
        """Append an entry or replace the one with its key, which is returned; write the page."""
        self.folder.joinpath(PICTURE_FOLDER).mkdir(parents=True, exist_ok=True)
        with _lock(self.folder):
            entries = self.entries()
            previous = next((each for each in entries if each.key == entry.key), None)
            entries = [entry if each.key == entry.key else each for each in entries]
            entries += [] if previous else [entry]
            if picture is not None:
                picture.savefig(self.folder / PICTURE_FOLDER / entry.picture)
            write_text(self.folder / JSON_FILE, _to_json(entries))
            write_text(self.folder / PAGE_FILE, self.render_page(entries))
        return previous

    def render_page(self, entries: Sequence[LeaderboardEntry]) -> str:
        """Return the page of these entries: a table for each dataset and settings, best models first."""
        template = environment(Path(__file__).parent).get_template("leaderboard.html")
        return template.render(
            style=style(),
            sections=_make_sections(entries),
            pictures=self._read_pictures(entries),
            format_number=_format_number,
        )

    def _read_pictures(self, entries: Sequence[LeaderboardEntry]) -> dict[str, str]:
        """Return the pictures by file name, as base64."""
        paths = {entry.picture: self.folder / PICTURE_FOLDER / entry.picture for entry in entries}
        return {
            name: base64.b64encode(path.read_bytes()).decode("ascii")
            for name, path in paths.items()
            if path.is_file()
        }


@dataclass(frozen=True)
class _Section:
    """The entries of one dataset and settings, best first, and the scale of their interval bars."""

    entries: Sequence[LeaderboardEntry]
    low: float
    high: float
    bar_width: int = BAR_WIDTH

    def x(self, value: float | None) -> str:
        """Return the horizontal position of a score in a bar."""
        return f"{self.bar_width * ((value or 0.0) - self.low) / (self.high - self.low):.1f}"

    @property
    def ticks(self) -> list[tuple[str, str]]:
        """The position and the text of two to five round numbers on the scale."""
        span = self.high - self.low
        step = next(size for size in _round_steps(span / 100) if span / size < MAX_TICKS)
        digits = max(0, -floor(log10(step) + ROUNDING))
        first, last = ceil(self.low / step), floor(self.high / step)
        return [(self.x(at * step), _format_number(at * step + 0.0, digits)) for at in range(first, last + 1)]


def _round_steps(smallest: float) -> Iterator[float]:
    """Yield 1, 2 and 5 times the powers of ten, from about the smallest."""
    for power in count(floor(log10(smallest))):
        for factor in (1, 2, 5):
            yield factor * 10.0**power


def _make_sections(entries: Sequence[LeaderboardEntry]) -> list[_Section]:
    sections: dict[tuple[str, str], list[LeaderboardEntry]] = {}
    for entry in entries:
        sections.setdefault(entry.section, []).append(entry)
    return [_make_section(each) for each in sections.values()]


def _make_section(entries: Sequence[LeaderboardEntry]) -> _Section:
    """Rank the entries and set the scale from the lowest to the highest value drawn, with a margin."""
    ends = [each.scores[name] for each in entries for name in ("low", "high")]
    ends += [each["bits"] for each in entries[0].references if each["name"] in ("floor", "within", "between")]
    values = [float(end) for end in ends if end is not None]
    low, high = min(values), max(values)
    margin = 0.04 * (high - low or 1.0)
    ranked = sorted(entries, key=lambda each: -(each.scores["bits"] or 0.0))
    return _Section(ranked, low - margin, high + margin)


def _format_number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def _to_json(entries: Sequence[LeaderboardEntry]) -> str:
    content = {"format": FORMAT, "entries": [asdict(each) for each in entries]}
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Make other processes that add entries wait; without effect on systems without file locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(folder / ".lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)
