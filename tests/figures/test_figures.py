"""Every figure is drawn for real, measured, and read back as pixels."""

import io
import warnings
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from vseg import figures, posterior, simulate
from vseg.data.contours import Contours
from vseg.data.layout import Grid, Scatter
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput, VsegWarning
from vseg.figures import style


def soft_maps(layout, segments, seed=0):
    rng = np.random.default_rng(seed)
    nearness = -12 * np.linalg.norm(layout.positions[:, None] - rng.random((segments, 2)), axis=2)
    p = np.exp(nearness) + 1e-3
    return Maps(layout, p / p.sum(axis=1, keepdims=True))


def believed(layout, segments):
    pairs = some_pairs(layout)
    answers = simulate(soft_maps(layout, segments), pairs, blocks=1, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)  # few draws
        return posterior(answers, segments=segments, draws=8, budget=8, seed=0, threads=1)


def some_image(height=60, width=90):
    return np.random.default_rng(1).integers(0, 256, (height, width, 3), dtype=np.uint8)


def scatter(count=60):
    return Scatter(np.random.default_rng(2).random((count, 2)))


def runs(columns, count=5):
    return np.random.default_rng(3).uniform(0.1, 0.4, (count, columns))


def some_pairs(layout):
    i, j = np.triu_indices(len(layout), 1)
    chosen = np.random.default_rng(4).choice(len(i), 2 * len(layout), replace=False)
    return Pairs(layout, i[chosen], j[chosen])


def many(count, layout, segments=3):
    return {f"participant number {at}": soft_maps(layout, segments, seed=at) for at in range(count)}


def drawing(participant: str) -> Contours:
    return Contours(
        [[[0, 10], [60, 30]], [[5, 5], [9, 9]]], width_px=60, height_px=40, participant=participant
    )


FIGURES = {
    **{
        f"maps {K} {size}": lambda K=K, size=size: figures.maps(
            soft_maps(Grid(size), K), soft_maps(Grid(size), K, 1)
        )
        for K in (1, 2, 3, 7, 12, 30)
        for size in (8, 32)
    },
    "maps scatter": lambda: figures.maps(soft_maps(scatter(), 3), image=some_image(), names=["P1"]),
    "maps wide image": lambda: figures.maps(soft_maps(Grid(8), 3), image=some_image(40, 120)),
    "maps tall image": lambda: figures.maps(soft_maps(Grid(8), 7), image=some_image(120, 40)),
    "maps long names": lambda: figures.maps(
        *[soft_maps(Grid(8), 5)] * 3, names=["the truth before noise was added", "", "a $ and _ b"]
    ),
    **{
        f"intervals {K} {layout}": lambda K=K, layout=layout: figures.intervals(believed(layout, K))
        for K in (2, 3, 8, 12)
        for layout in (Grid(8), scatter())
    },
    "segmentation": lambda: figures.segmentation(soft_maps(Grid(8), 12)),
    "segmentation of many": lambda: figures.segmentation(soft_maps(Grid(8), 20), some_image(30, 90)),
    "entropy": lambda: figures.entropy(soft_maps(Grid(8), 3)),
    "entropy scatter": lambda: figures.entropy(soft_maps(scatter(), 3)),
    "boundaries": lambda: figures.boundaries(soft_maps(Grid(8), 3), some_image()),
    "boundaries of many": lambda: figures.boundaries(many(17, Grid(8)), some_image(20, 90)),
    "participants": lambda: figures.participants(many(7, Grid(8))),
    "contours": lambda: figures.contours([drawing("P1")]),
    "contours of many": lambda: figures.contours(
        [drawing("a $ and _ long name")] * 7,
        [soft_maps(Grid(8), 3), None] * 3 + [soft_maps(scatter(), 2)],
        some_image(40, 60),
        captions=["truth 0.98, map 1.00"] * 7,
        distributions={"truth": [0.2, 0.9], "map": [1.0], "others": np.linspace(0, 1, 400)},
    ),
    "participants scatter": lambda: figures.participants(many(2, scatter()), some_image(20, 90)),
    "participants with different K": lambda: figures.participants(
        {f"participant-number-{K}": soft_maps(Grid(8), K) for K in (2, 3, 12)}
    ),
    "one participant": lambda: figures.participants(many(1, Grid(8))),
    "curves": lambda: figures.curves(
        [1, 2, 4, 128], {"_a": runs(4), "$b": runs(4)}, "blocks", "MAE", seed=0, log="x"
    ),
    "curves log": lambda: figures.curves(
        [1, 10, 1e6], {f"c{at}": runs(3) for at in range(11)}, "blocks", "MAE", seed=0, log="xy"
    ),
    "one curve": lambda: figures.curves([1], {"λ = 0": [0.2]}, "blocks", "MAE", seed=0),
    "groups": lambda: figures.groups(
        {"low uncertainty": runs(9)[0], "a condition of many words": [0.4]}, "mean entropy (nats)"
    ),
    "smoothness curve": lambda: figures.smoothness_curve([0, 0.1, 1, 10, 100], -runs(5), 1),
    "smoothness curve without folds": lambda: figures.smoothness_curve([10, 0, 1e4], [-0.3, -0.4, -0.2], 0),
    "smoothness curve without 0": lambda: figures.smoothness_curve([1, 3, 10], -runs(3), 3),
    "smoothness curves of several kernels": lambda: figures.smoothness_curve(
        [10, 0, 1], -runs(3), 1, kernel="four", others={"eight": -runs(3), "gaussian:2": [-0.3, -0.4, -0.2]}
    ),
    "smoothness curve of one decade": lambda: figures.smoothness_curve([0, 5], -runs(2), 5),
    "segments": lambda: figures.segments([2, 3, 4, 5], -runs(4), [2, 3, 3, 4], chosen=3),
    "segments unchosen": lambda: figures.segments([2, 3, 4], [-0.5, -0.4, -0.4], [2, 3, 3]),
    "design": lambda: figures.design(some_pairs(Grid(16))),
    "design scatter": lambda: figures.design(some_pairs(scatter()), some_image()),
    "design empty": lambda: figures.design(Pairs(Grid(3), [], [])),
    "forest": lambda: figures.forest(
        scores(9), [{"name": "floor", "bits": -0.98}, {"name": "within", "bits": float("nan")}]
    ),
    "forest of one": lambda: figures.forest(scores(1)),
    "forest with all references": lambda: figures.forest(
        scores(3), [{"name": name, "bits": bits} for name, bits in CEILINGS.items()]
    ),
    "calibration": lambda: figures.calibration({f"a model of many words {at}": curve(at) for at in range(7)}),
    "calibration of one": lambda: figures.calibration({"$_": curve(0)}),
    "side by side": lambda: figures.side_by_side(
        {"P1\ncoffee": many(2, Grid(8)), "participant number 2\nrocket": many(4, Grid(8), 12)},
        {"P1\ncoffee": some_image(), "participant number 2\nrocket": some_image(120, 40)},
    ),
    "side by side of many": lambda: figures.side_by_side({"coffee": many(14, scatter())}),
    "side by side of one": lambda: figures.side_by_side({"": many(1, Grid(8), 1)}, {"": some_image(40, 120)}),
}
CEILINGS = {"floor": -0.9, "within": -0.592, "between": -0.543, "entropy": -0.118}


