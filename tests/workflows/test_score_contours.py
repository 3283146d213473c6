"""score_contours() and fits of folders with drawn contours: the scores, the sentence, the files."""

import csv
import json
import shutil

import numpy as np
import pytest

import vseg
from servers import run_server
from vseg import Maps, bots, export, store
from vseg.data.contours import Contours, list_contour_rows, load_contours
from vseg.data.dataset import Dataset
from vseg.errors import InvalidInput
from vseg.workflows.score_contours import score_contours
from workflows.conftest import STUDY

DRAWN = STUDY.replace("design =", 'assignment = {images = "within"}\ncontours = {draw = true}\ndesign =')


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """An exported study of two images: three participants have drawn the borders of the colours on both."""
    folder = tmp_path_factory.mktemp("drawn")
    with run_server(f"sqlite:///{folder}/vseg.db", DRAWN) as running:
        bots.run_bots(f"{running.base}s/two-images/", count=3, observer="ideal", seed=0)
        (folder / "out").mkdir()
        export.write_dataset(running.db, store.studies.get_study(running.db, "two-images"), folder / "out")
    return folder / "out"


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_contours_are_scored_against_the_truth_and_each_other(drawn):
    found = score_contours(drawn, seed=0)
    assert len(found.rows) == 6
    assert len(found.pairs) == 2 * 3
    assert found.truth_f.count == 6
    assert found.truth_f.lower > 0.6
    assert found.map_f.count == 0
    assert "3 participants drew contours" in found.message
    assert "between people (6 pairs)" in found.message
    warm = found.select("warm")
    assert ({row["image"] for row in warm.rows}, len(warm.pairs)) == ({"warm"}, 3)
    row = warm.rows[0]
    others = [pair.f for pair in warm.pairs if row["participant"] in (pair.participant, pair.other)]
    assert row["others_f"] == pytest.approx(np.median(others))
    assert row["truth_tolerance"] == 0.0075


def test_a_fit_by_participant_compares_each_with_their_own_map(drawn, tmp_path):
    fits = vseg.fit_dataset(drawn, image="warm", by="participant", smoothness=1.0, seed=0)
    contours = fits.contours
    assert {row["map"] for row in contours.rows} == {"own"}
    for row, maps in zip(contours.rows, contours.maps, strict=True):
        assert maps is fits.each[row["participant"]].maps
    assert contours.rows[0]["map_tolerance"] == pytest.approx(1 / np.hypot(4, 4))
    assert contours.message in fits.message
    assert "their own maps" in fits.message
    fits.save(tmp_path / "fit")
    table = read_csv(tmp_path / "fit/contours.csv")
    assert [row["participant"] for row in table] == [row["participant"] for row in contours.rows]
    assert float(table[0]["map_f"]) == contours.rows[0]["map_f"]
    assert len(read_csv(tmp_path / "fit/contour_pairs.csv")) == 3
    assert (tmp_path / "fit/contours.png").stat().st_size > 10_000


def test_a_fit_by_image_compares_with_the_maps_of_all(drawn, tmp_path):
    fits = vseg.fit_dataset(drawn, smoothness=1.0, seed=0)
    assert fits.by == "image"
    assert {(row["image"], row["map"]) for row in fits.contours.rows} == {("warm", "all"), ("cold", "all")}
    assert "the maps of all" in fits.message
    fits.save(tmp_path / "fit")
    assert {path.parent.name for path in (tmp_path / "fit").rglob("contours.png")} == {"warm", "cold"}


def test_the_command_says_what_was_drawn(drawn, command):
    out, _ = command(f"fit {drawn} --image cold --by participant --smoothness 1 --out fit")
    assert "3 participants drew contours; their F: " in out


def test_a_folder_without_contours_is_refused_but_can_be_fitted(exported):
    with pytest.raises(InvalidInput, match=r"holds no drawn contours; the study file asks for them"):
        score_contours(exported, seed=0)
    assert vseg.fit_dataset(exported, image="warm", smoothness=1.0, seed=0).contours is None


def test_a_truth_that_is_not_the_generated_one_is_taken_as_it_is(drawn, tmp_path):
    """Such as after a change of the generator: the stored maps count, with the tolerance of their locations."""
    shutil.copytree(drawn, tmp_path / "copy")
    path = Dataset(tmp_path / "copy").truth_file("warm")
    stored = Maps.load(path)
    Maps.one_hot(stored.layout, np.arange(16) // 8).save(path)
    rows = score_contours(tmp_path / "copy", image="warm", seed=0).rows
    assert [row["truth_tolerance"] for row in rows] == pytest.approx([1 / np.hypot(4, 4)] * 3)


def test_drawings_survive_the_table(drawn):
    drawing = load_contours(drawn)[0]
    rows = list(list_contour_rows(drawing))
    record = {"image": drawing.image, "width_px": drawing.width_px, "height_px": drawing.height_px}
    lines = [[(row["x"], row["y"]) for row in rows if row["line"] == n] for n in range(len(drawing.lines))]
    again = Contours.from_record(json.loads(json.dumps({**record, "contours": lines})))
    assert all(np.array_equal(one, other) for one, other in zip(again.lines, drawing.lines, strict=True))
