"""The page: a table of all claims, then each figure with its claims; one HTML file beside its pictures."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduction.paper import FIGURES
from reproduction.paper.claims import NEAR, NOT, ONLY_IF, REPRODUCED
from vseg._support.atomic_files import write_text
from vseg._support.html_report import environment, style
from vseg.reconstruction.cross_validation import FOLDS, STRENGTHS

PAGE, TABLE = "index.html", "claims.md"
FORMAT = 2  # of claims.json
PROVISIONAL = 20  # resamples below which a verdict may well change
DAY = 24 * 3600.0


def write(folder: Path) -> Path:
    """Write index.html and claims.md of all figures that are finished in this folder."""
    found = finished(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in ((PAGE, html(found, folder)), (TABLE, markdown(found))):
        write_text(folder / name, text)
    return folder / PAGE


def finished(folder: Path, names: Iterable[str] = tuple(FIGURES)) -> list[dict[str, Any]]:
    """What claims.json says of each figure that is finished in this folder."""
    drawn = (folder / name for name in names if (folder / name / "figure.png").is_file())
    found = (_content(each / "claims.json") for each in drawn)
    return [one for one in found if one.get("format") == FORMAT]


def _content(path: Path) -> dict[str, Any]:
    """Nothing where there is no such file, or one that is not ours: `running` speaks of it when it is in the way."""
    try:
        held: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}


def html(figures: Sequence[Mapping[str, Any]], folder: Path) -> str:
    """Return the page."""
    verdicts = [claim["verdict"] for figure in figures for claim in figure["claims"]]
    return (
        environment(Path(__file__).parent)
        .get_template("page.html")
        .render(
            title="The paper, reproduced",
            style=style(),
            near=f"{NEAR:g}",
            columns=COLUMNS,
            signs=SIGNS,
            provisional=PROVISIONAL,
            figures=figures,
            verdicts=verdicts,
            tally=", ".join(f"{verdicts.count(verdict)} {label}" for verdict, label in LABELS.items()),
            cost=cost_in_words(figures),
            sizes={figure["name"]: _shown_px(folder / figure["name"] / "figure.png") for figure in figures},
            made=_made(figures),
        )
    )


def markdown(figures: Sequence[Mapping[str, Any]]) -> str:
    """The claims as a table in Markdown."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for one in figures:
        for claim in one["claims"]:
            where = one["where"] + (f", {one['fewest']} resamples" if one["fewest"] < PROVISIONAL else "")
            verdict = f"**{claim['verdict']}** {claim['why']}".strip()
            cells = (where, claim["claim"], claim["printed"], claim["paper"], claim["ours"], verdict)
            lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines) + f"\n\n{cost_in_words(figures)}\n\n{_made(figures)}\n"


def cost_in_words(figures: Sequence[Mapping[str, Any]]) -> str:
    """How long the paper's implementation would have taken for the same fits; empty where nothing was timed."""
    timed = [one for one in figures if one.get("pytorch")]
    if not timed:
        return ""
    fits, theirs, compiled, in_full = (
        sum(one["pytorch"][name] for one in timed) for name in ("fits", "seconds", "compiled", "in_full")
    )
    here = sum(one["worked"] for one in timed)
    return (
        f"The {fits:,} fits of Algorithm 1 in {len(timed)} of these figures would take {spelled(theirs)} of one core "
        f"in PyTorch, estimated from one fit of each kind ({spelled(in_full)} if every setting had all resamples); "
        f"compiled they take {spelled(compiled)} here, {theirs / max(compiled, 1e-9):.0f} times less. With vseg's own "
        f"estimators, which choose λ by {FOLDS * len(STRENGTHS)} more fits each, these figures took {spelled(here)} of "
        "work in all."
    )


def spelled(seconds: float) -> str:
    """A time for a reader.

    Examples
    --------
    >>> spelled(42), spelled(5400), spelled(200_000)
    ('42 s', '1.5 hours', '2.3 days')
    """
    for unit, name in ((DAY, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.2g} s"


def _shown_px(path: Path) -> tuple[int, int]:
    """Figures have twice the pixels they are shown at, for sharp screens."""
    from PIL import Image

    with Image.open(path) as picture:
        return picture.width // 2, picture.height // 2


def _made(figures: Sequence[Mapping[str, Any]]) -> str:
    versions = sorted({one["version"] for one in figures})
    seeds = sorted({one["seed"] for one in figures})
    made = f"vseg {', '.join(versions)}, seed {', '.join(map(str, seeds))}"
    return f"Made by python -m reproduction paper run with {made}."


COLUMNS = ("figure", "the paper's claim", "printed", "the paper's algorithm, here", "vseg", "verdict")
SIGNS = {REPRODUCED: ("✓", "yes"), ONLY_IF: ("◐", "if"), NOT: ("✗", "no")}
LABELS = {REPRODUCED: "reproduced", ONLY_IF: "reproduced only if…", NOT: "not reproduced"}