def scores(count):
    rows = np.sort(np.random.default_rng(5).uniform(-0.95, -0.3, count))[::-1]
    return [
        {"model": f"model_{at} on $lab+contrast$", "bits": bits, "low": bits - 0.06, "high": bits + 0.04}
        for at, bits in enumerate(rows.tolist())
    ]


def curve(seed):
    predicted = np.linspace(0.02, 0.98, 10)
    observed = np.clip(predicted + np.random.default_rng(seed).normal(0, 0.05, 10), 0, 1)
    return SimpleNamespace(predicted=predicted.tolist(), observed=observed.tolist(), count=[40] * 10)


@pytest.fixture(params=FIGURES, scope="module")
def figure(request):
    return FIGURES[request.param]()


def test_figure_renders_to_png(figure: Figure):
    """Warnings are errors here, so a missing glyph, an empty contour or a collapsed layout fails."""
    written = io.BytesIO()
    figure.savefig(written, format="png")
    assert np.abs(Image.open(written).size - figure.get_size_inches() * style.DPI).max() <= 1


def test_no_text_overlaps_text_or_a_neighbour_or_leaves_the_figure(figure: Figure):
    texts = visible_texts(figure)
    page = figure.bbox.padded(0.5)
    for text, box, _ in texts:
        assert page.x0 <= box.x0 <= box.x1 <= page.x1, f"{text!r} leaves the figure sideways"
        assert page.y0 <= box.y0 <= box.y1 <= page.y1, f"{text!r} leaves the figure above or below"
    for (one, box, _), (other, other_box, _) in combinations(texts, 2):
        assert not intersect(box, other_box), f"{one!r} lies over {other!r}"
    for text, box, owner in texts:
        for axes in figure.axes:
            assert axes is owner or not intersect(box, axes.bbox), f"{text!r} lies over other axes"


