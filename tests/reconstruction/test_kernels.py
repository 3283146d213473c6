import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.ndimage import convolve
from scipy.sparse import csr_array

from strategies import layouts, some_maps
from vseg import Grid, Scatter
from vseg.errors import InvalidInput
from vseg.reconstruction.kernels import build_smoothness, gaussian

KERNELS = ["four", "eight", "gaussian:1.5", ("gaussian", 0.7), "gaussian:0.01"]


@pytest.mark.parametrize("kernel", KERNELS)
@given(layout=layouts())
def test_weights_are_row_stochastic(kernel, layout):
    """So a constant map costs nothing, and rows of R sum to zero (the solvers rely on it)."""
    penalty = build_smoothness(layout, kernel)
    assert penalty.weights.sum(axis=1) == pytest.approx(1)
    assert penalty.weights.data.min() >= 0
    assert penalty.penalty(np.full((len(layout), 3), 1 / 3)) == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("kernel", KERNELS)
@given(maps=some_maps())
def test_the_flat_matrix_gives_the_same_penalty(kernel, maps):
    penalty, p = build_smoothness(maps.layout, kernel), maps.probabilities
    n, flat = len(p), penalty.matrix
    rest = csr_array((flat.value, flat.column, flat.start), shape=(n, n))
    assert np.sum(p * (flat.diagonal[:, None] * p + rest @ p)) == pytest.approx(penalty.penalty(p), abs=1e-10)


@pytest.mark.parametrize(
    ("kernel", "stencil"),
    [
        ("four", [[0, 1, 0], [1, 0, 1], [0, 1, 0]]),
        ("eight", [[1, 1, 1], [1, 0, 1], [1, 1, 1]]),
    ],
)
@pytest.mark.parametrize("size", [5, 6])
def test_a_grid_kernel_is_a_convolution_with_repeated_edges(kernel, stencil, size):
    """The paper: edge values are repeated; scipy's 'nearest' does the same."""
    picture = np.random.default_rng(0).random((size, size))
    weights = np.array(stencil) / np.sum(stencil)
    expected = convolve(picture, weights, mode="nearest")
    assert build_smoothness(Grid(size), kernel).weights @ picture.ravel() == pytest.approx(expected.ravel())


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (1, 7), (9, 9)])
@pytest.mark.parametrize("size", [5, 6])
def test_an_array_is_a_convolution_with_repeated_edges(shape, size):
    """G∗q = Σ_j G_j q_(i-j), as scipy's convolve has it: an asymmetric kernel is flipped; the weights sum to 1."""
    rng = np.random.default_rng(1)
    stencil, picture = rng.random(shape), rng.random((size, size))
    expected = convolve(picture, stencil / stencil.sum(), mode="nearest")
    for kernel in (stencil, stencil.tolist()):
        assert build_smoothness(Grid(size), kernel).weights @ picture.ravel() == pytest.approx(
            expected.ravel()
        )


@pytest.mark.parametrize("width", [0.5, 1.0, 2.0])
def test_the_centre_of_a_gaussian_kernel_only_changes_the_strength(width):
    """The penalty with the centre, of weight c, is (1-c)² times that of "gaussian:WIDTH", which leaves it out."""
    reach = int(np.ceil(3 * width))
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    whole = np.exp(-(x**2 + y**2) / (2 * width**2)) * (x**2 + y**2 <= (3 * width) ** 2)
    centre = whole[reach, reach] / whole.sum()
    p = np.random.default_rng(0).dirichlet(np.ones(3), 81)
    with_centre, without = (
        build_smoothness(Grid(9), kernel).penalty(p) for kernel in (whole, f"gaussian:{width}")
    )
    assert with_centre == pytest.approx((1 - centre) ** 2 * without)


def test_a_gaussian_kernel_has_its_width():
    weights = gaussian(Grid(41), 2.0)[[41 * 20 + 20]].toarray().reshape(41, 41)
    offset = np.arange(41) - 20
    spread = np.sqrt((weights.sum(axis=0) * offset**2).sum())
    assert spread == pytest.approx(2.0, rel=0.05)  # cut at three standard deviations, centre left out


def test_a_users_matrix_is_taken_as_it_is():
    ring = np.roll(np.eye(9), 1, axis=1)
    penalty = build_smoothness(Grid(3), ring)
    p = np.random.default_rng(0).dirichlet(np.ones(2), 9)
    assert penalty.penalty(p) == pytest.approx(np.sum((p - ring @ p) ** 2))


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        ("five", "Unknown kernel 'five'; choose four, eight, gaussian:WIDTH"),
        ("gaussian:wide", "Unknown kernel 'gaussian:wide'"),
        ("gaussian:-1", "Unknown kernel 'gaussian:-1'"),
        ("gaussian:1e300", "Unknown kernel 'gaussian:1e300'"),
        ("gaussian:1e-300", "Unknown kernel 'gaussian:1e-300'"),
        ("gaussian", "Unknown kernel 'gaussian'"),
        (("gaussian",), "Unknown kernel"),
        (("gaussian", None), "Unknown kernel"),
        ((), "A kernel for a 3x3 grid is an array with two odd sides up to 5"),
        ([[1, 2], [3]], "Expected numbers for a kernel"),
        (np.ones((7, 7)), r"two odd sides up to 5, or a matrix that has shape \(9, 9\), got \(7, 7\)"),
        (np.ones(3), r"got \(3,\)"),
        (
            [[0, 1, 0], [1, -4, 1], [0, 1, 0]],
            "numbers from 0 up, the smallest is -4; the Laplacian .* is the kernel 'four'",
        ),
        (np.full((3, 3), np.nan), "numbers from 0 up"),
        (np.eye(3) * [0, 1, 0], "has weight outside its centre"),
        (np.eye(4), r"has shape \(9, 9\), got \(4, 4\)"),
        (2 * np.eye(9), "rows summing to 1; its smallest entry is 0, its rows sum to 2..2"),
        (-np.eye(9), "non-negative"),
    ],
)
def test_bad_kernels(kernel, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        build_smoothness(Grid(3), kernel)


def test_an_array_needs_a_grid():
    points = Scatter(np.random.default_rng(0).random((20, 2)))
    with pytest.raises(InvalidInput, match=r"is a matrix that has shape \(20, 20\), got \(3, 3\)"):
        build_smoothness(points, np.ones((3, 3)))


@given(width=st.floats(0.1, 2))
def test_a_scatter_on_a_grid_smooths_like_the_grid(width):
    """A scatter at a grid's own positions has the same Gaussian neighbourhood inside (edges differ)."""
    grid = Grid(9)
    inside = 9 * 4 + 4
    on_grid = gaussian(grid, width)[[inside]].toarray()
    on_scatter = gaussian(Scatter(grid.positions), width)[[inside]].toarray()
    assert on_scatter == pytest.approx(on_grid, abs=0.02)
