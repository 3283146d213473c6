"""Designs: which pairs to test in a block.

covering    random pairs; every location is in at least one
balanced    random pairs; every location is in equally many
scattered   balanced pairs; the partners of a location lie in different regions of the image
all_pairs   every pair

To add a design, write a function with the parameters of `Design` and add it to `DESIGNS`, by its name in the study
file; then add that name to `vseg.study.sections.DesignSection`. tests/designs checks every entry of `DESIGNS`.

Balanced and scattered designs start from circulant graphs: in some order of the locations, each is joined with those
a few fixed shifts away. Such graphs are balanced and free of duplicates; random switches of partners then remove their
regularity and keep both properties.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vseg._support.seeds import Seed, check_seed
from vseg.data.layout import Layout
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput

Indices = NDArray[np.int64]

MOST_PAIRS = 50_000_000  # in a block
MIXING_ROUNDS = 8  # of switching partners, which make a circulant graph random
REPAIR_ROUNDS = 200  # at most, to remove pairs that should be avoided
WALK_STEPS = 1000  # at most, of an alternating walk to the next unmatched location


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
    return (_check_segments(segments) - 1) * len(layout)


def recommended_trials(layout: Layout, segments: int) -> int:
    """Return KN², the number of trials the paper collects for K segments.

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
    >>> recommended_trials(Grid(16), 3)
    768
    """
    return _check_segments(segments) * len(layout)


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
    segments : int, optional
        The number of segments K; without `trials` there are KN² pairs, or all pairs if the layout has fewer.
    trials : int, optional
        The number of pairs.
    avoid : sequence of Pairs, optional
        Pairs not to repeat, such as those of earlier blocks. The covering design repeats one only if too few others
        are left, or if they cannot cover every location; the balanced and the scattered design, which also keep the
        number of partners of each location, may repeat a few more.
    seed : int, SeedSequence or Generator

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
    matched = _keys(n, order[::2], order[1::2])
    drawn = _key_of_rank(n, rng.choice(_count_pairs(n), count, replace=False))
    others = drawn[~np.isin(drawn, matched)][: count - len(matched)]
    i, j = np.divmod(np.concatenate([matched, others]), n)
    avoided, most = _avoided_keys(n, avoid), _count_pairs(n)
    is_scarce = 2 * (len(avoided) + count) > most
    if not (is_scarce and len(avoided)):
        block = _switch_partners(layout, i, j, np.zeros(n, np.int64), avoided, rng, mixing=0)
        if most > MOST_PAIRS or not np.isin(_keys(n, block.i, block.j), avoided).any():
            return block
    i, j = np.divmod(_cover_with_new_pairs(n, count, avoided, rng), n)
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
    whole, last = _draw_shifts(n, count, rng)
    order = rng.permutation(n)
    a, b = _circulant(n, count, whole, last)
    # A single shift gives a random cycle, which is connected; switches could break it into several.
    mixing = MIXING_ROUNDS if len(whole) else 0
    region = np.zeros(n, np.int64)
    return _switch_partners(layout, order[a], order[b], region, _avoided_keys(n, avoid), rng, mixing)


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
    region = _divide_into_regions(layout.positions, parts, rng)
    whole, last = _even_shifts(n, count)
    order = np.lexsort([rng.random(n), region])
    a, b = _circulant(n, count, whole, last)
    mixing = MIXING_ROUNDS if len(whole) else 0
    return _switch_partners(layout, order[a], order[b], region, _avoided_keys(n, avoid), rng, mixing)


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
    n, count = len(layout), _count_pairs(len(layout))
    if count > MOST_PAIRS:
        raise InvalidInput(
            f"{layout} has {count} pairs, more than the {MOST_PAIRS} that a block can have; "
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


def _check_segments(segments: int) -> int:
    if not isinstance(segments, (int, np.integer)) or segments < 2:
        raise InvalidInput(f"Expected a whole number of segments from 2 up, got segments={segments!r}.")
    return int(segments)


def _check_trials(layout: Layout, segments: int | None, trials: int | None) -> int:
    """Return the number of pairs to draw: `trials`, or by default KN², or all pairs if the layout has fewer."""
    n, most = len(layout), _count_pairs(len(layout))
    if segments is not None:
        _check_segments(segments)
    if trials is None:
        if segments is None:
            raise InvalidInput("Expected segments (K, for KN² trials) or trials, got neither.")
        return min(recommended_trials(layout, segments), most)
    fewest = -(-n // 2)
    if not isinstance(trials, (int, np.integer)) or not fewest <= trials <= most:
        raise InvalidInput(
            f"Expected {fewest} trials (every location once) to {most} (every pair once) on {layout}, "
            f"got trials={trials!r}."
        )
    return int(trials)


def _count_pairs(n: int) -> int:
    return n * (n - 1) // 2


def _keys(n: int, i: Indices, j: Indices) -> Indices:
    """Return one number for each unordered pair."""
    return np.minimum(i, j) * n + np.maximum(i, j)


def _key_of_rank(n: int, rank: Indices) -> Indices:
    """Return the key of the pair (i, j), i < j, with rank j(j-1)/2 + i."""
    j = ((1 + np.sqrt(1 + 8 * rank)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > rank
    j += (j + 1) * j // 2 <= rank
    return (rank - j * (j - 1) // 2) * n + j


def _avoided_keys(n: int, avoid: Sequence[Pairs]) -> Indices:
    """Return the keys of the pairs to avoid, sorted."""
    keys = [_keys(n, pairs.i, pairs.j) for pairs in avoid]
    return np.unique(np.concatenate([np.zeros(0, np.int64), *keys]))


# ── covering designs when few new pairs are left ──


def _cover_with_new_pairs(n: int, count: int, avoided: Indices, rng: np.random.Generator) -> Indices:
    """Return keys in random order; avoided pairs only if the new ones do not suffice or cannot reach a location."""
    every_key = _key_of_rank(n, rng.permutation(_count_pairs(n)))
    is_new = ~np.isin(every_key, avoided)
    cover = _find_cover(n, count, every_key[is_new], rng)
    rest = np.concatenate([every_key[is_new], every_key[~is_new]])
    rest = rest[~np.isin(rest, cover)][: count - len(cover)]
    return rng.permutation(np.concatenate([cover, rest]))


def _find_cover(n: int, count: int, new: Indices, rng: np.random.Generator) -> Indices:
    """Return keys of at most `count` pairs that include every location, new ones if possible."""
    i, j = np.divmod(new, n)
    ends, others = np.concatenate([i, j]), np.concatenate([j, i])
    order = np.argsort(ends, kind="stable")
    partners = np.split(others[order], np.searchsorted(ends[order], np.arange(1, n)))
    partner = _find_matching(partners, rng)
    first = np.flatnonzero(partner > np.arange(n))
    unmatched = sorted(np.flatnonzero(partner < 0).tolist(), key=lambda a: len(partners[a]))
    # Pairing two unmatched locations repeats an avoided pair, but needs one trial less when trials are few.
    without_partner = sum(not len(partners[a]) for a in unmatched)
    forced = 2 * max(-(-without_partner // 2), len(unmatched) - (count - len(first)))
    joined = [(a, int(rng.choice(partners[a]))) for a in unmatched[forced:]]
    paired = list(zip(unmatched[:forced:2], unmatched[1:forced:2], strict=False))
    if forced > len(unmatched):
        paired.append((unmatched[-1], (unmatched[-1] + 1 + int(rng.integers(n - 1))) % n))
    a, b = np.array(joined + paired, np.int64).reshape(-1, 2).T
    return np.unique(np.concatenate([_keys(n, first, partner[first]), _keys(n, a, b)]))


def _find_matching(partners: list[Indices], rng: np.random.Generator) -> Indices:
    """Return (n,) a partner for as many locations as random alternating walks can match; -1 for the others.

    An unmatched location takes a possible partner from another location, which is then unmatched, until a walk reaches
    another unmatched location.
    """
    partner = np.full(len(partners), -1)
    for current in rng.permutation(len(partners)).tolist():
        for _ in range(WALK_STEPS):
            if partner[current] >= 0 or not len(partners[current]):
                break
            unmatched = partners[current][partner[partners[current]] < 0]
            chosen = int(rng.choice(unmatched if len(unmatched) else partners[current]))
            left = int(partner[chosen])
            partner[current], partner[chosen] = chosen, current
            if left < 0:
                break
            partner[left], current = -1, left
    return partner


# ── circulant graphs: location a is joined with a + shift (mod n) ──


def _circulant(n: int, trials: int, whole: Indices, last: int) -> tuple[Indices, Indices]:
    """Return all pairs at the shifts `whole` and, for the rest, an even part of those at the shift `last`."""
    a = np.tile(np.arange(n), len(whole))
    b = (a + np.repeat(whole, n)) % n
    rest = trials - len(a)
    if 2 * last == n:
        start = np.arange(rest)
    else:
        # The shift is coprime with n, so its pairs form one cycle, and every second pair belongs to a matching.
        walk = np.arange(n) * last % n
        start = walk[::2][:rest] if 2 * rest <= n else np.delete(walk, 2 * np.arange(n - rest))
    return np.concatenate([a, start]), np.concatenate([b, (start + last) % n])


def _draw_shifts(n: int, trials: int, rng: np.random.Generator) -> tuple[Indices, int]:
    """Draw different shifts: those used for all pairs, and the last, which is coprime with n."""
    shifts = np.arange(1, (n - 1) // 2 + 1)
    wanted = -(-trials // n)
    if wanted > len(shifts):
        return shifts, n // 2
    last = int(rng.choice(_coprime(shifts, n)))
    return rng.choice(shifts[shifts != last], wanted - 1, replace=False), last


def _even_shifts(n: int, trials: int) -> tuple[Indices, int]:
    """Return shifts that divide n evenly, so that the partners of a location lie evenly in the order."""
    shifts = np.arange(1, (n - 1) // 2 + 1)
    wanted = -(-trials // n)
    if wanted > len(shifts):
        return shifts, n // 2
    even = np.rint(np.arange(1, wanted + 1) * n / (2 * wanted + 1)).astype(np.int64)
    candidates = _coprime(shifts, n)
    last = int(candidates[np.argmin(np.abs(candidates - even[-1]))])
    return (even[even != last] if last in even else even[:-1]), last


def _coprime(shifts: Indices, n: int) -> Indices:
    return shifts[np.gcd(shifts, n) == 1]


def _divide_into_regions(positions: NDArray[np.float64], parts: int, rng: np.random.Generator) -> Indices:
    """Return (n,) the region of each location: regions of equal size (±1), by halving the longer side."""
    region = np.zeros(len(positions), np.int64)
    waiting = [(np.arange(len(positions)), 0, parts)]
    while waiting:
        inside, first, count = waiting.pop()
        if count == 1:
            region[inside] = first
            continue
        axis = np.argmax(np.ptp(positions[inside], axis=0))
        inside = inside[np.lexsort([rng.random(len(inside)), positions[inside, axis]])]
        half = count // 2
        cut = round(len(inside) * half / count)
        waiting += [(inside[:cut], first, half), (inside[cut:], first + half, count - half)]
    return region


# ── switching: (a, b), (c, d) become (a, d), (c, b), which keeps the number of partners of each location ──


def _switch_partners(
    layout: Layout,
    i: Indices,
    j: Indices,
    region: Indices,
    avoided: Indices,
    rng: np.random.Generator,
    mixing: int,
) -> Pairs:
    """Switch partners for `mixing` rounds, then until no pair is to be avoided; return the pairs in random order."""
    n = len(layout)
    i, j = i.copy(), j.copy()
    for done in range(REPAIR_ROUNDS):
        if done >= mixing and not np.isin(_keys(n, i, j), avoided).any():
            break
        # Some regions are joined by few pairs; if these cannot be repaired among themselves, ignore the regions.
        is_stuck = done >= mixing + REPAIR_ROUNDS // 4
        _switch_once(n, i, j, np.zeros_like(region) if is_stuck else region, avoided, rng, level=is_stuck)
    order = rng.permutation(len(i))
    return Pairs(layout, i[order], j[order])


def _switch_once(
    n: int, i: Indices, j: Indices, region: Indices, avoided: Indices, rng: np.random.Generator, level: bool
) -> None:
    """Switch partners once, in place, between pairs that join the same two regions, unless that repeats a pair.

    With `level`, two pairs may also become two with the same number of avoided ones.
    """
    flip = np.where(region[i] == region[j], rng.random(len(i)) < 0.5, region[i] > region[j])
    i[flip], j[flip] = j[flip], i[flip]
    kind = region[i] * n + region[j]
    order = np.lexsort([rng.random(len(i)), kind])
    first, second = order[:-1:2], order[1::2]
    alike = kind[first] == kind[second]
    first, second = first[alike], second[alike]
    new = np.stack([_keys(n, i[first], j[second]), _keys(n, i[second], j[first])])
    now = _keys(n, i, j)
    repeats = np.isin(new, avoided).sum(axis=0)
    allowed = np.isin(now, avoided)[np.stack([first, second])].sum(axis=0) if level else 0
    _, index, times = np.unique(new, return_inverse=True, return_counts=True)
    once = times[index].reshape(new.shape) == 1
    other = (i[first] != j[second]) & (i[second] != j[first])
    good = other & (once & ~np.isin(new, now)).all(axis=0) & (repeats <= allowed)
    first, second = first[good], second[good]
    j[first], j[second] = j[second], j[first]