def test_overlap_check_can_fail():
    figure = style.create_figure(2, 1)
    style.write_text(figure, 1, 0.5, "one text")
    style.write_text(figure, 1.05, 0.5, "another")
    with pytest.raises(AssertionError, match="'one text' lies over 'another'"):
        test_no_text_overlaps_text_or_a_neighbour_or_leaves_the_figure(figure)


def visible_texts(figure: Figure):
    """Text, box and owning axes of all that is drawn as text; tick labels outside the view are not."""
    figure.draw_without_rendering()
    hidden = {id(text) for axes in figure.axes for text in undrawn_tick_labels(axes)}
    return [
        (text.get_text(), text.get_window_extent(), text.axes)
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden
    ]


def undrawn_tick_labels(axes: Axes):
    for axis in (axes.xaxis, axes.yaxis):
        drawn = {id(tick) for tick in axis._update_ticks()}
        for tick in [*axis.majorTicks, *axis.minorTicks]:
            if id(tick) not in drawn:
                yield from (tick.label1, tick.label2)


def intersect(one, other, slack=0.5):
    return (
        min(one.x1, other.x1) - max(one.x0, other.x0) > slack
        and min(one.y1, other.y1) - max(one.y0, other.y0) > slack
    )


@pytest.mark.parametrize(("segments", "rows"), [(2, 1), (3, 2), (12, 2)])
def test_maps_have_a_panel_per_segment_two_more_panels_and_two_scales(segments, rows):
    drawn = figures.maps(*[soft_maps(Grid(8), segments)] * rows)
    assert len(drawn.axes) == rows * (segments + 2) + 2
    titles = [axes.get_title() for axes in drawn.axes[: segments + 2]]
    assert titles == [*"ABCDEFGHIJKL"[:segments], "segmentation", "entropy"]
    assert drawn.axes[-2].get_xlabel() == "probability"
    assert drawn.axes[-1].get_xlabel() == "entropy (nats)"


def test_two_rows_are_truth_and_reconstruction_unless_named():
    maps = soft_maps(Grid(8), 2)
    assert {"truth", "reconstruction"} <= {text.get_text() for text in figures.maps(maps, maps).texts}
    named = figures.maps(maps, maps, names=["P1", "P2"])
    assert {"P1", "P2"} <= {text.get_text() for text in named.texts}


def test_mean_entropy_is_below_the_entropy_map():
    texts = [text.get_text() for text in figures.maps(Maps(Grid(3), [[0.5, 0.5]] * 9)).texts]
    assert "mean 0.69 nats" in texts


def shown(axes):
    return np.asarray(axes.images[0].get_array())


def test_probability_runs_from_black_to_the_colour_of_the_segment():
    labels = np.repeat([0, 1, 2], 3)
    drawn = figures.maps(Maps.one_hot(Grid(3), labels))
    for segment, axes in enumerate(drawn.axes[:3]):
        pixels = shown(axes).reshape(9, 3)
        assert (pixels[labels != segment] == 0).all()
        assert np.allclose(pixels[labels == segment], to_rgb(figures.SEGMENT_COLOURS[segment]))


def test_entropy_is_grey_from_0_to_log_k():
    drawn = figures.maps(soft_maps(Grid(8), 3))
    (picture,) = drawn.axes[4].images
    assert picture.get_clim() == (0, pytest.approx(np.log(3)))
    assert picture.get_cmap().name == "gray"


def test_rows_are_aligned_to_the_first():
    """Labels are arbitrary (Eq. 4), so another order of the same maps must give the same pictures."""
    truth = soft_maps(Grid(8), 4)
    drawn = figures.maps(truth, truth.permute([2, 0, 3, 1]))
    for first, second in zip(drawn.axes[:6], drawn.axes[6:12], strict=True):
        assert np.allclose(shown(first), shown(second))


def test_rows_on_other_layouts_are_drawn_as_they_are():
    drawn = figures.maps(soft_maps(Grid(8), 2), soft_maps(scatter(), 2))
    assert shown(drawn.axes[0]).shape == (8, 8, 3)
    assert shown(drawn.axes[4]).shape == (style.RASTER_PX, style.RASTER_PX, 3)


def test_scatter_is_drawn_by_the_nearest_location():
    layout = scatter()
    drawn = figures.entropy(maps := soft_maps(layout, 3))
    cells = layout.cells(style.RASTER_PX, style.RASTER_PX)
    assert np.array_equal(shown(drawn.axes[0]), maps.entropy[cells])


