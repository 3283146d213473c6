"""Test maps of the answers so far, what is missing for them, contours, and pictures of maps."""

import io
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image

from stored_sessions import begin_session, event, make_images, make_study_text, register_study, response
from strategies import some_maps
from vseg import Grid, Maps, Scatter, designs, monitor, stimuli, store
from vseg.errors import InvalidInput
from vseg.monitor import posterior_summary, tiles
from vseg.monitor.maps import answers_fingerprint, find_label_reference
from vseg.observers import simulate
from vseg.reconstruction.reconstruct import reconstruct
from vseg.study.schema import parse_study

LONG_S = 60
PAIRS = [(i, j) for i in range(9) for j in range(i + 1, 9)]
TOP = {0, 1, 2, 3, 4}  # one segment; the rest is another


@pytest.fixture
def db(tmp_path):
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as opened:
        yield opened


def answer_pairs(db, pairs, participants=2):
    """Store right answers to these pairs of image "a"; return the study and its answers."""
    study = register_study(db, participants=10)
    for _ in range(participants):
        begun = begin_session(db, study)
        rows = [
            response(seq, seq, i=i, j=j, same=(i in TOP) == (j in TOP)) for seq, (i, j) in enumerate(pairs)
        ]
        store.responses.append(db, begun.session.id, rows, []).result()
    return study, monitor.LiveData(db).answers(study, LONG_S)


def test_a_map_is_the_reconstruction_of_the_answers(db):
    study, answers = answer_pairs(db, PAIRS)
    fit = monitor.fit_maps(answers, "a", segments=2, smoothness=0.1)
    direct = reconstruct(store.responses.load_responses(db, study, "a"), segments=2, smoothness=0.1, seed=0)
    assert np.array_equal(fit.maps.probabilities, direct.maps.align_to(fit.maps).probabilities)
    labels = fit.maps.labels
    assert {location for location in range(9) if labels[location] == labels[0]} == TOP
    assert monitor.fit_maps(answers, "a", segments=2, smoothness="0.1") is fit, "cached"
    one = monitor.fit_maps(answers, "a", participant=answers.sessions[0].participant, segments=2)
    assert one.trials == len(PAIRS)


def test_too_few_answers_for_a_map(db):
    _, answers = answer_pairs(db, PAIRS[:4], participants=1)
    readiness = monitor.check_map_readiness(answers, "a", segments=3)
    assert (readiness.answers, readiness.distinct_pairs) == (4, 4)
    assert (readiness.needed, readiness.advised, readiness.missing) == (18, 300, 14)
    message = (
        "Only 4 distinct pairs were answered; a map of 3 segments on 9 locations needs at least 18: "
        "14 are missing."
    )
    with pytest.raises(InvalidInput, match=message):
        monitor.fit_maps(answers, "a", segments=3)
    assert monitor.check_map_readiness(answers, "b", segments=2).distinct_pairs == 0


def test_a_map_never_needs_more_pairs_than_the_layout_has(db):
    _, answers = answer_pairs(db, PAIRS)
    assert monitor.check_map_readiness(answers, "a", segments=12).needed == len(PAIRS) == 36
    assert monitor.fit_maps(answers, "a", segments=6, smoothness=1).maps.segments == 6


def test_locations_without_answers(db):
    """Test that a map can be fitted while some locations have no answers yet."""
    _, answers = answer_pairs(db, [pair for pair in PAIRS if 8 not in pair])
    assert monitor.check_map_readiness(answers, "a", segments=2).locations_asked == 8
    assert len(monitor.fit_maps(answers, "a", segments=2).maps.labels) == 9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"segments": 1}, "2 to 12 segments, got 1"),
        ({"segments": 13}, "got 13"),
        ({"segments": 2, "smoothness": "much"}, "'auto' or a number from 0"),
        ({"segments": 2, "smoothness": -1}, "got -1"),
        ({"segments": 2, "smoothness": float("nan")}, "got nan"),
    ],
)
def test_invalid_settings(db, settings, message):
    _, answers = answer_pairs(db, PAIRS)
    with pytest.raises(InvalidInput, match=message):
        monitor.fit_maps(answers, "a", **settings)


