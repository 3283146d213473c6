"""Write the page of figures and claims as HTML (a table of all claims, then each figure) and as Markdown."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduction.paper import FIGURES
from reproduction.paper.claims import (
    NOT_REPRODUCED,
    NOT_TESTABLE,
    ONLY_IF,
    REPRODUCED,
    TOLERANCE_FACTOR,
)
from vseg._support.atomic_files import write_text
from vseg._support.html_report import environment, style
from vseg.errors import NotFound
from vseg.reconstruction.smoothness_selection import FOLDS, STRENGTHS

PAGE, TABLE = "index.html", "claims.md"
FORMAT = 3  # of claims.json
PROVISIONAL_RESAMPLES = 20  # with fewer resamples a verdict is marked as provisional
PAPER_RESAMPLES = 1000
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
            tally=_tally(verdicts),
            cost=describe_cost(figures),
            sizes={
                figure["name"]: _display_size_px(folder / figure["name"] / "figure.png") for figure in figures
            },
            made=_describe_origin(figures),
        )
    )


def render_markdown(
    figures: Sequence[Mapping[str, Any]], picture: Callable[[str], str | None] = "{}/figure.png".format
) -> str:
    """Return the page as Markdown: for each figure its picture and the table of its claims.

    Parameters
    ----------
    figures : sequence of mapping
        The contents of claims.json.
    picture : callable
        Returns the path of a figure's picture from its name, or None if there is none.
    """
    verdicts = [claim["verdict"] for figure in figures for claim in figure["claims"]]
    parts = [
        f"{len(verdicts)} statements of the paper: {_tally(verdicts)}.",
        *filter(None, [describe_cost(figures)]),
    ]
    for figure in figures:
        parts += [f"## {figure['where']}: {_lower_first(figure['title'])}", _list_marks(figure)]
        path = picture(figure["name"])
        parts.append(f"![{figure['title']}, regenerated]({path})" if path else WITHOUT_PICTURE)
        lines = [f"| {' | '.join(COLUMNS[1:])} |", "|---" * len(COLUMNS[1:]) + "|"]
        for claim in figure["claims"]:
            verdict = f"**{claim['verdict']}** {claim['why']}".strip()
            cells = (
                claim["claim"], claim["printed"], claim["paper"], claim["ours"], verdict, claim["settings"],
            )  # fmt: skip
            lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join([*filter(None, parts), _describe_origin(figures)]) + "\n"


def write_docs(folder: Path, docs: Path) -> list[Path]:
    """Copy the page of a run into the documentation: docs/claims.md and a picture of each figure.

    Parameters
    ----------
    folder : Path
        The output folder of `runner.run`.
    docs : Path
        The folder of the documentation; pictures are written to its subfolder `pictures`.

    Returns
    -------
    list of Path
        The files written.
    """
    figures = load_finished(folder)
    if not figures:
        raise NotFound(f"{folder} holds no finished figure; run the figures first.")
    if not (docs / "pictures").is_dir():
        raise NotFound(f"Expected a folder of documentation with a subfolder pictures, got {docs}.")
    written = [
        _write_small_picture(
            folder / figure["name"] / "figure.png", docs / "pictures" / _picture_name(figure["name"])
        )
        for figure in figures
        if figure["name"] not in SHOWING_PHOTOGRAPHS
    ]
    text = render_markdown(
        figures, lambda name: None if name in SHOWING_PHOTOGRAPHS else f"pictures/{_picture_name(name)}"
    )
    write_text(docs / TABLE, f"{DOCS_HEAD}{_describe_page_resamples(figures)}\n\n{text}")
    return [*written, docs / TABLE]


def _describe_page_resamples(figures: Sequence[Mapping[str, Any]]) -> str:
    """Say which numbers of resamples were requested, and that they are fewer than the paper's if they are."""
    counts = sorted({figure["resamples"] for figure in figures})
    numbers = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    few = (
        ""
        if counts[0] >= PAPER_RESAMPLES
        else f"; the paper has {PAPER_RESAMPLES}, as has `make paper` by default"
    )
    return f"This page: {numbers} resamples{few}."


def _picture_name(figure: str) -> str:
    return f"paper-{figure.replace('_', '-')}.png"


def _write_small_picture(source: Path, target: Path) -> Path:
    """Write a picture at half its width with 256 colours: as large as the page shows it, and a quarter of the bytes."""
    from PIL import Image

    with Image.open(source) as image:
        half = image.convert("RGB").resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)
        half.quantize(256, method=Image.Quantize.MAXCOVERAGE).save(target, optimize=True)
    return target


def _lower_first(text: str) -> str:
    return text[0].lower() + text[1:]


def _list_marks(figure: Mapping[str, Any]) -> str:
    """Return how many resamples a figure has, and whether they are few."""
    few = " Provisional: few resamples." if figure["fewest"] < PROVISIONAL_RESAMPLES else ""
    return f"{figure['resampled']}.{few}"


def _tally(verdicts: Sequence[str]) -> str:
    return ", ".join(f"{verdicts.count(verdict)} {label}" for verdict, label in LABELS.items())


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
        f"{FOLDS * len(STRENGTHS)} more fits each, these figures took {format_duration(work)} of work in all "
        "(elapsed time of all workers)."
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


COLUMNS = (
    "figure",
    "the paper's claim",
    "printed",
    "the paper's algorithm, here",
    "vseg",
    "verdict",
    "run with",
)
SIGNS = {
    REPRODUCED: ("✓", "yes"),
    ONLY_IF: ("◐", "if"),
    NOT_REPRODUCED: ("✗", "no"),
    NOT_TESTABLE: ("–", "open"),
}
LABELS = {
    REPRODUCED: "reproduced",
    ONLY_IF: "reproduced only if…",
    NOT_REPRODUCED: "not reproduced",
    NOT_TESTABLE: "not testable without the data",
}
SHOWING_PHOTOGRAPHS = (
    "natural",
)  # figures with photographs by others, which the documentation must not contain
WITHOUT_PICTURE = "The picture shows photographs that are not part of vseg; `make paper` draws it."
DOCS_HEAD = """# The paper's figures and claims, regenerated

Written by `python -m reproduction paper run all` and `python -m reproduction paper publish docs`; how to read it:
[paper.md](paper.md). Each row says what it was run with, including the number of resamples; fits that take more than
50 ms have fewer. """