@pytest.mark.parametrize("layout", [Grid(8), scatter()])
def test_boundary_lies_where_the_label_changes(layout):
    left = layout.positions[:, 0] < 0.5
    lines = style.boundary_lines(Maps.one_hot(layout, 1 - left.astype(int)))
    crossings = np.concatenate(lines)[:, 0]
    assert np.abs(crossings - 0.5).max() < (0.01 if isinstance(layout, Grid) else 0.25)


def test_one_segment_has_no_boundary():
    assert style.boundary_lines(Maps(Grid(3), [[1.0, 0.0]] * 9)) == []


def test_curve_interval_depends_on_the_seed_alone():
    values = {"a": runs(4, count=30)}

    def band(seed):
        drawn = figures.curves([1, 2, 3, 4], values, "blocks", "MAE", seed=seed)
        return drawn.axes[0].collections[0].get_paths()[0].vertices

    assert np.array_equal(band(1), band(1))
    assert not np.array_equal(band(1), band(2))


def test_curve_interval_is_near_the_normal_one():
    """1000 resamples of 400 runs: the bootstrap interval is ± 1.96 standard errors within a tenth of it."""
    values = np.random.default_rng(5).normal(size=(400, 3))
    axes = figures.curves([1, 2, 3], {"a": values}, "x", "y", seed=0).axes[0]
    y = axes.collections[0].get_paths()[0].vertices[:, 1]
    width = 2 * 1.96 * values.std(axis=0).mean() / 20
    assert y.max() - y.min() >= 0.9 * width
    low, high = figures.charts._bootstrap_interval(values, np.random.default_rng(0))
    assert np.allclose(high - low, 2 * 1.96 * values.std(axis=0) / 20, rtol=0.1)


def test_lambda_0_stands_apart_and_the_chosen_one_is_named():
    axes = figures.smoothness_curve([0, 0.1, 1, 10], -runs(4), 0).axes[0]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["0", "0.1", "1", "10"]
    assert axes.get_title() == "chosen λ = 0"
    joined = [line for line in axes.lines if len(line.get_xdata()) == 3]
    assert len(joined) == 1, "λ = 0 is not joined to the others"


def test_different_numbers_of_segments_are_written_beside_the_names():
    figure = figures.participants({"Ann": soft_maps(Grid(8), 2), "Bob": soft_maps(Grid(8), 3)})
    assert [axes.get_title() for axes in figure.axes[:2]] == ["Ann (K = 2)", "Bob (K = 3)"]
    alike = figures.participants({"Ann": soft_maps(Grid(8), 2), "Bob": soft_maps(Grid(8), 2, 1)})
    assert [axes.get_title() for axes in alike.axes[:2]] == ["Ann", "Bob"]


def test_every_kernel_is_named_and_the_chosen_one_has_the_band():
    scores = {"eight": -runs(3), "gaussian:2": -2 * runs(3)}
    figure = figures.smoothness_curve([10, 0, 1], -runs(3), 1, kernel="four", others=scores)
    axes = figure.axes[0]
    assert axes.get_title() == "chosen λ = 1, kernel four"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["four", "eight", "gaussian:2"]
    (band,) = (one for one in axes.collections if isinstance(one, PolyCollection))
    assert np.allclose(band.get_facecolor()[0, :3], to_rgb(axes.lines[0].get_color()))
    heights = [line.get_ydata() for line in axes.lines if len(line.get_xdata()) == 2]
    assert any(
        np.allclose(y, -2 * runs(3).mean(axis=0)[[2, 0]]) for y in heights
    )  # λ = 1 and 10, in this order


def test_design_histogram_counts_every_location_once():
    pairs = some_pairs(Grid(16))
    bars = figures.design(pairs).axes[1].patches
    assert sum(bar.get_height() for bar in bars) == 256


# Machado et al. (2009), severity 1: how red, green and blue look without L or without M cones.
PROTANOPIA = [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
]
DEUTERANOPIA = [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
]
LMS = [[0.41222, 0.53633, 0.05145], [0.2119, 0.6807, 0.1074], [0.0883, 0.28172, 0.62998]]
LAB = [[0.21045, 0.79362, -0.00407], [1.978, -2.42859, 0.45059], [0.0259, 0.78277, -0.80868]]


@pytest.mark.parametrize("eye", [np.eye(3), PROTANOPIA, DEUTERANOPIA], ids=["normal", "protan", "deutan"])
def test_segment_colours_differ_from_each_other_and_from_black(eye):
    """OKLab distances; 0.02 is about just noticeable, so 0.07 leaves room."""
    colours = np.array([(0, 0, 0), *map(to_rgb, figures.SEGMENT_COLOURS)])
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(eye), 0, 1)
    lab = np.cbrt(seen @ np.transpose(LMS)) @ np.transpose(LAB)
    distances = np.linalg.norm(lab[:, None] - lab[None], axis=2) + 9 * np.eye(len(lab))
    assert len(colours) >= 13
    assert distances.min() > 0.07