def test_new_answers_change_the_fingerprint(db):
    study, answers = answer_pairs(db, PAIRS)
    before = answers_fingerprint(answers, "a")
    begun = begin_session(db, study)
    store.responses.append(db, begun.session.id, [response(0, 0, i=0, j=1)], []).result()
    after = monitor.LiveData(db).answers(study, LONG_S)
    assert answers_fingerprint(after, "a") != before
    assert answers_fingerprint(after, "b") == answers_fingerprint(answers, "b"), (
        "the other image has no new answers"
    )


def test_the_last_drawing_of_each_session_is_loaded(db):
    study = register_study(db, more="contours = {draw = true}", participants=10)
    one, other = begin_session(db, study), begin_session(db, study)
    first, second = [[[0, 0], [5, 5]]], [[[1, 1], [2, 2], [3, 1]]]
    size = {"width_px": 12, "height_px": 12}
    for begun, seq, lines in ((one, 0, first), (one, 1, second), (other, 0, first)):
        drawing = event(seq, "contours", image="a", contours=lines, **size)
        store.responses.append(db, begun.session.id, [], [drawing]).result()
    for seq, lines in enumerate(([["x"]], [[["inf", 0]]], [[[10**400, 0]]]), 2):
        invalid = event(seq, "contours", image="a", contours=lines, **size)
        store.responses.append(db, other.session.id, [], [invalid]).result()
    drawings = monitor.load_contours(db, study, "a")
    assert [drawing.data["contours"] for drawing in drawings] == [second, first]
    assert drawings[0].data["width_px"] == 12
    own = monitor.load_contours(db, study, "a", other.session.participant)
    assert [drawing.session for drawing in own] == [other.session.name]
    assert monitor.load_contours(db, study, "b") == []
    newest = monitor.load_contours(db, study, "a", one.session.participant, most=1)
    assert [drawing.data["contours"] for drawing in newest] == [second]


def test_a_limited_number_of_drawings_is_of_the_newest_sessions(db):
    study = register_study(db, more="contours = {draw = true}", participants=10)
    sessions = [begin_session(db, study) for _ in range(4)]
    for begun in sessions:
        for seq, image in enumerate("ab"):
            drawing = event(
                seq, "contours", image=image, contours=[[[0, 0], [1, 1]]], width_px=12, height_px=12
            )
            store.responses.append(db, begun.session.id, [], [drawing]).result()
    drawings = monitor.load_contours(db, study, "a", most=2)
    assert [drawing.session for drawing in drawings] == [begun.session.name for begun in sessions[2:]]
    assert {drawing.image for drawing in drawings} == {"a"}
    assert len(monitor.load_contours(db, study, "a")) == 4


# ── labels ──


@pytest.fixture(scope="module")
def growing(tmp_path_factory):
    """Return a function that gives the live answers after the first answers of a simulated session."""
    truth = stimuli.random_maps(Grid(8), segments=3, entropy=0.1, seed=0)
    pairs = designs.scattered(truth.layout, segments=3, seed=1)
    given = simulate(truth, pairs, blocks=8, seed=2)
    given = given.take(np.random.default_rng(3).permutation(len(given)))
    with store.open(f"sqlite:///{tmp_path_factory.mktemp('growing')}/vseg.db") as opened:
        text = make_study_text("a", participants=9).replace("grid = 3", "grid = 8")
        study = store.studies.register(opened, text, parse_study(text), make_images("a"))
        begun, stored = begin_session(opened, study), 0
        live = monitor.LiveData(opened)

        def grow(count: int) -> monitor.Answers:
            nonlocal stored
            rows = [
                response(
                    at, at, i=int(given.i[at]), j=int(given.j[at]), same=bool(given.same[at]), shown_at_ms=at
                )
                for at in range(stored, count)
            ]
            store.responses.append(opened, begun.session.id, rows, []).result()
            stored = count
            return live.answers(study, LONG_S)

        yield grow


