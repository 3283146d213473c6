"""Maps as the answers stand, what is missing for them, contours, and pictures of maps."""

import io

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image

from stored_sessions import begin_session, event, register_study, response
from strategies import some_maps
from vseg import Grid, Maps, Scatter, monitor, store
from vseg.errors import InvalidInput
from vseg.monitor import tiles
from vseg.reconstruction.reconstruct import reconstruct

LONG_S = 60
PAIRS = [(i, j) for i in range(9) for j in range(i + 1, 9)]
TOP = {0, 1, 2, 3, 4}  # one segment; the rest is another


@pytest.fixture
def db(tmp_path):
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as opened:
        yield opened


def answered(db, pairs, people=2):
    """People who answer these pairs of image "a" by the truth; the answers as they are seen."""
    study = register_study(db, participants=10)
    for _ in range(people):
        begun = begin_session(db, study)
        rows = [
            response(seq, seq, i=i, j=j, same=(i in TOP) == (j in TOP)) for seq, (i, j) in enumerate(pairs)
        ]
        store.responses.append(db, begun.session.id, rows, []).result()
    return study, monitor.Watch(db).answers(study, LONG_S)


def test_a_map_is_the_reconstruction_of_the_answers(db):
    study, answers = answered(db, PAIRS)
    fit = monitor.fitted(answers, "a", segments=2, smoothness=0.1)
    direct = reconstruct(store.responses.load_responses(db, study, "a"), segments=2, smoothness=0.1, seed=0)
    assert np.array_equal(fit.maps.probabilities, direct.maps.probabilities)
    labels = fit.maps.labels
    assert {place for place in range(9) if labels[place] == labels[0]} == TOP
    assert monitor.fitted(answers, "a", segments=2, smoothness="0.1") is fit, "kept"
    one = monitor.fitted(answers, "a", participant=answers.sessions[0].participant, segments=2)
    assert one.trials == len(PAIRS)


def test_too_few_answers_say_how_many_are_missing(db):
    _, answers = answered(db, PAIRS[:4], people=1)
    need = monitor.need(answers, "a", segments=3)
    assert (need.answers, need.distinct_pairs, need.needed, need.advised, need.missing) == (4, 4, 18, 27, 14)
    said = "Only 4 distinct pairs were answered; a map of 3 segments on 9 locations needs at least 18: 14 are missing."
    with pytest.raises(InvalidInput, match=said):
        monitor.fitted(answers, "a", segments=3)
    assert monitor.need(answers, "b", segments=2).distinct_pairs == 0


def test_no_map_needs_more_pairs_than_there_are(db):
    _, answers = answered(db, PAIRS)
    assert monitor.need(answers, "a", segments=12).needed == len(PAIRS) == 36
    assert monitor.fitted(answers, "a", segments=6, smoothness=1).maps.segments == 6


def test_locations_nobody_was_asked_about_are_no_obstacle(db):
    """While a study runs there are some; the map there takes after its neighbours."""
    _, answers = answered(db, [pair for pair in PAIRS if 8 not in pair])
    assert monitor.need(answers, "a", segments=2).locations_asked == 8
    assert len(monitor.fitted(answers, "a", segments=2).maps.labels) == 9


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"segments": 1}, "2 to 12 segments, got 1"),
        ({"segments": 13}, "got 13"),
        ({"segments": 2, "smoothness": "much"}, "'auto' or a number from 0"),
        ({"segments": 2, "smoothness": -1}, "got -1"),
        ({"segments": 2, "smoothness": float("nan")}, "got nan"),
    ],
)
def test_settings_that_cannot_be(db, wrong, said):
    _, answers = answered(db, PAIRS)
    with pytest.raises(InvalidInput, match=said):
        monitor.fitted(answers, "a", **wrong)


def test_new_answers_give_another_state(db):
    study, answers = answered(db, PAIRS)
    before = monitor.maps.state(answers, "a")
    begun = begin_session(db, study)
    store.responses.append(db, begun.session.id, [response(0, 0, i=0, j=1)], []).result()
    after = monitor.Watch(db).answers(study, LONG_S)
    assert monitor.maps.state(after, "a") != before
    assert monitor.maps.state(after, "b") == monitor.maps.state(answers, "b"), (
        "the other image has nothing new"
    )


