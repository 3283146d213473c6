"""Reports: text, tables and pictures in one HTML file that needs nothing else.

Pictures are embedded; there is no script and no address outside the file, so that a report can be sent by mail and read
years later. All text is escaped. templates/report.html is the page, templates/report.css its style.
"""

import base64
import io
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from vseg._support.atomic_files import write_text
from vseg.errors import InvalidInput

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
MANY_COLUMNS = 9  # tables with more columns are set closer
LARGE_PX = 600  # plots wider than this are scrolled on a phone, because shrunk they would be unreadable


class Drawing(Protocol):
    """A picture that can be saved, such as a matplotlib figure."""

    def savefig(self, fname: BinaryIO | str | Path, *, format: str | None = None) -> None:
        """Write the picture."""
        ...


Picture = Drawing | NDArray[np.uint8] | bytes  # bytes: a PNG or GIF file


@cache
def style() -> str:
    """Return the style sheet of reports."""
    return (TEMPLATES / "report.css").read_text(encoding="utf-8")


@cache
def environment(folder: Path) -> "Environment":
    """Return the Jinja environment of a folder of templates; text is escaped, undefined names are errors."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


class Report:
    """Sections of text, tables and pictures, in the order in which they are added.

    Examples
    --------
    >>> page = Report("Results", "What we found.")
    >>> page.section("Answers")
    >>> page.table(["participant", "entropy (nats)"], [["P1", "0.31"]], caption="Mean entropy.")
    >>> "<td>P1</td>" in page.html()
    True
    """

    def __init__(self, title: str, lead: str, *, language: str = "en"):
        self.title, self.lead, self.language = title, lead, language
        self._parts: list[dict[str, Any]] = []

    def section(self, title: str, *, level: int = 2) -> None:
        """Add a heading."""
        self._add("section", title=title, level=level)

    def text(self, *paragraphs: str, kind: str = "") -> None:
        """Add paragraphs; the kind `note` is set apart."""
        self._add("text", paragraphs=paragraphs, style=kind)

    def terms(self, meanings: Mapping[str, str]) -> None:
        """Add a list of terms with their meanings."""
        self._add("terms", meanings=meanings)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str) -> None:
        """Add a table; columns that hold only numbers are aligned to the right."""
        if any(len(row) != len(columns) for row in rows):
            raise InvalidInput(
                f"A row of this table has one cell for each of its columns: {', '.join(columns)}."
            )
        numeric = [bool(rows) and all(_is_number(row[at]) for row in rows) for at in range(len(columns))]
        many = len(columns) > MANY_COLUMNS
        self._add("table", columns=columns, rows=rows, numeric=numeric, many=many, caption=caption)

    def figure(self, *pictures: Picture, alt: str | Sequence[str], caption: str) -> None:
        """Add one picture, or several side by side, each with its alternative text."""
        texts = [alt] if isinstance(alt, str) else list(alt)
        if len(texts) != len(pictures) or not all(texts):
            raise InvalidInput(
                f"Each picture needs an alternative text: expected {len(pictures)}, got {texts!r:.80}."
            )
        images = [_encode_image(picture, text) for picture, text in zip(pictures, texts, strict=True)]
        self._add("figure", images=images, caption=caption)

    def commands(self, *lines: str) -> None:
        """Add lines to type in a terminal."""
        self._add("commands", lines=lines)

    def markup(self, markup: "Markup") -> None:
        """Add HTML that another template rendered; plain strings are escaped."""
        self._add("markup", markup=markup)

    def footer(self, text: str) -> None:
        """Add a closing line."""
        self._add("footer", text=text)

    def html(self) -> str:
        """Return the page."""
        template = environment(TEMPLATES).get_template("report.html")
        return template.render(
            title=self.title, lead=self.lead, language=self.language, style=style(), parts=self._parts
        )

    def save(self, path: str | Path) -> Path:
        """Write the page in one step, so that nobody reads half of it."""
        write_text(Path(path), self.html())
        return Path(path)

    def _add(self, kind: str, **fields: Any) -> None:
        self._parts.append({"kind": kind, **fields})


def _encode_image(picture: Picture, alt: str) -> dict[str, str | int]:
    data, kind, width, height = _encode_file(picture)
    is_plot = not isinstance(picture, np.ndarray | bytes)
    shown_px = (
        width // 2 if is_plot else width
    )  # plots have twice the pixels they are shown at, for sharp screens
    return {
        "data": data, "type": kind, "alt": alt, "width": shown_px, "height": height * shown_px // width,
        "style": ("plot large" if shown_px > LARGE_PX else "plot") if is_plot else "",
    }  # fmt: skip


def _encode_file(picture: Picture) -> tuple[str, str, int, int]:
    """Return the picture in base64, the type of its file, its width and its height."""
    from PIL import Image

    file = io.BytesIO(picture if isinstance(picture, bytes) else b"")
    if isinstance(picture, np.ndarray):
        Image.fromarray(picture).save(file, "png", optimize=True)
    elif not isinstance(picture, bytes):
        picture.savefig(file, format="png")
    image = Image.open(file)
    kind = str(image.format).lower()
    return base64.b64encode(file.getvalue()).decode("ascii"), kind, image.width, image.height


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace("−", "-").replace("%", ""))
    except ValueError:
        return cell in ("", "–")
    return True