def test_segments_keep_their_labels_while_answers_arrive(growing):
    """Test that consecutive maps match label by label, also for other settings."""
    shown, fitted = [], []
    for count in (260, 340, 440, 570, 740, 960, 1250):
        answers = growing(count)
        shown.append(monitor.fit_maps(answers, "a", segments=3).maps)
        fitted.append(reconstruct(answers.tally("a"), segments=3, seed=0).maps)
    assert count_relabelled(fitted) > 0, "the fits themselves do not keep their labels"
    assert count_relabelled(shown) == 0
    more = monitor.fit_maps(answers, "a", segments=4).maps
    assert more.matching_order(shown[-1]).tolist() == [0, 1, 2, 3], "the fourth segment comes last"
    weaker = monitor.fit_maps(answers, "a", segments=3, smoothness=0.1).maps
    assert weaker.matching_order(shown[-1]).tolist() == [0, 1, 2]
    own = monitor.fit_maps(answers, "a", segments=3, participant=answers.sessions[0].participant).maps
    assert own.matching_order(shown[-1]).tolist() == [0, 1, 2]


def test_another_process_takes_the_same_labels(growing):
    earlier = growing(1300).earlier_tallies("a")
    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        found = other.submit(find_label_reference, earlier, 3).result()
    assert found == find_label_reference(earlier, 3)


def test_the_posterior_takes_the_labels_of_the_live_map(growing):
    answers = growing(1350)
    live = monitor.fit_maps(answers, "a", segments=3).maps
    inputs = posterior_summary.collect_inputs(answers, "a", segments=3)
    found = posterior_summary.compute_posterior(inputs)
    assert found.maps.matching_order(live).tolist() == [0, 1, 2]


def count_relabelled(maps: list[Maps]) -> int:
    """Count the maps that match the one before only with other labels."""
    return sum(
        later.matching_order(before).tolist() != list(range(before.segments))
        for before, later in pairwise(maps)
    )


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
    tile = pixels(tiles.render_segmentation(halves))
    assert tile.shape == (384, 384, 3)
    assert tile[20, 20].tolist() == [0x00, 0x72, 0xB2]
    assert tile[-20, 20].tolist() == [0x00, 0x9E, 0x73]
    assert (tile[180:204, 200] == 255).all(axis=1).any(), "a white line between them"


def test_segments_are_tinted_over_the_picture():
    tile = pixels(tiles.render_segmentation(halves, picture(200, 100)))
    assert tile.shape == (192, 384, 3)
    assert tile[10, 10].tolist() == [round(0.55 * 100 + 0.45 * level) for level in (0x00, 0x72, 0xB2)]


def test_probabilities_and_entropy_start_at_black():
    unsure = Maps(Grid(4), [[1.0, 0.0]] * 8 + [[0.5, 0.5]] * 8)
    first = pixels(tiles.render_probability(unsure, 0, shape=0.5))
    assert first.shape == (192, 384, 3)
    assert first[5, 5].tolist() == [0x00, 0x72, 0xB2]
    assert pixels(tiles.render_probability(unsure, 1))[5, 5].tolist() == [0, 0, 0]
    grey = pixels(tiles.render_entropy(unsure))
    assert (grey[5, 5], grey[-5, -5]) == (0, 255)
    with pytest.raises(InvalidInput, match=r"segments 0\.\.1, got 2"):
        tiles.render_probability(unsure, 2)


@given(maps=some_maps(), width=st.integers(1, 60), height=st.integers(1, 60))
def test_separable_interpolation_equals_rendering(maps, width, height):
    assert np.allclose(tiles.interpolate_maps(maps, width, height), maps.render(width, height))


def test_tiles_of_scattered_locations():
    scatter = Scatter([[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9], [0.5, 0.4]])
    maps = Maps.one_hot(scatter, [0, 0, 1, 1, 2])
    assert pixels(tiles.render_segmentation(maps, picture(60, 90))).shape == (384, 256, 3)
    assert pixels(tiles.render_entropy(maps)).shape == (384, 384)
