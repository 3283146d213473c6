"""Designs: which pairs to test in a block.

covering    random pairs; every location is in at least one
balanced    random pairs; every location is in equally many
scattered   balanced pairs; the partners of a location lie in different regions of the image
all_pairs   every pair

To add a design, write a function with the parameters of `Design` and add it to `DESIGNS`, by its name in the study
file; then add that name to `vseg.study.sections.DesignSection`. tests/designs checks every entry of `DESIGNS`.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from vseg._support.seeds import Seed, check_seed
from vseg.data.layout import Layout
from vseg.data.pairs import Pairs
from vseg.designs.pair_graphs import (
    avoided_keys,
    circulant_graph,
    count_pairs,
    cover_with_new_pairs,
    divide_into_regions,
    draw_shifts,
    even_shifts,
    key_of_rank,
    pair_keys,
    switch_partners,
)
from vseg.errors import InvalidInput

MAX_PAIRS = 50_000_000  # in a block
MIXING_ROUNDS = 8  # of switching partners, which make a circulant graph random


class Design(Protocol):
    """A function that draws the pairs of one block; `covering` describes the parameters."""

    def __call__(
        self,
        layout: Layout,
        *,
        segments: int | None = None,
        trials: int | None = None,
        avoid: Sequence[Pairs] = (),
        seed: Seed,
    ) -> Pairs:
        """Draw the pairs of one block."""
        ...


def minimal_trials(layout: Layout, segments: int) -> int:
    """Return (K-1)N², the number of unknowns in K maps.

    Parameters
    ----------
    layout : Layout
        The N² locations.
    segments : int
        K, the number of segments.

    Returns
    -------
    int
        The number of trials.

    Examples
    --------
    >>> from vseg import Grid
    >>> minimal_trials(Grid(16), 5)
    1024
    """
    return (check_segments(segments) - 1) * len(layout)


def paper_trials(layout: Layout, segments: int) -> int:
    """Return KN², the number of pairs in a block of the paper; `advised_answers` is what a posterior needs.

    Parameters
    ----------
    layout : Layout
        The N² locations.
    segments : int
        K, the number of segments.

    Returns
    -------
    int
        The number of trials.

    Examples
    --------
    >>> from vseg import Grid
    >>> paper_trials(Grid(16), 3)
    768
    """
    return check_segments(segments) * len(layout)


def covering(
    layout: Layout,
    *,
    segments: int | None = None,
    trials: int | None = None,
    avoid: Sequence[Pairs] = (),
    seed: Seed,
) -> Pairs:
    """Draw random pairs such that every location is in at least one.

    A random matching covers the locations; the other pairs are drawn uniformly from all remaining ones. If most pairs
    are to be avoided, both are drawn from the others.

    Parameters
    ----------
    layout : Layout
        The locations.
    segments : int, optional
        The number of segments K; without `trials` there are KN² pairs, or all pairs if the layout has fewer.
    trials : int, optional
        The number of pairs.
    avoid : sequence of Pairs, optional
        Pairs not to repeat, such as those of earlier blocks. The covering design repeats one only if too few others
        are left, or if they cannot cover every location; the balanced and the scattered design, which also keep the
        number of partners of each location, may repeat a few more.
    seed : int, SeedSequence or Generator
        Seed of the pairs.

    Returns
    -------
    Pairs
        In random order.

    Examples
    --------
    >>> from vseg import Grid
    >>> pairs = covering(Grid(16), segments=3, seed=0)
    >>> len(pairs), int(pairs.partners.min()) >= 1
    (768, True)
    """
    count, rng = _check_trials(layout, segments, trials), np.random.default_rng(check_seed(seed))
    n = len(layout)
    order = rng.permutation(n)
    if n % 2:
        order = np.append(order, order[0])
    matched = pair_keys(n, order[::2], order[1::2])
    drawn = key_of_rank(n, rng.choice(count_pairs(n), count, replace=False))
    others = drawn[~np.isin(drawn, matched)][: count - len(matched)]
    i, j = np.divmod(np.concatenate([matched, others]), n)
    avoided, most = avoided_keys(n, avoid), count_pairs(n)
    is_scarce = 2 * (len(avoided) + count) > most
    if not (is_scarce and len(avoided)):
        block = switch_partners(layout, i, j, np.zeros(n, np.int64), avoided, rng, mixing=0)
        if most > MAX_PAIRS or not np.isin(pair_keys(n, block.i, block.j), avoided).any():
            return block
    i, j = np.divmod(cover_with_new_pairs(n, count, avoided, rng), n)
    return Pairs(layout, i, j)


def balanced(
    layout: Layout,
    *,
    segments: int | None = None,
    trials: int | None = None,
    avoid: Sequence[Pairs] = (),
    seed: Seed,
) -> Pairs:
    """Draw random pairs such that every location is in equally many (±1 if the number does not divide).

    Parameters
    ----------
    layout, segments, trials, avoid, seed
        As for `covering`.

    Returns
    -------
    Pairs
        The pairs of one block, in random order.

    Examples
    --------
    >>> from vseg import Grid
    >>> set(balanced(Grid(16), segments=3, seed=0).partners.tolist())
    {6}
    """
    count, rng = _check_trials(layout, segments, trials), np.random.default_rng(check_seed(seed))
    n = len(layout)
    whole, last = draw_shifts(n, count, rng)
    order = rng.permutation(n)
    a, b = circulant_graph(n, count, whole, last)
    # A single shift gives a random cycle, which is connected; switches could break it into several.
    mixing = MIXING_ROUNDS if len(whole) else 0
    region = np.zeros(n, np.int64)
    return switch_partners(layout, order[a], order[b], region, avoided_keys(n, avoid), rng, mixing)


def scattered(
    layout: Layout,
    *,
    segments: int | None = None,
    trials: int | None = None,
    avoid: Sequence[Pairs] = (),
    seed: Seed,
) -> Pairs:
    """Draw balanced pairs such that the partners of a location lie in different regions of the image.

    This is the paper's advice for images with unknown segments. With KN² pairs the image is divided into 2K+1 regions
    of equal size, and every location is paired with one random location in each of the 2K others (±1 if the regions
    cannot be equal).

    Parameters
    ----------
    layout, segments, trials, avoid, seed
        As for `covering`.

    Returns
    -------
    Pairs
        The pairs of one block, in random order.

    Examples
    --------
    >>> from vseg import Grid
    >>> pairs = scattered(Grid(16), segments=3, seed=0)
    >>> len(pairs), set(pairs.partners.tolist())
    (768, {6})
    """
    count, rng = _check_trials(layout, segments, trials), np.random.default_rng(check_seed(seed))
    n = len(layout)
    parts = min(2 * -(-count // n) + 1, n)
    region = divide_into_regions(layout.positions, parts, rng)
    whole, last = even_shifts(n, count)
    order = np.lexsort([rng.random(n), region])
    a, b = circulant_graph(n, count, whole, last)
    mixing = MIXING_ROUNDS if len(whole) else 0
    return switch_partners(layout, order[a], order[b], region, avoided_keys(n, avoid), rng, mixing)


def all_pairs(
    layout: Layout,
    *,
    segments: int | None = None,
    trials: int | None = None,
    avoid: Sequence[Pairs] = (),
    seed: Seed | None = None,
) -> Pairs:
    """Return every pair of locations, in random order if there is a seed.

    Parameters
    ----------
    layout : Layout
        The locations.
    segments : int, optional
        Ignored; it is a parameter so that all designs can be called in the same way.
    trials : int, optional
        The number of all pairs; any other number is an error.
    avoid : sequence of Pairs
        Ignored, like `segments`.
    seed : int, SeedSequence or Generator, optional
        Seed of the order; without it, pairs are ordered by their locations.

    Returns
    -------
    Pairs
        All n(n-1)/2 pairs.

    Examples
    --------
    >>> from vseg import Grid
    >>> len(all_pairs(Grid(4)))
    120
    """
    n, count = len(layout), count_pairs(len(layout))
    if count > MAX_PAIRS:
        raise InvalidInput(
            f"{layout} has {count} pairs, more than the {MAX_PAIRS} that a block can have; "
            "use a covering, balanced or scattered design."
        )
    if trials is not None and trials != count:
        raise InvalidInput(
            f"{layout} has {count} pairs, but trials is {trials}; leave trials out or use another design."
        )
    i, j = np.triu_indices(n, k=1)
    pairs = Pairs(layout, i, j)
    return pairs if seed is None else pairs.take(np.random.default_rng(check_seed(seed)).permutation(count))


DESIGNS: dict[str, Design] = {
    "covering": covering,
    "balanced": balanced,
    "scattered": scattered,
    "all": all_pairs,
}


def get_design(name: str) -> Design:
    """Return the design with this name: covering, balanced, scattered or all.

    Parameters
    ----------
    name : str
        The name of a design.

    Returns
    -------
    callable
        The design: a function with the parameters of `covering`.

    Examples
    --------
    >>> get_design("balanced").__name__
    'balanced'
    """
    if name not in DESIGNS:
        raise InvalidInput(f"Expected one of the designs {', '.join(DESIGNS)}, got {name!r}.")
    return DESIGNS[name]


def check_segments(segments: int) -> int:
    """Return the number of segments, or raise InvalidInput unless it is a whole number from 2 up."""
    if not isinstance(segments, (int, np.integer)) or segments < 2:
        raise InvalidInput(f"Expected a whole number of segments from 2 up, got segments={segments!r}.")
    return int(segments)


def _check_trials(layout: Layout, segments: int | None, trials: int | None) -> int:
    """Return the number of pairs to draw: `trials`, or by default KN², or all pairs if the layout has fewer."""
    n, most = len(layout), count_pairs(len(layout))
    if segments is not None:
        check_segments(segments)
    if trials is None:
        if segments is None:
            raise InvalidInput("Expected segments (K, for KN² trials) or trials, got neither.")
        return min(paper_trials(layout, segments), most)
    fewest = -(-n // 2)
    if not isinstance(trials, (int, np.integer)) or not fewest <= trials <= most:
        raise InvalidInput(
            f"Expected {fewest} trials (every location once) to {most} (every pair once) on {layout}, "
            f"got trials={trials!r}."
        )
    return int(trials)
