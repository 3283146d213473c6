"""A page of results: text, tables and pictures in one HTML file that needs nothing else.

Pictures are embedded; there is no script and no address outside the file, so a report can be sent by mail and
still be read in ten years. All text is escaped.
"""

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vseg.errors import InvalidInput

STYLE = """
:root { color-scheme: light dark; --ink: #1d1d1f; --soft: #5f6368; --paper: #ffffff; --line: #d9dce1;
  --tint: #f4f6f8; --accent: #0b63a5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8ea; --soft: #a3a8b0; --paper: #16181c;
  --line: #34383f; --tint: #1f2228; --accent: #6cb6f2; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1.0625rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 58rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .5rem; letter-spacing: -.01em; }
h2 { font-size: 1.45rem; line-height: 1.3; margin: 3rem 0 .5rem; padding-top: 1.25rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.1rem; margin: 2rem 0 .25rem; }
p { margin: .6rem 0; max-width: 44rem; }
.lead { font-size: 1.15rem; color: var(--soft); }
.note { border-left: 3px solid var(--accent); padding: .1rem 0 .1rem 1rem; }
figure { margin: 1.25rem 0; }
figure > div, .wide { overflow-x: auto; }
figure > div { display: flex; flex-wrap: wrap; gap: .75rem; }
img { display: block; max-width: 100%; height: auto; background: #fff; border-radius: 6px; }
.plot { padding: 6px; border: 1px solid var(--line); }
figcaption, caption { color: var(--soft); font-size: .92rem; line-height: 1.45; text-align: left;
  max-width: 44rem; }
figcaption { margin-top: .5rem; }
/* A table may be wider than a phone; what it is about is not. */
caption { padding-bottom: .4rem; max-width: min(44rem, calc(100vw - 2.5rem)); }
dl { max-width: 44rem; margin: .6rem 0; } dt { font-weight: 600; margin-top: .6rem; } dd { margin: 0; }
table { border-collapse: collapse; margin: 1.25rem 0; font-size: .98rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem 1.1rem .35rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: baseline; }
.many { font-size: .88rem; } .many th, .many td { padding-right: .7rem; }
th { font-weight: 600; } td.number, th.number { text-align: right; }
pre { background: var(--tint); border: 1px solid var(--line); border-radius: 6px; padding: .8rem 1rem;
  overflow-x: auto; font: .92rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
footer { margin-top: 3rem; color: var(--soft); font-size: .92rem; }
@media (max-width: 40rem) { h1 { font-size: 1.6rem; } th, td { padding-right: .8rem; }
  .plot.large { flex: none; max-width: none; width: 42rem; } }
@media print { main { max-width: none; padding: 0; } figure, tr { break-inside: avoid; } }
"""
MANY = 9  # columns; with more, they come closer together
LARGE_PX = 600  # a plot wider than this is scrolled on a phone rather than shrunk beyond reading


class Drawing(Protocol):
    """What a picture can be saved from, such as a matplotlib figure."""

    def savefig(self, fname: Any, *, format: str | None = None) -> None:
        """Write the picture."""
        ...


Picture = Drawing | NDArray[np.uint8]


