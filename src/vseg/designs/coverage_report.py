"""Coverage: what a design tests, and what it leaves undecided."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vseg._support.seeds import Seed, check_seed
from vseg.data.layout import Layout
from vseg.data.pairs import Pairs
from vseg.designs.pair_graphs import Indices
from vseg.designs.precision import advised_answers

AMBIGUITY_MAPS = 20
AMBIGUITY_SEED = 20240


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
        return (
            f"{sentence}; for {self.segments} segments {self.advised} answers are advised, and "
            f"{self.ambiguous:.1%} of the locations of a one-hot map would stay ambiguous."
        )


def coverage(pairs: Pairs, *, segments: int | None = None, seed: Seed = AMBIGUITY_SEED) -> Coverage:
    """Measure how well pairs cover their layout.

    Given K, the share of ambiguous locations is computed too: even if the labels of all its partners were known, the
    answers about such a location fit more than one label, because none was 'same' and its partners have fewer than
    K-1 other labels. It is a mean over random one-hot maps of K segments of about equal size.

    Parameters
    ----------
    pairs : Pairs
        The tested pairs.
    segments : int, optional
        K, the number of segments.
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
        ambiguous=None if segments is None else _share_ambiguous(pairs, segments, seed),
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
    has_partner = np.zeros((len(labels), segments), bool)
    has_partner[pairs.i, labels[pairs.j]] = True
    has_partner[pairs.j, labels[pairs.i]] = True
    return ~has_partner[np.arange(len(labels)), labels] & (has_partner.sum(axis=1) < segments - 1)


def _share_ambiguous(pairs: Pairs, segments: int, seed: Seed) -> float:
    """Return the share of ambiguous locations, averaged over random one-hot maps."""
    rng = np.random.default_rng(check_seed(seed))
    maps = (_draw_labels(pairs.layout, segments, rng) for _ in range(AMBIGUITY_MAPS))
    return float(np.mean([find_ambiguous_locations(pairs, labels, segments).mean() for labels in maps]))


def _draw_labels(layout: Layout, segments: int, rng: np.random.Generator) -> Indices:
    """Draw (n,) labels of a random one-hot map: Voronoi cells of four points per segment."""
    from scipy.spatial import cKDTree

    centres = rng.random((4 * segments, 2))
    return cKDTree(centres).query(layout.positions)[1] % segments
