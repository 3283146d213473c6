"""Data that nobody would plan, and what every fit of them has to be: `from degenerate import tallies, outcome, check`.

A fit gives maps on the simplex, or one sentence; never NaN, a warning of NumPy's, another exception, or no end.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from vseg import Grid, Maps, Pairs, Responses, Scatter
from vseg.data.responses import Tally
from vseg.errors import NotConverged, VsegError, VsegWarning

STRENGTHS = (0.0, 5e-324, 1e-300, 1e-12, 1e-3, 0.3, 1.0, 30.0, 1e3, 1e6, 1e12)
IMPOSSIBLE = (np.inf, -np.inf, np.nan, -1.0, -5e-324, 1.1e12, 1e300, "strong", None, 1j)
KERNELS = ("four", "eight", "gaussian:0.001", "gaussian:1.5", "gaussian:10000")
MILLION = 10**6


@st.composite
def layouts(draw: Any, largest: int = 5) -> Any:
    """A grid from 3x3 up, or a few points, some of them all but on one line."""
    if draw(st.integers(0, 3)):
        return Grid(draw(st.integers(3, largest)))
    points = draw(st.lists(st.tuples(_fraction, _fraction), min_size=5, max_size=12, unique=True))
    try:
        return Scatter([list(point) for point in points])
    except VsegError:  # too close together, or on a line
        return Grid(3)


_fraction = st.one_of(
    st.floats(0.0, 1.0, allow_subnormal=False), st.integers(0, 8).map(lambda eighth: eighth / 8)
)


@st.composite
def tallies(draw: Any, largest: int = 5) -> Tally:
    """One pair, a star, islands, or any pairs; answered alike, against each other, or a million times."""
    layout = draw(layouts(largest))
    pairs = draw(st.sampled_from([_one, _star, _islands, _some, _all]))(layout, draw)
    n = draw(st.sampled_from([1, 2, 7, MILLION]))
    tested = np.full(len(pairs), n)
    if draw(st.booleans()):
        tested[0] = MILLION  # one pair outweighs all others
    same = draw(st.sampled_from(["none", "all", "half", "coin", "triads"]))
    share = {"none": 0.0, "all": 1.0, "half": 0.5}.get(same)
    if share is None:
        chance = np.random.default_rng(draw(st.integers(0, 99)))
        share = chance.integers(0, 2, len(pairs)) if same == "coin" else np.arange(len(pairs)) % 3 != 0
    return Tally(pairs, np.floor(tested * share), tested)


def _one(layout: Any, draw: Any) -> Pairs:
    i, j = draw(st.lists(st.integers(0, len(layout) - 1), min_size=2, max_size=2, unique=True))
    return Pairs(layout, [i], [j])


def _star(layout: Any, draw: Any) -> Pairs:
    centre = draw(st.integers(0, len(layout) - 1))
    others = [place for place in range(len(layout)) if place != centre]
    return Pairs(layout, [centre] * len(others), others)


def _islands(layout: Any, draw: Any) -> Pairs:
    size = draw(st.integers(2, 4))
    joined = [
        (a, b)
        for first in range(0, len(layout) - size + 1, size)
        for a in range(first, first + size)
        for b in range(a + 1, first + size)
    ]
    return Pairs(layout, *np.array(joined).T)


def _all(layout: Any, draw: Any) -> Pairs:
    return Pairs(layout, *np.triu_indices(len(layout), 1))


def _some(layout: Any, draw: Any) -> Pairs:
    i, j = np.triu_indices(len(layout), 1)
    chosen = np.random.default_rng(draw(st.integers(0, 99))).permutation(len(i))[
        : draw(st.integers(1, len(i)))
    ]
    return Pairs(layout, i[chosen], j[chosen])


def rows(tally: Tally, most: int = 4) -> Responses:
    """Answers behind a tally, at most so many of a pair."""
    n = np.minimum(tally.n, most)
    k = np.round(tally.share * n).astype(int)
    same = np.concatenate([np.arange(count) < yes for count, yes in zip(n, k, strict=True)])
    return Responses(tally.layout, np.repeat(tally.pairs.i, n), np.repeat(tally.pairs.j, n), same)


def outcome(fit: Callable[[], Any]) -> Any:
    """What a fit returns, or reached before it gave up, or None after a sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", VsegWarning)
        try:
            return fit()
        except NotConverged as error:
            return error.result
        except VsegError as error:
            sentence = str(error)
            assert sentence.endswith((".", "?"))
            assert "\n" not in sentence
            assert "nan" not in sentence.lower().replace("got nan", "")
            return None


def check(maps: Maps, tally: Tally, segments: int) -> None:
    p = maps.probabilities
    assert p.shape == (len(tally.layout), segments)
    assert np.isfinite(p).all()
    assert p.min() >= 0
    assert np.abs(p.sum(axis=1) - 1).max() < 1e-9
    assert np.isfinite(maps.entropy).all()
