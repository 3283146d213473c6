"""leaderboard.json and its page: who entered, how they scored, and what their models see."""

import base64
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from html import escape
from pathlib import Path
from typing import Any

from vseg._support.atomic_files import write_text
from vseg._support.html_report import STYLE, Drawing
from vseg.errors import InvalidInput

JSON, PAGE, MAPS = "leaderboard.json", "index.html", "maps"
FORMAT = 1


@dataclass(frozen=True)
class LeaderboardEntry:
    """One submission on one dataset. All but `seconds` is the same when it is run again.

    Attributes
    ----------
    file, dataset : str
        SHA-256 of the submission, and of the dataset's answers and images.
    settings : dict
        How it was scored: by, folds, seed, segments.
    scores : dict
        bits per answer with low and high (95 %), normalised with its interval, brier, entropy_r, and the map metrics
        against people's maps.
    slips : list
        γ₀ and γ₁, fitted to all answers.
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
    seconds: float

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it another entry rather than the same once more."""
        return self.name, self.file, self.dataset, self.vseg, json.dumps(self.settings, sort_keys=True)

    @property
    def picture(self) -> str:
        """The name of its picture in the folder maps."""
        return f"{self.dataset[:12]}-{self.file[:12]}-{''.join(filter(str.isalnum, self.name))[:40]}.png"


@dataclass(frozen=True)
class Leaderboard:
    """A folder with leaderboard.json, index.html and the pictures that the page holds.

    Examples
    --------
    >>> Leaderboard("leaderboard").entries()  # doctest: +SKIP
    """

    folder: Path

    def __init__(self, folder: str | Path):
        object.__setattr__(self, "folder", Path(folder))

    def entries(self) -> list[LeaderboardEntry]:
        """All entries in the order in which they came."""
        path = self.folder / JSON
        if not path.is_file():
            return []
        try:
            held: Any = json.loads(path.read_text("utf-8"))
            names = {field.name for field in fields(LeaderboardEntry)}
            return [LeaderboardEntry(**{name: row[name] for name in names}) for row in held["entries"]]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"{path} is not a leaderboard of vseg ({error!r:.80}); choose another folder."
            ) from error

    def add(self, entry: LeaderboardEntry, picture: Drawing) -> LeaderboardEntry | None:
        """Append an entry, or renew it; returns what stood in its place, and writes the page."""
        self.folder.joinpath(MAPS).mkdir(parents=True, exist_ok=True)
        with _alone(self.folder):
            held = self.entries()
            before = next((each for each in held if each.key == entry.key), None)
            held = [entry if each.key == entry.key else each for each in held]
            held += [] if before else [entry]
            picture.savefig(self.folder / MAPS / entry.picture)
            write_text(self.folder / JSON, _json(held))
            write_text(self.folder / PAGE, self._page(held))
        return before

    def _page(self, entries: Sequence[LeaderboardEntry]) -> str:
        datasets = dict.fromkeys(
            (each.dataset, json.dumps(each.settings, sort_keys=True)) for each in entries
        )
        parts = []
        for dataset, settings in datasets:
            own = [
                e
                for e in entries
                if (e.dataset, json.dumps(e.settings, sort_keys=True)) == (dataset, settings)
            ]
            own.sort(key=lambda each: -(each.scores["bits"] or 0.0))
            parts.append(self._section(own))
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>Leaderboard</title>\n<style>{STYLE}{OWN_STYLE}</style>\n</head>\n<body>\n<main>\n"
            f"<h1>Leaderboard</h1>\n{LEAD}\n{''.join(parts)}</main>\n</body>\n</html>\n"
        )

    def _section(self, entries: Sequence[LeaderboardEntry]) -> str:
        first = entries[0]
        span = _span(entries)
        head = "".join(f'<th scope="col"{kind}>{title}</th>' for title, kind in HEADS)
        rows = "\n".join(self._row(place, entry, span) for place, entry in enumerate(entries, 1))
        settings = first.settings
        return (
            f"<h2>{escape(first.dataset_name or 'dataset')}</h2>\n"
            f"<p>{first.answers} answers; {settings['folds']} folds held out by {escape(str(settings['by']))}, seed "
            f"{settings['seed']}; intervals resample {escape(first.resampled)}. "
            f"Digest <code>{escape(first.dataset[:12])}</code>.</p>\n"
            f'<div class="board"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n'
            f"<ul>{''.join(_reference(each) for each in first.references)}</ul>\n"
        )

    def _row(self, place: int, entry: LeaderboardEntry, span: tuple[float, float]) -> str:
        scores = entry.scores
        remark = "" if entry.repeatable else ' <span class="soft">(not the same when asked twice)</span>'
        cells = [
            _number(scores["bits"], 3),
            _bar(scores, entry.references, span),
            *(
                _number(scores.get(name), digits)
                for name, digits in (
                    ("normalised", 2),
                    ("brier", 3),
                    ("entropy_r", 2),
                    ("adjusted_rand_index", 2),
                )
            ),
            f"{entry.seconds:.1f}",
        ]
        numbers = "".join(f'<td class="number">{cell}</td>' for cell in cells)
        return (
            f'<tr><td class="number">{place}</td><th scope="row"><button type="button" class="peek">'
            f"{escape(entry.name)}{self._picture(entry)}</button>{remark}</th>{numbers}"
            f"<td><code>{escape(entry.file[:8])}</code></td><td>{escape(entry.vseg)}</td></tr>"
        )

    def _picture(self, entry: LeaderboardEntry) -> str:
        path = self.folder / MAPS / entry.picture
        if not path.is_file():
            return ""
        data = base64.b64encode(path.read_bytes()).decode("ascii")
        alt = f"Maps of {entry.name} beside those of people"
        return f'<span class="maps"><img src="data:image/png;base64,{data}" alt="{escape(alt)}"></span>'


