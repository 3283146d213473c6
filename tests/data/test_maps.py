"""Maps are probabilities, and nothing depends on the order of the segments."""

import zipfile

import numpy as np
import pytest
from hypothesis import given, strategies as st

from strategies import grids, layouts, scatters, some_maps, some_pairs
from vseg.data.layout import Grid, Scatter
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput, NotFound


def close(one: Maps, other: Maps, margin: float = 1e-12) -> bool:
    return one.layout == other.layout and np.allclose(one.probabilities, other.probabilities, 0, margin)


@given(some_maps(), st.randoms(use_true_random=False))
def test_alignment_undoes_any_permutation(maps, random):
    """Labels are arbitrary (Eq. 4)."""
    order = list(range(maps.segments))
    random.shuffle(order)
    assert close(maps.permute(order).align_to(maps), maps)


@given(some_maps(segments=2), some_maps(segments=4))
def test_alignment_reaches_the_larger_number_of_maps(few, many):
    many = Maps(few.layout, np.resize(many.probabilities, (len(few.layout), 4)))
    assert few.align_to(many).segments == 4
    assert many.align_to(few).segments == 4
    assert close(many.align_to(few).pad(4), many.align_to(few))


@given(some_maps(segments=3), some_maps(segments=3))
def test_alignment_is_the_best_of_all_orders(one, other):
    from itertools import permutations

    other = Maps(one.layout, np.resize(other.probabilities, one.probabilities.shape))
    distances = [
        np.abs(one.permute(order).probabilities - other.probabilities).sum()
        for order in permutations(range(3))
    ]
    aligned = np.abs(one.align_to(other).probabilities - other.probabilities).sum()
    assert aligned == pytest.approx(min(distances), abs=1e-9)


@given(some_maps())
def test_entropy_lies_between_0_and_log_k(maps):
    assert (maps.entropy >= 0).all()
    assert (maps.entropy <= np.log(maps.segments) + 1e-12).all()
    assert maps.mean_entropy == pytest.approx(maps.entropy.mean())


@given(layouts(), st.integers(1, 6))
def test_entropy_reaches_its_bounds(layout, segments):
    flat = Maps(layout, np.full((len(layout), segments), 1 / segments))
    certain = Maps.one_hot(layout, np.arange(len(layout)) % segments, segments)
    assert np.allclose(flat.entropy, np.log(segments))
    assert (certain.entropy == 0).all()
    assert certain.labels.tolist() == (np.arange(len(layout)) % segments).tolist()
    assert certain.segments_won == min(segments, len(layout))


@given(some_maps(), layouts())
def test_resampled_maps_are_probabilities(maps, layout):
    p = maps.resample(layout).probabilities
    assert p.shape == (len(layout), maps.segments)
    assert (p >= 0).all()
    assert np.allclose(p.sum(axis=1), 1)
    assert p.min() >= maps.probabilities.min() - 1e-9
    assert p.max() <= maps.probabilities.max() + 1e-9


@given(some_maps())
def test_resampling_to_the_same_layout_changes_nothing(maps):
    assert close(maps.resample(maps.layout), maps, 1e-9)


@given(some_maps(), st.integers(1, 20), st.integers(1, 20))
def test_rendered_maps_are_probabilities(maps, width, height):
    p = maps.render(width, height)
    assert p.shape == (height, width, maps.segments)
    assert (p >= 0).all()
    assert np.allclose(p.sum(axis=2), 1)


@given(some_maps(grids()))
def test_rendering_at_the_size_of_the_grid_is_the_image(maps):
    assert np.allclose(maps.render(maps.layout.size, maps.layout.size), maps.image)


@given(some_maps(), st.sampled_from(["maps.npz", "maps", "maps.old"]))
def test_save_and_load(tmp_path_factory, maps, name):
    path = tmp_path_factory.mktemp("maps") / name
    maps.save(path)
    assert close(Maps.load(path), maps, 1e-15)


@given(some_maps(st.just(Grid(4))), some_pairs(st.just(Grid(4))))
def test_same_probability_is_the_inner_product(maps, pairs):
    """Eq. 2."""
    p = maps.probabilities
    expected = [p[i] @ p[j] for i, j in pairs]
    assert np.allclose(maps.same_probability(pairs), expected)
    assert np.allclose(maps.permute(np.arange(maps.segments)[::-1]).same_probability(pairs), expected)


@given(some_maps())
def test_arrays_are_read_only(maps):
    for array in (maps.probabilities, maps.labels, maps.entropy):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@given(some_maps(scatters()))
def test_maps_on_a_scatter_have_no_image(maps):
    with pytest.raises(InvalidInput) as error:
        _ = maps.image
    assert str(error.value) == (
        f"Only maps on a grid have an image, these are on {maps.layout}; use render()."
    )


@pytest.mark.parametrize(("width", "height"), [(0, 5), (-1, 5), (5, 0), (5, 2.5), (np.nan, 5)])
def test_invalid_image_sizes(width, height):
    with pytest.raises(InvalidInput, match=r"Expected (an image of at least 1x1|whole numbers of) pixels"):
        Maps.one_hot(Grid(3), [0] * 9).render(width, height)


