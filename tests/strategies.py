"""Hypothesis strategies for the data types: `from strategies import some_maps` in any test."""

import numpy as np
from hypothesis import strategies as st

from vseg.data.layout import Grid, Layout, Scatter
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.data.responses import COLUMNS, Responses

seeds = st.integers(0, 2**32 - 1)
# A name that a table gives back as it was: no spaces at its ends, nothing that cannot be written as UTF-8.
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).map(str.strip)


def grids(largest: int = 8) -> st.SearchStrategy[Grid]:
    """Grids of odd and even size."""
    return st.builds(Grid, st.integers(3, largest))


@st.composite
def scatters(draw: st.DrawFn) -> Scatter:
    """Distinct points, well apart: cells of a fine raster, moved a little within them."""
    rng = np.random.default_rng(draw(seeds))
    cells = rng.choice(100, draw(st.integers(6, 30)), replace=False)
    corners = np.stack(np.divmod(cells, 10), axis=1)
    return Scatter((corners + rng.uniform(0.2, 0.8, corners.shape)) / 10)


def layouts() -> st.SearchStrategy[Layout]:
    """A grid or a scatter."""
    return st.one_of(grids(), scatters())


@st.composite
def some_maps(
    draw: st.DrawFn, layout: st.SearchStrategy[Layout] | None = None, segments: int | None = None
) -> Maps:
    """Maps from sure (sharp) to unsure (flat), some with probabilities of exactly 0."""
    where = draw(layouts() if layout is None else layout)
    K = segments or draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(seeds))
    p = rng.dirichlet(np.full(K, draw(st.sampled_from([0.1, 1.0, 10.0]))), size=len(where))
    p[p < draw(st.sampled_from([0.0, 0.05]))] = 0
    return Maps(where, p / p.sum(axis=1, keepdims=True))


@st.composite
def some_pairs(draw: st.DrawFn, layout: st.SearchStrategy[Layout] | None = None) -> Pairs:
    """One pair or more, in any order."""
    where = draw(layouts() if layout is None else layout)
    i, j = np.triu_indices(len(where), 1)
    rng = np.random.default_rng(draw(seeds))
    chosen = rng.choice(len(i), draw(st.integers(1, min(len(i), 60))), replace=False)
    return Pairs(where, i[chosen], j[chosen])


@st.composite
def some_responses(draw: st.DrawFn, layout: st.SearchStrategy[Layout] | None = None) -> Responses:
    """Trials on some pairs, either end first, of a few participants and images, with or without times."""
    pairs = draw(some_pairs(layout))
    rng = np.random.default_rng(draw(seeds))
    count = draw(st.integers(1, 80))
    row = rng.integers(len(pairs), size=count)
    ends = rng.permuted(np.stack([pairs.i[row], pairs.j[row]], axis=1), axis=1)
    people, images = (draw(st.lists(names, min_size=1, max_size=3)) for _ in range(2))
    times = rng.uniform(200, 3000, count).round(1)
    return Responses(
        pairs.layout,
        ends[:, 0],
        ends[:, 1],
        rng.integers(0, 2, count),
        participant=rng.choice(people, count),
        image=rng.choice(images, count),
        block=rng.integers(0, 5, count),
        trial=rng.permutation(count),
        rt_ms=np.where(rng.random(count) < 0.2, np.nan, times),
    )


def same_rows(one: Responses, other: Responses) -> bool:
    """Whether two hold the same trials in the same order; a time that is unknown equals another such."""
    return one.layout == other.layout and all(
        np.array_equal(getattr(one, name), getattr(other, name), equal_nan=name == "rt_ms")
        for name in COLUMNS
    )