LEAD = """<p class="lead">Models of segmentation, by how well they foretell people's same/different answers.</p>
<p>Bits are log2 of the probability given to an answer that was held out: 0 at best, −1 for a coin. A submission sees
images alone; two rates of slips are fitted to the other answers, so that certain labels are not charged without end.
“Of the ceiling” is where a model lies between floor (0) and ceiling (1): it may lie outside. “Entropy r” and “Rand” set
its maps against those that people's answers give: correlation of entropies, and adjusted Rand index. The dashed ticks
are the floor and the ceilings. Point at a model, or move to it with the Tab key, to see its maps beside those of
people.</p>"""
NUMBER = ' class="number"'
HEADS = (
    ("#", NUMBER), ("model", ""), ("bits", NUMBER), ("95 % interval", ""), ("of the ceiling", NUMBER),
    ("Brier", NUMBER), ("entropy r", NUMBER), ("Rand", NUMBER), ("seconds", NUMBER), ("file", ""), ("vseg", ""),
)  # fmt: skip
OWN_STYLE = """
main { max-width: 66rem; }
.soft { color: var(--soft); font-weight: 400; font-size: .9rem; }
.board tbody tr:hover, .board tbody tr:focus-within { background: var(--tint); }
.peek { font: inherit; font-weight: 600; color: var(--accent); background: none; border: 0; padding: 0; cursor: help;
  text-align: left; text-decoration: underline dotted; text-underline-offset: .2em; }
.peek:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; }
.maps { display: none; position: fixed; right: 2vw; bottom: 2vh; z-index: 2; padding: .6rem; max-width: 94vw;
  background: #fff; border: 1px solid var(--line); border-radius: 8px; box-shadow: 0 6px 28px rgb(0 0 0 / .28);
  pointer-events: none; }
.maps img { max-height: 62vh; width: auto; }
.peek:hover .maps, .peek:focus .maps { display: block; }
svg { display: block; width: 11rem; height: 1.1rem; }
@media (max-width: 50rem) { .board { overflow-x: auto; } .maps img { max-height: 46vh; } }
@media print { .maps { display: none !important; } }
"""
WIDTH = 176


def _span(entries: Sequence[LeaderboardEntry]) -> tuple[float, float]:
    """From the lowest to the highest of what the bars show, with a little room."""
    ends = [each.scores[name] for each in entries for name in ("low", "high")]
    ends += [each["bits"] for each in entries[0].references if each["name"] in ("floor", "within", "between")]
    known = [float(end) for end in ends if end is not None]
    low, high = min(known), max(known)
    room = 0.04 * (high - low or 1.0)
    return low - room, high + room


def _bar(
    scores: Mapping[str, float | None], references: Sequence[Mapping[str, Any]], span: tuple[float, float]
) -> str:
    """The interval as a line with a dot, and the floor and the ceilings as ticks; drawn in SVG, told in its title."""

    def at(value: float | None) -> float:
        return WIDTH * ((value or 0.0) - span[0]) / (span[1] - span[0])

    low, middle, high = (at(scores[name]) for name in ("low", "bits", "high"))
    ticks = "".join(
        f'<line x1="{at(each["bits"]):.1f}" x2="{at(each["bits"]):.1f}" y1="1" y2="17" stroke="currentColor" '
        'stroke-opacity=".35" stroke-dasharray="2 2"/>'
        for each in references
        if each["name"] in ("floor", "within", "between") and each["bits"] is not None
    )
    bits, lowest, highest = (_number(scores[name], 3) for name in ("bits", "low", "high"))
    said = f"{bits} bits, 95 % interval {lowest} to {highest}"
    return (
        f'<svg viewBox="0 0 {WIDTH} 18" role="img" aria-label="{said}"><title>{said}</title>{ticks}'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="9" y2="9" stroke="var(--accent)" stroke-width="2.5"/>'
        f'<circle cx="{middle:.1f}" cy="9" r="4" fill="var(--accent)"/></svg>'
    )


def _reference(each: Mapping[str, Any]) -> str:
    value = "" if each["bits"] is None else f" {_number(each['bits'], 3)} bits on {each['answers']} answers"
    return f"<li>{escape(each['name'])}:{value} ({escape(each['said'])})</li>"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def _json(entries: Sequence[LeaderboardEntry]) -> str:
    content = {"format": FORMAT, "entries": [asdict(each) for each in entries]}
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Others who add to the same leaderboard wait; where files cannot be locked, they do not."""
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
