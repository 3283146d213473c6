"""Designs: which pairs to test in a block.

covering    random pairs; every location is in at least one
balanced    random pairs; every location is in equally many
scattered   balanced pairs; the partners of a location lie in different regions of the image
all_pairs   every pair
oracle      one partner in each segment of a known map, or more of each (Proposition 1)

To add a design, write a function with the parameters of `Design` and add it to `DESIGNS`, by its name in the study
file; then add that name to `vseg.study.sections.DesignSection`. tests/designs checks every entry of `DESIGNS`.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from vseg._support.seeds import Seed, check_seed
from vseg.data.layout import Layout
from vseg.data.pairs import Pairs
from vseg.designs.pair_graphs import (
    Indices,
    avoided_keys,
    bipartite_graph,
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


def oracle(
    layout: Layout,
    *,
    labels: ArrayLike | None = None,
    segments: int | None = None,
    trials: int | None = None,
    avoid: Sequence[Pairs] = (),
    seed: Seed,
) -> Pairs:
    """Draw pairs such that every location has a partner in its own segment and one in each other segment.

    This is the paper's optimal choice for a deterministic map, by Proposition 1 (its Figure 3). KN²/2 pairs suffice for
    it if the segments are equally large, and KN² always; with more pairs, locations have several partners in every
    segment. The segments must be known, so this is the design of simulations and of images with
    known segments. With the labels of a map that was fitted to earlier answers it is the second stage of a two-stage
    design; `vseg.adaptive.two_stage_pairs` does both.

    Parameters
    ----------
    layout : Layout
        The locations.
    labels : array_like of int, shape (n,)
        The segment of each location, such as `maps.labels`. A segment without locations gets no pairs.
    segments : int, optional
        The number of segments K, for KN² pairs without `trials`; by default one more than the largest label.
    trials : int, optional
        The number of pairs. With too few, the pairs are divided over the segments in the same proportions, and some
        locations lack a partner in some of them.
    avoid, seed
        As for `covering`.

    Returns
    -------
    Pairs
        The pairs of one block, in random order.

    Examples
    --------
    >>> from vseg import Grid
    >>> labels = np.arange(256) // 64
    >>> pairs = oracle(Grid(16), labels=labels, trials=512, seed=0)
    >>> set(pairs.partners.tolist())
    {4}
    """
    label = check_labels(layout, labels)
    if trials is None and segments is None:
        segments = max(int(label.max()) + 1, 2)
    if segments is not None and label.max() >= segments:
        raise InvalidInput(
            f"Labels must be 0 to {segments - 1} if there are {segments} segments, got {label.max()}: "
            "increase segments or leave it out."
        )
    count, rng = _check_trials(layout, segments, trials), np.random.default_rng(check_seed(seed))
    members = [rng.permutation(np.flatnonzero(label == k)) for k in np.unique(label)]
    counts = _share_among_segments([len(each) for each in members], count)
    ends: list[tuple[Indices, Indices]] = []
    used = [0] * len(members)  # where each segment's next pairs begin, so that its locations are used evenly
    for (a, b), pairs_between in counts.items():
        if a == b:
            n = len(members[a])
            first, second = circulant_graph(n, pairs_between, *draw_shifts(n, pairs_between, rng))
        else:
            first, second = bipartite_graph(len(members[a]), len(members[b]), pairs_between)
            first, second = (first + used[a]) % len(members[a]), (second + used[b]) % len(members[b])
            used[a], used[b] = used[a] + pairs_between, used[b] + pairs_between
        ends.append((members[a][first], members[b][second]))
    i, j = (np.concatenate(end) for end in zip(*ends, strict=True))
    return switch_partners(layout, i, j, label, avoided_keys(len(layout), avoid), rng, MIXING_ROUNDS)


def _share_among_segments(sizes: Sequence[int], count: int) -> dict[tuple[int, int], int]:
    """Return the number of pairs between each two segments, and within each, `count` in all.

    One partner in each segment takes half as many pairs within a segment as it has locations, and between two segments
    as many as the larger has. Other numbers of pairs are in these proportions, as far as there are pairs.
    """
    keys = [(a, b) for a in range(len(sizes)) for b in range(a, len(sizes))]
    most = np.array([count_pairs(sizes[a]) if a == b else sizes[a] * sizes[b] for a, b in keys])
    needed = np.array([-(-sizes[a] // 2) if a == b else max(sizes[a], sizes[b]) for a, b in keys])
    needed = np.minimum(needed, most)
    shares = np.zeros(len(keys), np.int64)
    while (left := count - shares.sum()) > 0:
        open_keys = shares < most
        wanted = np.where(open_keys, left * needed / needed[open_keys].sum(), 0.0)
        added = np.minimum(wanted.astype(np.int64), most - shares)
        if not added.any():  # fewer pairs are left than kinds of pairs: the largest fractions first
            order = np.argsort(-np.where(open_keys, wanted, -1.0), kind="stable")[
                : min(left, open_keys.sum())
            ]
            added[order] = 1
        shares += added
    return {key: int(share) for key, share in zip(keys, shares, strict=True) if share}


DESIGNS: dict[str, Design] = {
    "covering": covering,
    "balanced": balanced,
    "scattered": scattered,
    "all": all_pairs,
    "oracle": oracle,
}


def get_design(name: str) -> Design:
    """Return the design with this name: covering, balanced, scattered, all or oracle.

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


def check_labels(layout: Layout, labels: ArrayLike | None, segments: int | None = None) -> Indices:
    """Return the label of each location, or raise InvalidInput unless all are whole numbers from 0 to below K."""
    if labels is None:
        raise InvalidInput("Expected labels, the segment of each location, for an oracle design, got none.")
    label = np.asarray(labels)
    if label.shape != (len(layout),) or label.dtype.kind not in "iu":
        raise InvalidInput(
            f"Expected a whole number as the label of each of the {len(layout)} locations of {layout}, got "
            f"{label.dtype} numbers of shape {label.shape}."
        )
    low, high = int(label.min()), int(label.max())
    if low < 0 or (segments is not None and high >= segments):
        most = "" if segments is None else f" to {segments - 1}, for {segments} segments"
        raise InvalidInput(f"Expected labels from 0{most or ' up'}, got {low} to {high}.")
    return label.astype(np.int64)


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
