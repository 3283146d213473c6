"""Test that report pages are self-contained, escaped and readable without their pictures."""

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from vseg import Grid, Maps, figures
from vseg._support.html_report import Report
from vseg.errors import InvalidInput

VOID = {"meta", "img", "br"}


class Checked(HTMLParser):
    """Collects tags, and holds that each one is closed in order."""

    def __init__(self, page: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def page() -> Report:
    page = Report("<b>Title</b> & more", 'A "lead".')
    page.section("One <script>alert(1)</script>")
    page.text("A < B", "second")
    page.table(["name", "entropy (nats)"], [["<i>P1</i>", "0.5"], ["P2", "−1"]], caption="A & B")
    maps = Maps(Grid(3), np.full((9, 2), 0.5))
    page.figure(figures.entropy(maps), alt='An "entropy" map', caption="<u>Map</u>")
    page.figure(np.zeros((8, 9), np.uint8), np.zeros((8, 9, 3), np.uint8), alt=["one", "two"], caption="Both")
    page.commands("vseg fit a && b")
    page.footer("The end.")
    return page


def test_it_is_well_formed_and_in_order(page):
    tags = Checked(page.html()).tags
    assert [tag for tag, _ in tags if tag in ("h1", "h2", "table", "figure", "pre", "footer")] == [
        "h1", "h2", "table", "figure", "figure", "pre", "footer",
    ]  # fmt: skip
    assert ("html", {"lang": "en"}) in tags
    assert any(attrs.get("name") == "viewport" for _, attrs in tags)


def test_all_text_is_escaped(page):
    html = page.html()
    assert "<script" not in html
    for raw in ("<b>", "<i>", "<u>", "A < B", "A & B", "a && b"):
        assert raw not in html
    assert "&lt;i&gt;P1&lt;/i&gt;" in html


def test_nothing_comes_from_elsewhere(page):
    html = page.html()
    assert "http" not in html
    assert "url(" not in html
    assert "@import" not in html
    assert {tag for tag, _ in Checked(html).tags}.isdisjoint({"script", "link", "iframe", "object"})


def test_pictures_are_embedded_with_their_size_and_text(page):
    images = [attrs for tag, attrs in Checked(page.html()).tags if tag == "img"]
    assert [image["alt"] for image in images] == ['An "entropy" map', "one", "two"]
    for image in images:
        data = base64.b64decode(str(image["src"]).removeprefix("data:image/png;base64,"))
        assert data.startswith(b"\x89PNG")
    assert (images[1]["width"], images[1]["height"]) == ("9", "8")


@pytest.mark.parametrize("kind", ["png", "gif"])
def test_files_of_pictures_are_embedded_unchanged(kind):
    file = io.BytesIO()
    Image.fromarray(np.zeros((8, 9), np.uint8)).save(file, kind)
    page = Report("Title", "Lead.")
    page.figure(file.getvalue(), alt="black", caption="A file")
    encoded = base64.b64encode(file.getvalue()).decode()
    assert f'<img src="data:image/{kind};base64,{encoded}" alt="black" width="9" height="8">' in page.html()


def test_numbers_stand_at_the_right(page):
    assert re.findall(r'<td class="number">(.*?)</td>', page.html()) == ["0.5", "−1"]


def test_both_colour_schemes(page):
    assert "prefers-color-scheme: dark" in page.html()


def test_it_is_saved_as_utf_8(page, tmp_path):
    path = page.save(tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == page.html()


def test_a_picture_needs_a_text(page):
    with pytest.raises(InvalidInput, match="Each picture needs an alternative text: expected 1, got"):
        page.figure(np.zeros((8, 8), np.uint8), alt="", caption="x")


def test_rows_have_as_many_cells_as_columns(page):
    with pytest.raises(InvalidInput, match="one cell for each of its columns: a, b"):
        page.table(["a", "b"], [["1"]], caption="x")
