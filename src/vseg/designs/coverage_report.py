"""Coverage: what a design tests, and what it leaves undecided."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.seeds import Seed, check_seed
from vseg.data.layout import Layout
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.designs.pair_designs import check_labels
from vseg.designs.pair_graphs import Indices
from vseg.designs.precision import advised_answers
from vseg.errors import InvalidInput

AMBIGUITY_MAPS = 20
AMBIGUITY_SEED = 20240
MAX_STACK = 4_000_000  # numbers in a stack of matrices whose singular values are computed at once


@dataclass(frozen=True)
class Coverage:
    """How well a set of pairs covers a layout; `str` gives it as a sentence.

    Attributes
    ----------
    layout : Layout
    locations, pairs : int
        The number of locations and of pairs.
    tested : float
        The share of locations in at least one pair.
    fewest, mean, most : float
        The smallest, mean and largest number of partners of a location.
    median_distance : float
        The median distance between the two locations of a pair, as a fraction of the image's side.
    connected : bool
        Whether every location can be reached from every other along pairs.
    segments, advised : int or None
        K and the advised number of answers (`advised_answers`), if K was given.
    ambiguous : float or None
        The share of locations whose label would remain ambiguous for one-hot maps of K segments.
    spanning : float or None
        The share of locations with a partner in each of the K segments of such maps: those whose partners' probability
        vectors span R^K. `check_independence` computes it for any maps.
    has_labels : bool
        Whether both shares are those of given labels, not a mean over random maps.
    """

    layout: Layout
    pairs: int
    tested: float
    fewest: int
    mean: float
    most: int
    median_distance: float
    connected: bool
    segments: int | None = None
    advised: int | None = None
    ambiguous: float | None = None
    spanning: float | None = None
    has_labels: bool = False

    @property
    def locations(self) -> int:
        """n, the number of locations."""
        return len(self.layout)

    @property
    def _partners(self) -> str:
        if self.fewest == self.most:
            return f"{self.most} partner{'' if self.most == 1 else 's'}"
        return f"{self.fewest} to {self.most} partners (mean {self.mean:.1f})"

    def __str__(self) -> str:
        sentence = (
            f"{self.pairs} pairs on {self.layout} test {self.tested:.0%} of {self.locations} locations, "
            f"each with {self._partners} at a median distance "
            f"of {self.median_distance:.2f} of the image's side, "
            f"in {'one connected graph' if self.connected else 'several unconnected parts'}"
        )
        if self.ambiguous is None:
            return f"{sentence}."
        which = "the given map" if self.has_labels else "a one-hot map"
        return (
            f"{sentence}; for {self.segments} segments {self.advised} answers are advised, {self.spanning:.1%} of the "
            f"locations of {which} would have partners in all of them, and {self.ambiguous:.1%} would stay ambiguous."
        )


def coverage(
    pairs: Pairs,
    *,
    segments: int | None = None,
    labels: ArrayLike | None = None,
    seed: Seed = AMBIGUITY_SEED,
) -> Coverage:
    """Measure how well pairs cover their layout.

    Given K, the share of ambiguous locations is computed too: even if the labels of all its partners were known, the
    answers about such a location fit more than one label, because none was 'same' and its partners have fewer than
    K-1 other labels. It is a mean over random one-hot maps of K segments of about equal size, as is the share of
    locations with a partner in every segment.

    Parameters
    ----------
    pairs : Pairs
        The tested pairs.
    segments : int, optional
        K, the number of segments.
    labels : array_like of int, shape (n,), optional
        The segment of each location, to compute both shares for this map instead of random ones; needs K.
    seed : int, SeedSequence or Generator
        Seed of the random maps; the default is fixed, so that designs are compared on the same maps.

    Returns
    -------
    Coverage
        Numbers of partners, distances, whether all locations are connected, and the share of ambiguous locations.

    Examples
    --------
    >>> from vseg import Grid
    >>> from vseg.designs import balanced
    >>> report = coverage(balanced(Grid(16), segments=3, seed=0), segments=3)
    >>> report.connected, report.ambiguous < 0.02
    (True, True)
    """
    layout, partners = pairs.layout, pairs.partners
    ambiguous, spanning = None, None
    if labels is not None and segments is None:
        raise InvalidInput("The coverage of a map with labels needs segments, the number K of its segments.")
    if segments is not None:
        maps = (
            _draw_random_labels(layout, segments, seed)
            if labels is None
            else [check_labels(layout, labels, segments)]
        )
        found = [_count_labels(pairs, each, segments) for each in maps]
        ambiguous, spanning = (float(np.mean(share)) for share in zip(*found, strict=True))
    return Coverage(
        layout=layout,
        pairs=len(pairs),
        tested=float(np.mean(partners > 0)),
        fewest=int(partners.min()),
        mean=float(partners.mean()),
        most=int(partners.max()),
        median_distance=float(np.median(pairs.distances)) if len(pairs) else float("nan"),
        connected=_is_connected(pairs),
        segments=segments,
        advised=None if segments is None else advised_answers(segments),
        ambiguous=ambiguous,
        spanning=spanning,
        has_labels=labels is not None,
    )


def _is_connected(pairs: Pairs) -> bool:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(pairs.layout)
    graph = coo_array((np.ones(len(pairs)), (pairs.i, pairs.j)), shape=(n, n))
    return bool(connected_components(graph, directed=False, return_labels=False) == 1)


def find_ambiguous_locations(pairs: Pairs, labels: Indices, segments: int) -> NDArray[np.bool_]:
    """Return (n,) whether each location has no 'same' answer and partners with fewer than K-1 other labels.

    Parameters
    ----------
    pairs : Pairs
        The tested pairs.
    labels : array of int, shape (n,)
        The true label of each location.
    segments : int
        K, the number of segments.

    Returns
    -------
    NDArray of bool, shape (n,)
        True for ambiguous locations.

    Examples
    --------
    >>> from vseg import Grid, Pairs
    >>> int(find_ambiguous_locations(Pairs(Grid(3), [0], [1]), np.arange(9) % 3, 3).sum())
    9
    """
    has_partner = _has_partner_in(pairs, labels, segments)
    return ~has_partner[np.arange(len(labels)), labels] & (has_partner.sum(axis=1) < segments - 1)


def _has_partner_in(pairs: Pairs, labels: Indices, segments: int) -> NDArray[np.bool_]:
    """Return (n, K) whether each location has a partner with each label."""
    has_partner = np.zeros((len(labels), segments), bool)
    has_partner[pairs.i, labels[pairs.j]] = True
    has_partner[pairs.j, labels[pairs.i]] = True
    return has_partner


def _count_labels(pairs: Pairs, labels: Indices, segments: int) -> tuple[float, float]:
    """Return the shares of ambiguous locations, and of those with a partner in every segment."""
    ambiguous = find_ambiguous_locations(pairs, labels, segments).mean()
    return float(ambiguous), float(_has_partner_in(pairs, labels, segments).all(axis=1).mean())


def _draw_random_labels(layout: Layout, segments: int, seed: Seed) -> list[Indices]:
    """Draw the labels of random one-hot maps: Voronoi cells of four points per segment."""
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(check_seed(seed))
    centres = [rng.random((4 * segments, 2)) for _ in range(AMBIGUITY_MAPS)]
    return [cKDTree(each).query(layout.positions)[1] % segments for each in centres]


@dataclass(frozen=True, eq=False, repr=False)
class Independence:
    """Whether the probability vectors of the partners of each location are linearly independent, and span R^K.

    Proposition 1 of the paper assumes that they are independent at every tested location; then both losses have the
    same minimum. That they span R^K is what determines a location: given its partners' vectors, the probabilities of
    its answers determine its own. K independent vectors do both; more than K are never independent. `str` gives the
    result as a sentence.

    Attributes
    ----------
    segments : int
        K, the number of segments.
    partners : NDArray of int, shape (n,)
        The number of partners of each location.
    rank : NDArray of int, shape (n,)
        The dimension of the space that their probability vectors span, at most K.
    condition : NDArray of float, shape (n,)
        The condition number of the matrix of their probability vectors: the largest divided by the K-th singular
        value, inf where they do not span R^K. An error of the answers may grow by this factor in the map.
    """

    segments: int
    partners: NDArray[np.int64]
    rank: NDArray[np.int64]
    condition: NDArray[np.float64]

    @property
    def independent(self) -> NDArray[np.bool_]:
        """(n,) whether a location has partners, and their vectors are linearly independent."""
        return (self.partners > 0) & (self.rank == self.partners)

    @property
    def spanning(self) -> NDArray[np.bool_]:
        """(n,) whether the vectors of its partners span R^K."""
        return self.rank == self.segments

    def __str__(self) -> str:
        n, K = len(self.partners), self.segments
        tested = self.partners > 0
        conditions = ""
        if self.spanning.any():
            known = self.condition[self.spanning]
            conditions = (
                f" (condition number {np.median(known):.3g} in the median, {known.max():.3g} at most)"
            )
        too_many = int(np.sum(self.partners > K))
        return (
            f"The probability vectors of the partners span R^{K} at {self.spanning.sum()} of {n} "
            f"locations{conditions}; they are linearly independent at {self.independent.sum()} of {tested.sum()} "
            "tested locations"
            f"{f', and {too_many} have more than {K} partners, which never are' if too_many else ''}."
        )

    def __repr__(self) -> str:
        return f"<Independence: {self}>"


def check_independence(pairs: Pairs, maps: Maps, *, tolerance: float | None = None) -> Independence:
    """Check the condition of Proposition 1: that the vectors of the partners of each location are linearly independent.

    The rank is found from the singular values of the (partners, K) matrix of a location, not from a determinant or a
    matrix of inner products, which would square the condition number.

    Parameters
    ----------
    pairs : Pairs
        The tested pairs.
    maps : Maps
        The maps: true ones, or the reconstructed ones, since the proposition is about critical points of the losses.
    tolerance : float, optional
        A singular value counts as zero up to this share of the largest one of the location. By default rounding errors
        alone count as zero: max(partners, K) times the precision of a float. With reconstructed maps, which are never
        exactly dependent, take their error, such as 0.05.

    Returns
    -------
    Independence
        Rank and condition number of each location.

    Examples
    --------
    >>> from vseg import Grid, Maps
    >>> from vseg.designs import oracle
    >>> maps = Maps.one_hot(Grid(6), np.arange(36) // 12)
    >>> pairs = oracle(Grid(6), labels=maps.labels, trials=54, seed=0)
    >>> print(check_independence(pairs, maps))
    The probability vectors of the partners span R^3 at 36 of 36 locations (condition number 1 in the median, 1 at \
most); they are linearly independent at 36 of 36 tested locations.
    """
    if maps.layout != pairs.layout:
        raise InvalidInput(f"The maps are on {maps.layout}, but the pairs lie on {pairs.layout}.")
    if tolerance is not None and not 0 <= tolerance < 1:
        raise InvalidInput(f"Expected a tolerance from 0 to below 1, got {tolerance!r}.")
    K, partners = maps.segments, pairs.partners
    ends = np.concatenate([pairs.i, pairs.j])
    other = np.concatenate([pairs.j, pairs.i])[np.argsort(ends, kind="stable")]
    start = np.cumsum(partners) - partners
    rank, condition = np.zeros(len(partners), np.int64), np.full(len(partners), np.inf)
    for count in np.unique(partners[partners > 0]).tolist():
        alike = np.flatnonzero(partners == count)
        share = max(count, K) * np.finfo(np.float64).eps if tolerance is None else tolerance
        for part in np.array_split(alike, -(-len(alike) * count * K // MAX_STACK)):
            vectors = maps.probabilities[other[start[part, None] + np.arange(count)]]  # (part, count, K)
            values = np.linalg.svd(vectors, compute_uv=False)
            rank[part] = np.sum(values > share * values[:, :1], axis=1)
            spans = rank[part] == K
            condition[part[spans]] = values[spans, 0] / values[spans, -1]
    return Independence(K, partners, rank, condition)
