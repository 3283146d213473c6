"""Random graphs of pairs, from which the designs are built: a location is a vertex, a pair an edge.

Balanced and scattered designs start from circulant graphs: in some order of the locations, each is joined with those
a few fixed shifts away. Such graphs are balanced and free of duplicates; random switches of partners then remove their
regularity and keep both properties.

A pair is also represented by its key, one number for i and j in either order.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vseg.data.layout import Layout
from vseg.data.pairs import Pairs

Indices = NDArray[np.int64]

REPAIR_ROUNDS = 200  # at most, to remove pairs that should be avoided
WALK_STEPS = 1000  # at most, of an alternating walk to the next unmatched location


def count_pairs(n: int) -> int:
    """Return the number of pairs of n locations."""
    return n * (n - 1) // 2


def pair_keys(n: int, i: Indices, j: Indices) -> Indices:
    """Return one number for each unordered pair."""
    return np.minimum(i, j) * n + np.maximum(i, j)


def key_of_rank(n: int, rank: Indices) -> Indices:
    """Return the key of the pair (i, j), i < j, with rank j(j-1)/2 + i."""
    j = ((1 + np.sqrt(1 + 8 * rank)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > rank
    j += (j + 1) * j // 2 <= rank
    return (rank - j * (j - 1) // 2) * n + j


def avoided_keys(n: int, avoid: Sequence[Pairs]) -> Indices:
    """Return the keys of the pairs to avoid, sorted."""
    keys = [pair_keys(n, pairs.i, pairs.j) for pairs in avoid]
    return np.unique(np.concatenate([np.zeros(0, np.int64), *keys]))


# ── covering designs when few new pairs are left ──


def cover_with_new_pairs(n: int, count: int, avoided: Indices, rng: np.random.Generator) -> Indices:
    """Return keys in random order; avoided pairs only if the new ones do not suffice or cannot reach a location."""
    every_key = key_of_rank(n, rng.permutation(count_pairs(n)))
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
    return np.unique(np.concatenate([pair_keys(n, first, partner[first]), pair_keys(n, a, b)]))


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


def circulant_graph(n: int, trials: int, whole: Indices, last: int) -> tuple[Indices, Indices]:
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


def bipartite_graph(first: int, second: int, count: int) -> tuple[Indices, Indices]:
    """Return `count` different pairs between two sets of locations that use those of each set equally often (±1)."""
    step = np.arange(count)
    # The two positions repeat together after the least common multiple of the sizes; shift the second by one then.
    return step % first, (step + step // np.lcm(first, second)) % second


def draw_shifts(n: int, trials: int, rng: np.random.Generator) -> tuple[Indices, int]:
    """Draw different shifts: those used for all pairs, and the last, which is coprime with n."""
    shifts = np.arange(1, (n - 1) // 2 + 1)
    wanted = -(-trials // n)
    if wanted > len(shifts):
        return shifts, n // 2
    last = int(rng.choice(_coprime(shifts, n)))
    return rng.choice(shifts[shifts != last], wanted - 1, replace=False), last


def even_shifts(n: int, trials: int) -> tuple[Indices, int]:
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


def divide_into_regions(positions: NDArray[np.float64], parts: int, rng: np.random.Generator) -> Indices:
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


def switch_partners(
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
        if done >= mixing and not np.isin(pair_keys(n, i, j), avoided).any():
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
    new = np.stack([pair_keys(n, i[first], j[second]), pair_keys(n, i[second], j[first])])
    now = pair_keys(n, i, j)
    repeats = np.isin(new, avoided).sum(axis=0)
    allowed = np.isin(now, avoided)[np.stack([first, second])].sum(axis=0) if level else 0
    _, index, times = np.unique(new, return_inverse=True, return_counts=True)
    once = times[index].reshape(new.shape) == 1
    other = (i[first] != j[second]) & (i[second] != j[first])
    good = other & (once & ~np.isin(new, now)).all(axis=0) & (repeats <= allowed)
    first, second = first[good], second[good]
    j[first], j[second] = j[second], j[first]