def test_probabilities_as_image_or_as_list():
    p = np.random.default_rng(0).dirichlet([1, 1], size=9)
    assert Maps(Grid(3), p) == Maps(Grid(3), p.reshape(3, 3, 2))
    assert Maps(Grid(3), p) != Maps(Grid(3), p[::-1])


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.bool_])
def test_labels_of_any_integer_type(kind):
    labels = np.array([0, 1, 0, 1, 0, 1, 0, 1, 1]).astype(kind)
    assert Maps.one_hot(Grid(3), labels.reshape(3, 3)).labels.tolist() == labels.astype(int).tolist()


HALVES = np.full((9, 2), 0.5)
CORNERS = Scatter([[0, 0], [1, 0], [0, 1], [1, 1]])
RULE = "Probabilities are non-negative and sum to 1 at every location; the smallest is "


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Maps(Grid(3), HALVES[:8]), "Expected maps of shape (9, K) on a 3x3 grid, got (8, 2)."),
        (lambda: Maps(Grid(3), 1), "Expected maps of shape (9, K) on a 3x3 grid, got ()."),
        (
            lambda: Maps(Grid(3), np.zeros((3, 3, 0))),
            "Expected maps of shape (9, K) on a 3x3 grid, got (3, 3, 0).",
        ),
        (
            lambda: Maps(CORNERS, HALVES),
            "Expected maps of shape (4, K) on a scatter of 4 points, got (9, 2).",
        ),
        (
            lambda: Maps(Grid(3), HALVES * np.nan),
            "Expected finite probabilities; some are NaN or infinite.",
        ),
        (lambda: Maps(Grid(3), HALVES * 2), RULE + "1 and the sums run from 2 to 2."),
        (lambda: Maps(Grid(3), [[-0.5, 1.5]] * 9), RULE + "-0.5 and the sums run from 1 to 1."),
        (lambda: Maps(Grid(3), [["a", "b"]]), "Expected numbers for probabilities, got [['a', 'b']]."),
        (
            lambda: Maps.one_hot(Grid(3), [0, 1]),
            "Expected 9 labels from 0 up, one for each location, got array([0, 1]).",
        ),
        (
            lambda: Maps.one_hot(Grid(3), [3] * 9, segments=3),
            "Labels are 0..3, but segments is 3.",
        ),
        (
            lambda: Maps(Grid(3), HALVES).permute([0, 0]),
            "Expected the numbers 0..1 in some order, got [0, 0].",
        ),
        (
            lambda: Maps(Grid(3), HALVES).permute([True, False]),
            "Expected the numbers 0..1 in some order, got [True, False].",
        ),
        (
            lambda: Maps(Grid(3), HALVES).align_to(Maps(CORNERS, HALVES[:4])),
            "Expected maps on the same layout, got a 3x3 grid and a scatter of 4 points; use resample() first.",
        ),
        (
            lambda: Maps(Grid(3), HALVES).same_probability(Pairs(Grid(4), [0], [1])),
            "Expected pairs on a 3x3 grid, as the maps, got pairs on a 4x4 grid.",
        ),
    ],
)
def test_invalid_input(call, message):
    with pytest.raises(InvalidInput) as error:
        call()
    assert str(error.value) == message


def test_a_missing_file(tmp_path):
    with pytest.raises(NotFound) as error:
        Maps.load(tmp_path / "nowhere.npz")
    assert str(error.value) == (
        f"No maps at {tmp_path / 'nowhere.npz'}; expected an .npz file written by vseg."
    )


def empty_file(path):
    path.write_bytes(b"")


def text_file(path):
    path.write_text("these are not maps")


def cut_file(path):
    Maps(Grid(3), HALVES).save(path)
    path.write_bytes(path.read_bytes()[:-40])


def damaged_file(path):
    Maps(Grid(3), HALVES).save(path)
    whole = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.infolist()[0].header_offset
    whole[start + 60 : start + 80] = b"\xff" * 20
    path.write_bytes(whole)


def lone_array(path):
    with open(path, "wb") as file:
        np.save(file, HALVES)


def pickled(path):
    np.savez(path, probabilities=np.array([{}], dtype=object))


@pytest.mark.parametrize("write", [empty_file, text_file, cut_file, damaged_file, lone_array, pickled])
def test_a_file_that_is_not_npz(tmp_path, write):
    write(tmp_path / "maps.npz")
    with pytest.raises(
        InvalidInput, match=r"maps\.npz is not an \.npz file of maps; expected one written by vseg\.$"
    ):
        Maps.load(tmp_path / "maps.npz")


def test_an_npz_file_of_other_arrays(tmp_path):
    path = tmp_path / "maps.npz"
    np.savez(path, other=HALVES)
    with pytest.raises(InvalidInput, match=r"has no array 'probabilities'; expected maps written by vseg\.$"):
        Maps.load(path)
    np.savez(path, probabilities=HALVES)
    with pytest.raises(InvalidInput, match=r"'probabilities' has shape \(9, 2\), expected \(N, N, K\)\.$"):
        Maps.load(path)