def test_contours_are_the_last_of_each_session(db):
    study = register_study(db, more="contours = {draw = true}", participants=10)
    one, other = begin_session(db, study), begin_session(db, study)
    first, second = [[[0, 0], [5, 5]]], [[[1, 1], [2, 2], [3, 1]]]
    size = {"width_px": 12, "height_px": 12}
    for begun, seq, lines in ((one, 0, first), (one, 1, second), (other, 0, first)):
        drawn = event(seq, "contours", image="a", contours=lines, **size)
        store.responses.append(db, begun.session.id, [], [drawn]).result()
    for seq, odd in enumerate(([["x"]], [[["inf", 0]]], [[[10**400, 0]]]), 2):
        strange = event(seq, "contours", image="a", contours=odd, **size)
        store.responses.append(db, other.session.id, [], [strange]).result()
    found = monitor.contours(db, study, "a")
    assert [each.data["contours"] for each in found] == [second, first]
    assert found[0].data["width_px"] == 12
    mine = monitor.contours(db, study, "a", other.session.participant)
    assert [each.session for each in mine] == [other.session.name]
    assert monitor.contours(db, study, "b") == []
    newest = monitor.contours(db, study, "a", one.session.participant, most=1)
    assert [each.data["contours"] for each in newest] == [second]


def test_a_few_contours_are_those_of_who_began_last(db):
    study = register_study(db, more="contours = {draw = true}", participants=10)
    people = [begin_session(db, study) for _ in range(4)]
    for begun in people:
        for seq, image in enumerate("ab"):
            drawn = event(seq, "contours", image=image, contours=[[[0, 0]]], width_px=12, height_px=12)
            store.responses.append(db, begun.session.id, [], [drawn]).result()
    found = monitor.contours(db, study, "a", most=2)
    assert [each.session for each in found] == [begun.session.name for begun in people[2:]]
    assert {each.image for each in found} == {"a"}
    assert len(monitor.contours(db, study, "a")) == 4


# ── pictures ──


def pixels(png: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(png)) as opened:
        assert opened.format == "PNG"
        return np.asarray(opened)


def picture(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), (100, 100, 100)).save(file, "PNG")
    return file.getvalue()


halves = Maps.one_hot(Grid(4), [0] * 8 + [1] * 8)


def test_segments_have_the_colours_of_the_figures():
    drawn = pixels(tiles.segmentation(halves))
    assert drawn.shape == (384, 384, 3)
    assert drawn[20, 20].tolist() == [0x00, 0x72, 0xB2]
    assert drawn[-20, 20].tolist() == [0x00, 0x9E, 0x73]
    assert (drawn[180:204, 200] == 255).all(axis=1).any(), "a white line between them"


def test_the_picture_shows_through():
    drawn = pixels(tiles.segmentation(halves, picture(200, 100)))
    assert drawn.shape == (192, 384, 3)
    assert drawn[10, 10].tolist() == [round(0.55 * 100 + 0.45 * level) for level in (0x00, 0x72, 0xB2)]


def test_probabilities_and_entropy_run_from_black():
    unsure = Maps(Grid(4), [[1.0, 0.0]] * 8 + [[0.5, 0.5]] * 8)
    first = pixels(tiles.probability(unsure, 0, shape=0.5))
    assert first.shape == (192, 384, 3)
    assert first[5, 5].tolist() == [0x00, 0x72, 0xB2]
    assert pixels(tiles.probability(unsure, 1))[5, 5].tolist() == [0, 0, 0]
    grey = pixels(tiles.entropy(unsure))
    assert (grey[5, 5], grey[-5, -5]) == (0, 255)
    with pytest.raises(InvalidInput, match=r"segments 0\.\.1, got 2"):
        tiles.probability(unsure, 2)


@given(maps=some_maps(), width=st.integers(1, 60), height=st.integers(1, 60))
def test_rendering_by_rows_and_columns_is_rendering(maps, width, height):
    assert np.allclose(tiles.rendered(maps, width, height), maps.rendered(width, height))


def test_points_that_lie_anywhere():
    scatter = Scatter([[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9], [0.5, 0.4]])
    maps = Maps.one_hot(scatter, [0, 0, 1, 1, 2])
    assert pixels(tiles.segmentation(maps, picture(60, 90))).shape == (384, 256, 3)
    assert pixels(tiles.entropy(maps)).shape == (384, 384)
