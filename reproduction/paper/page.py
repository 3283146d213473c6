"""Write the HTML page (a table of all claims, then each figure with its claims) and the table in Markdown."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduction.paper import FIGURES
from reproduction.paper.claims import NOT_REPRODUCED, ONLY_IF, REPRODUCED, TOLERANCE_FACTOR
from vseg._support.atomic_files import write_text
from vseg._support.html_report import environment, style
from vseg.reconstruction.cross_validation import FOLDS, STRENGTHS

PAGE, TABLE = "index.html", "claims.md"
FORMAT = 2  # of claims.json
PROVISIONAL_RESAMPLES = 20  # with fewer resamples a verdict is marked as provisional
DAY = 24 * 3600.0


def write_page(folder: Path) -> Path:
    """Write index.html and claims.md with all figures that are finished in this folder; return the path of the page."""
    figures = load_finished(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in ((PAGE, render_html(figures, folder)), (TABLE, render_markdown(figures))):
        write_text(folder / name, text)
    return folder / PAGE


def load_finished(folder: Path, names: Iterable[str] = tuple(FIGURES)) -> list[dict[str, Any]]:
    """Load claims.json of each figure that is finished in this folder."""
    folders = (folder / name for name in names if (folder / name / "figure.png").is_file())
    contents = (_read_json(path / "claims.json") for path in folders)
    return [content for content in contents if content.get("format") == FORMAT]


def _read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; empty if the file is missing or invalid (`runner` reports invalid files)."""
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def render_html(figures: Sequence[Mapping[str, Any]], folder: Path) -> str:
    """Return the HTML page."""
    verdicts = [claim["verdict"] for figure in figures for claim in figure["claims"]]
    return (
        environment(Path(__file__).parent)
        .get_template("page.html")
        .render(
            title="The paper, reproduced",
            style=style(),
            near=f"{TOLERANCE_FACTOR:g}",
            columns=COLUMNS,
            signs=SIGNS,
            provisional=PROVISIONAL_RESAMPLES,
            figures=figures,
            verdicts=verdicts,
            tally=", ".join(f"{verdicts.count(verdict)} {label}" for verdict, label in LABELS.items()),
            cost=describe_cost(figures),
            sizes={
                figure["name"]: _display_size_px(folder / figure["name"] / "figure.png") for figure in figures
            },
            made=_describe_origin(figures),
        )
    )


def render_markdown(figures: Sequence[Mapping[str, Any]]) -> str:
    """Return the claims as a Markdown table."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for figure in figures:
        for claim in figure["claims"]:
            where = figure["where"] + (
                f", {figure['fewest']} resamples" if figure["fewest"] < PROVISIONAL_RESAMPLES else ""
            )
            verdict = f"**{claim['verdict']}** {claim['why']}".strip()
            cells = (where, claim["claim"], claim["printed"], claim["paper"], claim["ours"], verdict)
            lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines) + f"\n\n{describe_cost(figures)}\n\n{_describe_origin(figures)}\n"


def describe_cost(figures: Sequence[Mapping[str, Any]]) -> str:
    """Describe how long the paper's implementation would take for the same fits; empty if nothing was timed."""
    timed = [figure for figure in figures if figure.get("pytorch")]
    if not timed:
        return ""
    fits, pytorch, compiled, in_full = (
        sum(figure["pytorch"][name] for figure in timed)
        for name in ("fits", "seconds", "compiled", "in_full")
    )
    work = sum(figure["worked"] for figure in timed)
    return (
        f"The {fits:,} fits of Algorithm 1 in {len(timed)} of these figures would take {format_duration(pytorch)} of "
        f"one core in PyTorch, estimated from one fit of each kind ({format_duration(in_full)} if every setting had "
        f"all resamples); compiled they take {format_duration(compiled)} here, "
        f"{pytorch / max(compiled, 1e-9):.0f} times less. With vseg's own estimators, which choose λ by "
        f"{FOLDS * len(STRENGTHS)} more fits each, these figures took {format_duration(work)} of work in all."
    )


def format_duration(seconds: float) -> str:
    """Format a duration in a readable unit.

    Examples
    --------
    >>> format_duration(42), format_duration(5400), format_duration(200_000)
    ('42 s', '1.5 hours', '2.3 days')
    """
    for unit, name in ((DAY, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.2g} s"


def _display_size_px(path: Path) -> tuple[int, int]:
    """Return the displayed width and height: half the pixels, for sharp screens."""
    from PIL import Image

    with Image.open(path) as image:
        return image.width // 2, image.height // 2


def _describe_origin(figures: Sequence[Mapping[str, Any]]) -> str:
    versions = sorted({figure["version"] for figure in figures})
    seeds = sorted({figure["seed"] for figure in figures})
    origin = f"vseg {', '.join(versions)}, seed {', '.join(map(str, seeds))}"
    return f"Made by python -m reproduction paper run with {origin}."


COLUMNS = ("figure", "the paper's claim", "printed", "the paper's algorithm, here", "vseg", "verdict")
SIGNS = {REPRODUCED: ("✓", "yes"), ONLY_IF: ("◐", "if"), NOT_REPRODUCED: ("✗", "no")}
LABELS = {REPRODUCED: "reproduced", ONLY_IF: "reproduced only if…", NOT_REPRODUCED: "not reproduced"}
