"""The page: a table of all claims, then each figure with its claims; one HTML file beside its pictures."""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from reproduction.paper import FIGURES
from reproduction.paper.claims import NEAR, NOT, ONLY_IF, REPRODUCED
from vseg._support.atomic_files import write_text
from vseg._support.html_report import STYLE
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
    """The page as text."""
    title = "The paper, reproduced"
    sections = "\n".join(_section(one, folder) for one in figures)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}{OWN_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{title}</h1>\n{LEAD}\n{_tally(figures)}\n{_claims(figures)}\n{_pytorch(figures)}\n{sections}\n"
        f"<footer>{_made(figures)}</footer>\n</main>\n</body>\n</html>\n"
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


def _tally(figures: Sequence[Mapping[str, Any]]) -> str:
    verdicts = [claim["verdict"] for one in figures for claim in one["claims"]]
    counts = ", ".join(
        f"{verdicts.count(verdict)} {said}"
        for verdict, said in (
            (REPRODUCED, "reproduced"),
            (ONLY_IF, "reproduced only if…"),
            (NOT, "not reproduced"),
        )
    )
    return f"<p><strong>{len(verdicts)} claims:</strong> {counts}.</p>"


def _claims(figures: Sequence[Mapping[str, Any]]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    rows = "\n".join(_claim(one, claim) for one in figures for claim in one["claims"])
    return f'<table class="claims"><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>'


def _claim(one: Mapping[str, Any], claim: Mapping[str, str]) -> str:
    cells = {
        "figure": f'<a href="#{escape(one["name"])}">{escape(one["where"])}</a> {_few(one)}',
        "the paper's claim": escape(claim["claim"]),
        "printed": escape(claim["printed"]),
        "the paper's algorithm, here": escape(claim["paper"]),
        "vseg": escape(claim["ours"]),
        "verdict": _verdict(claim),
    }
    return "<tr>" + "".join(f'<td data-name="{name}">{cell}</td>' for name, cell in cells.items()) + "</tr>"


def _few(one: Mapping[str, Any]) -> str:
    few = one["fewest"] < PROVISIONAL
    return f'<span class="why">provisional: {one["fewest"]} resamples</span>' if few else ""


def _verdict(claim: Mapping[str, str]) -> str:
    sign, kind = SIGNS[claim["verdict"]]
    why = f' <span class="why">{escape(claim["why"])}</span>' if claim["why"] else ""
    return f'<span class="verdict {kind}">{sign} {escape(claim["verdict"])}</span>{why}'


def _section(one: Mapping[str, Any], folder: Path) -> str:
    name = escape(one["name"])
    alt = f"{one['title']}: " + " ".join(f"{c['claim']} ({c['verdict']})" for c in one["claims"])
    wide, high = _shown_px(folder / one["name"] / "figure.png")
    listed = "".join(f"<li>{escape(claim['claim'])} {_verdict(claim)}</li>" for claim in one["claims"])
    return (
        f'<h2 id="{name}">{escape(one["title"])}</h2>\n<p class="soft">{escape(one["where"])} of the paper; '
        f"{escape(one['resampled'])}.</p>\n"
        f'<figure><div><img class="plot large" src="{name}/figure.png" alt="{escape(alt)}" width="{wide}" '
        f'height="{high}"></div></figure>\n<ul class="listed">{listed}</ul>\n'
        f'<p class="soft">Numbers: <a href="{name}/trials.csv">trials.csv</a>, '
        f'<a href="{name}/claims.json">claims.json</a>; maps: <a href="{name}/example.npz">example.npz</a>.</p>'
    )


def _shown_px(path: Path) -> tuple[int, int]:
    """Figures have twice the pixels they are shown at, for sharp screens."""
    from PIL import Image

    with Image.open(path) as picture:
        return picture.width // 2, picture.height // 2


def _pytorch(figures: Sequence[Mapping[str, Any]]) -> str:
    said = cost_in_words(figures)
    return f"<p>{escape(said)}</p>" if said else ""


def _made(figures: Sequence[Mapping[str, Any]]) -> str:
    versions = sorted({one["version"] for one in figures})
    seeds = sorted({one["seed"] for one in figures})
    made = f"vseg {', '.join(versions)}, seed {', '.join(map(str, seeds))}"
    return f"Made by python -m reproduction paper run with {made}."


COLUMNS = ("figure", "the paper's claim", "printed", "the paper's algorithm, here", "vseg", "verdict")
SIGNS = {REPRODUCED: ("✓", "yes"), ONLY_IF: ("◐", "if"), NOT: ("✗", "no")}
LEAD = f"""<p class="lead">What “Measuring uncertainty in human visual segmentation” says of its method, and what comes
out when it is done again: with the paper's own algorithm, and with vseg as it comes.</p>
<p>Numbers are means over resamples of pairs and answers with 95 % bootstrap intervals, unless a row says that it gives
the spread over people. The paper prints neither its
maps nor all of its settings, so a printed number counts as reproduced when ours is within a factor of {NEAR:g}; every
verdict is computed from the numbers. People are simulated: nothing here needs the paper's participants, and numbers
printed of them stand beside ours without being judged.</p>"""
OWN_STYLE = """
main { max-width: 72rem; }
.soft, .why { color: var(--soft); font-size: .92rem; }
a { color: var(--accent); }
.claims { width: 100%; font-size: .92rem; line-height: 1.45; }
.claims td { vertical-align: top; padding: .55rem 1rem .55rem 0; }
.claims td:first-child { min-width: 5.5rem; }
.verdict { font-weight: 600; white-space: nowrap; }
.why { display: block; margin-top: .2rem; }
.listed { padding-left: 1.2rem; max-width: 52rem; } .listed li { margin: .5rem 0; }
.yes { color: #0b63a5; } .if { color: #8a5a00; } .no { color: #b3361c; }
@media (prefers-color-scheme: dark) { .yes { color: #6cb6f2; } .if { color: #e0b050; } .no { color: #ff8a70; } }
@media (max-width: 60rem) {
  .claims, .claims tbody, .claims tr, .claims td { display: block; width: auto; }
  .claims thead { position: absolute; left: -999rem; }
  .claims tr { border: 1px solid var(--line); border-radius: 8px; padding: .6rem .9rem; margin: .8rem 0; }
  .claims td { border: 0; padding: .2rem 0; white-space: normal; }
  .claims td[data-name]::before { content: attr(data-name); display: block; color: var(--soft); font-size: .8rem; }
}
"""