class Report:
    """Sections of text, tables and pictures, written in the order in which they are added.

    Examples
    --------
    >>> page = Report("Results", "What we found.")
    >>> page.section("Answers")
    >>> page.table(["participant", "entropy (nats)"], [["P1", "0.31"]], caption="Mean entropy.")
    >>> "<td>P1</td>" in page.html()
    True
    """

    def __init__(self, title: str, lead: str, *, language: str = "en"):
        self.title, self.language = title, language
        self._parts = [f"<h1>{escape(title)}</h1>", f'<p class="lead">{escape(lead)}</p>']

    def section(self, title: str, *, level: int = 2) -> None:
        """A heading."""
        self._parts.append(f"<h{level}>{escape(title)}</h{level}>")

    def text(self, *paragraphs: str, kind: str = "") -> None:
        """Paragraphs; the kind `note` is set apart."""
        shown = f' class="{escape(kind)}"' if kind else ""
        self._parts += [f"<p{shown}>{escape(paragraph)}</p>" for paragraph in paragraphs]

    def terms(self, meanings: Mapping[str, str]) -> None:
        """A list of words, each with what it means."""
        listed = "".join(
            f"<dt>{escape(word)}</dt><dd>{escape(said)}</dd>\n" for word, said in meanings.items()
        )
        self._parts.append(f"<dl>\n{listed}</dl>")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str) -> None:
        """A table whose columns carry their units; cells that are numbers stand at the right."""
        if any(len(row) != len(columns) for row in rows):
            raise InvalidInput(
                f"A row of this table has one cell for each of its columns: {', '.join(columns)}."
            )
        numeric = [bool(rows) and all(_is_number(row[at]) for row in rows) for at in range(len(columns))]
        kinds = [' class="number"' if one else "" for one in numeric]
        head = "".join(f'<th scope="col"{k}>{escape(c)}</th>' for c, k in zip(columns, kinds, strict=True))
        body = "".join(
            "<tr>" + "".join(f"<td{k}>{escape(c)}</td>" for c, k in zip(row, kinds, strict=True)) + "</tr>\n"
            for row in rows
        )
        many = ' class="many"' if len(columns) > MANY else ""
        self._parts.append(
            f'<div class="wide"><table{many}><caption>{escape(caption)}</caption>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
        )

    def figure(self, *pictures: Picture, alt: str | Sequence[str], caption: str) -> None:
        """One picture, or several side by side, each with a text for those who cannot see it."""
        texts = [alt] if isinstance(alt, str) else list(alt)
        if len(texts) != len(pictures) or not all(texts):
            raise InvalidInput(
                f"Each picture needs an alternative text: expected {len(pictures)}, got {texts!r:.80}."
            )
        images = "".join(_image(picture, text) for picture, text in zip(pictures, texts, strict=True))
        self._parts.append(f"<figure><div>{images}</div><figcaption>{escape(caption)}</figcaption></figure>")

    def commands(self, *lines: str) -> None:
        """Lines to type in a terminal."""
        self._parts.append(f"<pre><code>{escape(chr(10).join(lines))}</code></pre>")

    def footer(self, text: str) -> None:
        """A closing line."""
        self._parts.append(f"<footer>{escape(text)}</footer>")

    def html(self) -> str:
        """The page."""
        body = "\n".join(self._parts)
        return (
            f'<!doctype html>\n<html lang="{escape(self.language)}">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.title)}</title>\n<style>{STYLE}</style>\n</head>\n"
            f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
        )

    def save(self, path: str | Path) -> Path:
        """Write the page."""
        Path(path).write_text(self.html(), encoding="utf-8")
        return Path(path)


def _image(picture: Picture, alt: str) -> str:
    data, width, height = _png(picture)
    # Figures have twice the pixels they are shown at, for sharp screens.
    shown_px = width if isinstance(picture, np.ndarray) else width // 2
    kind = (
        "" if isinstance(picture, np.ndarray) else f' class="plot{" large" if shown_px > LARGE_PX else ""}"'
    )
    return (
        f'<img{kind} src="data:image/png;base64,{data}" alt="{escape(alt)}" '
        f'width="{shown_px}" height="{height * shown_px // width}">'
    )


def _png(picture: Picture) -> tuple[str, int, int]:
    """Base64, width and height."""
    from PIL import Image

    file = io.BytesIO()
    if isinstance(picture, np.ndarray):
        Image.fromarray(picture).save(file, "png", optimize=True)
    else:
        picture.savefig(file, format="png")
    width, height = Image.open(file).size
    return base64.b64encode(file.getvalue()).decode("ascii"), width, height


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace("−", "-").replace("%", ""))
    except ValueError:
        return cell in ("", "–")
    return True