MAPS = Maps(Grid(3), [[0.5, 0.5]] * 9)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: figures.maps(), "Expected at least one Maps to draw, got none."),
        (
            lambda: figures.maps(MAPS, 3),
            "Expected Maps or a Posterior to draw, got int; of a reconstruction, draw its `.maps`.",
        ),
        (
            lambda: figures.maps(MAPS, names=["a", "b"]),
            "Expected 1 names, one for each of the maps, got ['a', 'b'].",
        ),
        (
            lambda: figures.maps(MAPS, image=[1, 2]),
            "An image is an array of shape (height, width) or (height, width, 3), got shape (2,).",
        ),
        (
            lambda: figures.boundaries(MAPS, [[0.0, 255.0]]),
            "An image holds numbers from 0 to 1, or whole numbers such as uint8; got values from 0 to 255 "
            "of type float64.",
        ),
        (lambda: figures.participants(MAPS), "Expected a mapping from participant to Maps, got Maps."),
        (lambda: figures.participants({}), "Expected at least one Maps to draw, got none."),
        (
            lambda: figures.curves([1, 2], {"a": [[1, 2, 3]]}, "x", "y", seed=0),
            "Curve 'a' has shape (runs, 2), one column for each x, got (1, 3).",
        ),
        (
            lambda: figures.curves([1, 2], {"a": [[1, np.nan]]}, "x", "y", seed=0),
            "Expected finite numbers for curve 'a', some are NaN or infinite.",
        ),
        (
            lambda: figures.curves([0, 2], {"a": [[1, 2]]}, "x", "y", seed=0, log="x"),
            "A logarithmic axis takes values above 0, got 0.",
        ),
        (
            lambda: figures.curves([1], {"a": [1]}, "x", "y", seed=0, log="z"),
            "Expected log to be '', 'x', 'y' or 'xy', got 'z'.",
        ),
        (
            lambda: figures.curves([1], {}, "x", "y", seed=0),
            "Expected curves as a mapping from name to runs, got {}.",
        ),
        (lambda: figures.groups({}, "y"), "Expected at least one group of values, got none."),
        (
            lambda: figures.groups({"a": []}, "y"),
            "Group 'a' is a list of one value or more, got shape (0,).",
        ),
        (
            lambda: figures.smoothness_curve([0, 1], [0, 0], 2),
            "The chosen smoothness 2 is not among those tried: [0.0, 1.0].",
        ),
        (
            lambda: figures.smoothness_curve([0, 1], [0, 0, 0], 1),
            "Expected held-out scores of shape (folds, 2), one column for each smoothness, got (1, 3).",
        ),
        (
            lambda: figures.smoothness_curve([0], [0], 0),
            "Smoothnesses are 0 or more and at least one is above 0, got [0.0].",
        ),
        (
            lambda: figures.segments([2, 3], [0, 0], [2]),
            "Expected 2 numbers of winning maps, got shape (1,).",
        ),
        (lambda: figures.design(MAPS), "Expected Pairs to draw, got Maps."),
    ],
)
def test_invalid_input_is_rejected_with_a_message(call, sentence):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert str(caught.value) == sentence


def test_side_by_side_uses_the_same_colours_in_a_row():
    """Labels are arbitrary: the second column is drawn under the labels of the first."""
    maps = soft_maps(Grid(8), 3)
    axes = figures.side_by_side({"coffee": {"people": maps, "slic": maps.permute([2, 0, 1])}}).axes
    first, second = (each.images[0].get_array() for each in axes)
    assert np.allclose(first, second)


def test_side_by_side_leaves_a_gap_for_missing_maps():
    one, other = many(1, Grid(8)), {"slic": soft_maps(Grid(8), 2)}
    assert len(figures.side_by_side({"a": one, "b": other}).axes) == 2


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.forest([]),
        lambda: figures.calibration({}),
        lambda: figures.side_by_side({}),
        lambda: figures.side_by_side({"coffee": {}}),
        lambda: figures.side_by_side({"coffee": {"slic": np.zeros((8, 8))}}),
    ],
)
def test_nothing_to_compare_is_rejected_with_a_message(draw):
    with pytest.raises(InvalidInput, match=r"^Expected .* to draw"):
        draw()
