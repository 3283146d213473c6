"""Which pairs to test in a block: covering, balanced, scattered or all.

A design returns the `Pairs` of one block. Balanced and scattered designs are circulant graphs (each
location joined with those a few fixed shifts away in some order of the locations), which are balanced
and free of duplicates by construction; random switches then take their regularity away and keep both.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from vseg._support.seeds import Seed, check_seed
from vseg.data.layout import Layout
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput

Indices = NDArray[np.int64]
Design = Callable[..., Pairs]

MOST_PAIRS = 50_000_000
MIXING_ROUNDS = 8
REPAIR_ROUNDS = 200
WALK_STEPS = 1000


def minimal_trials(layout: Layout, segments: int) -> int:
    """(K-1)N², the number of unknowns in K maps.

    Examples
    --------
    >>> from vseg import Grid
    >>> minimal_trials(Grid(16), 5)
    1024
    """
    return (_checked_segments(segments) - 1) * len(layout)


def recommended_trials(layout: Layout, segments: int) -> int:
    """KN², the number of trials the paper collects for K segments.

    Examples
    --------
    >>> from vseg import Grid
    >>> recommended_trials(Grid(16), 3)
    768
    """
    return _checked_segments(segments) * len(layout)


def covering(
    layout: Layout,
    *,
    segments: int | None = None,
    trials: int | None = None,
    avoid: Sequence[Pairs] = (),
    seed: Seed,
) -> Pairs:
    """Random pairs, every location in at least one.

    A random matching covers the locations; the other pairs are drawn uniformly from all that remain. Where
    most pairs are to be avoided, both come from those that are not.

    Parameters
    ----------
    layout : Layout
    segments : int, optional
        K; without `trials` there are KN² pairs, or all pairs on a layout that has fewer.
    trials : int, optional
        The number of pairs.
    avoid : sequence of Pairs, optional
        Pairs not to ask again. The covering design repeats one only if too few others are left, or if
        they cannot cover every location; the balanced and the scattered design, which also keep
        everybody's number of partners, may run into a few earlier.
    seed : int, SeedSequence or Generator

    Examples
    --------
    >>> from vseg import Grid
    >>> pairs = covering(Grid(16), segments=3, seed=0)
    >>> len(pairs), int(pairs.partners.min()) >= 1
    (768, True)
    """
    count, rng = _checked_trials(layout, segments, trials), np.random.default_rng(check_seed(seed))
    n = len(layout)
    order = rng.permutation(n)
    if n % 2:
        order = np.append(order, order[0])
    matched = _keys(n, order[::2], order[1::2])
    drawn = _unranked(n, rng.choice(_pairs_of(n), count, replace=False))
    others = drawn[~np.isin(drawn, matched)][: count - len(matched)]
    i, j = np.divmod(np.concatenate([matched, others]), n)
    taken, most = _taken(n, avoid), _pairs_of(n)
    scarce = 2 * (len(taken) + count) > most
    if not (scarce and len(taken)):
        block = _block(layout, i, j, np.zeros(n, np.int64), taken, rng, mixing=0)
        if most > MOST_PAIRS or not np.isin(_keys(n, block.i, block.j), taken).any():
            return block
    i, j = np.divmod(_covering_from_new(n, count, taken, rng), n)
    return Pairs(layout, i, j)


def balanced(
    layout: Layout,
    *,
    segments: int | None = None,
    trials: int | None = None,
    avoid: Sequence[Pairs] = (),
    seed: Seed,
) -> Pairs:
    """Random pairs, every location in equally many (±1 where that does not divide).

    Parameters are those of `covering`.

    Examples
    --------
    >>> from vseg import Grid
    >>> set(balanced(Grid(16), segments=3, seed=0).partners.tolist())
    {6}
    """
    count, rng = _checked_trials(layout, segments, trials), np.random.default_rng(check_seed(seed))
    n = len(layout)
    whole, last = _random_shifts(n, count, rng)
    order = rng.permutation(n)
    a, b = _circulant(n, count, whole, last)
    # A single shift is a random cycle already, and one cycle is connected; switches could break it up.
    mixing = MIXING_ROUNDS if len(whole) else 0
    return _block(layout, order[a], order[b], np.zeros(n, np.int64), _taken(n, avoid), rng, mixing)


def scattered(
    layout: Layout,
    *,
    segments: int | None = None,
    trials: int | None = None,
    avoid: Sequence[Pairs] = (),
    seed: Seed,
) -> Pairs:
    """Balanced pairs in which the partners of a location lie in different regions of the image.

    The paper's advice for images whose segments are unknown. With KN² pairs the image falls into 2K+1
    regions of equal size, and every location meets one random location in each of the 2K others (±1
    where the regions cannot be equal). Parameters are those of `covering`.

    Examples
    --------
    >>> from vseg import Grid
    >>> pairs = scattered(Grid(16), segments=3, seed=0)
    >>> len(pairs), set(pairs.partners.tolist())
    (768, {6})
    """
    count, rng = _checked_trials(layout, segments, trials), np.random.default_rng(check_seed(seed))
    n = len(layout)
    parts = min(2 * -(-count // n) + 1, n)
    region = _regions(layout.positions, parts, rng)
    whole, last = _even_shifts(n, count)
    order = np.lexsort([rng.random(n), region])
    a, b = _circulant(n, count, whole, last)
    mixing = MIXING_ROUNDS if len(whole) else 0
    return _block(layout, order[a], order[b], region, _taken(n, avoid), rng, mixing)


def all_pairs(
    layout: Layout,
    *,
    segments: int | None = None,
    trials: int | None = None,
    avoid: Sequence[Pairs] = (),
    seed: Seed | None = None,
) -> Pairs:
    """Every pair of locations, in random order if there is a seed.

    The other keywords are those of `covering`, so that any design can be called alike: `segments` and `avoid`
    change nothing, and `trials` must be the number of all pairs if it is given.

    Examples
    --------
    >>> from vseg import Grid
    >>> len(all_pairs(Grid(4)))
    120
    """
    n, count = len(layout), _pairs_of(len(layout))
    if count > MOST_PAIRS:
        raise InvalidInput(
            f"All pairs of {layout} are {count}, more than the {MOST_PAIRS} that fit a block; "
            "use a covering, balanced or scattered design."
        )
    if trials is not None and trials != count:
        raise InvalidInput(
            f"All pairs of {layout} are {count}, but {trials} trials were asked for; "
            "leave trials out or use another design."
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
    """The design of that name: covering, balanced, scattered or all.

    Examples
    --------
    >>> named("balanced").__name__
    'balanced'
    """
    if name not in DESIGNS:
        raise InvalidInput(f"Expected one of the designs {', '.join(DESIGNS)}, got {name!r}.")
    return DESIGNS[name]


def _checked_segments(segments: int) -> int:
    if not isinstance(segments, (int, np.integer)) or segments < 2:
        raise InvalidInput(f"The number of segments is a whole number from 2 up, got segments={segments!r}.")
    return int(segments)


def _checked_trials(layout: Layout, segments: int | None, trials: int | None) -> int:
    """How many pairs to draw; by default KN², or all pairs where a small layout has fewer."""
    n, most = len(layout), _pairs_of(len(layout))
    if segments is not None:
        _checked_segments(segments)
    if trials is None:
        if segments is None:
            raise InvalidInput("A design needs segments (K, for KN² trials) or trials; neither was given.")
        return min(recommended_trials(layout, segments), most)
    fewest = -(-n // 2)
    if not isinstance(trials, (int, np.integer)) or not fewest <= trials <= most:
        raise InvalidInput(
            f"A block on {layout} has {fewest} trials (every location once) to {most} (every pair once), "
            f"got trials={trials!r}."
        )
    return int(trials)


def _pairs_of(n: int) -> int:
    return n * (n - 1) // 2


def _keys(n: int, i: Indices, j: Indices) -> Indices:
    """One number for each unordered pair."""
    return np.minimum(i, j) * n + np.maximum(i, j)


def _unranked(n: int, rank: Indices) -> Indices:
    """The key of the pair (i, j), i < j, of rank j(j-1)/2 + i."""
    j = ((1 + np.sqrt(1 + 8 * rank)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > rank
    j += (j + 1) * j // 2 <= rank
    return (rank - j * (j - 1) // 2) * n + j


def _taken(n: int, avoid: Sequence[Pairs]) -> Indices:
    """The keys of the pairs to avoid, sorted."""
    keys = [_keys(n, pairs.i, pairs.j) for pairs in avoid]
    return np.unique(np.concatenate([np.zeros(0, np.int64), *keys]))


# ── when few new pairs are left: cover the locations with those, then take more of them ──


def _covering_from_new(n: int, count: int, taken: Indices, rng: np.random.Generator) -> Indices:
    """Keys in random order; taken pairs only where new ones do not suffice or do not reach a location."""
    everything = _unranked(n, rng.permutation(_pairs_of(n)))
    is_new = ~np.isin(everything, taken)
    cover = _cover(n, count, everything[is_new], rng)
    rest = np.concatenate([everything[is_new], everything[~is_new]])
    rest = rest[~np.isin(rest, cover)][: count - len(cover)]
    return rng.permutation(np.concatenate([cover, rest]))


def _cover(n: int, count: int, new: Indices, rng: np.random.Generator) -> Indices:
    """Keys of at most `count` pairs that touch every location, of the new ones wherever possible."""
    i, j = np.divmod(new, n)
    ends, others = np.concatenate([i, j]), np.concatenate([j, i])
    order = np.argsort(ends, kind="stable")
    around = np.split(others[order], np.searchsorted(ends[order], np.arange(1, n)))
    partner = _matching(around, rng)
    first = np.flatnonzero(partner > np.arange(n))
    lonely = sorted(np.flatnonzero(partner < 0).tolist(), key=lambda a: len(around[a]))
    # A pair of two lonely locations is a taken one, but saves a pair where trials are few.
    stranded = sum(not len(around[a]) for a in lonely)
    forced = 2 * max(-(-stranded // 2), len(lonely) - (count - len(first)))
    joined = [(a, int(rng.choice(around[a]))) for a in lonely[forced:]]
    paired = list(zip(lonely[:forced:2], lonely[1:forced:2], strict=False))
    if forced > len(lonely):
        paired.append((lonely[-1], (lonely[-1] + 1 + int(rng.integers(n - 1))) % n))
    a, b = np.array(joined + paired, np.int64).reshape(-1, 2).T
    return np.unique(np.concatenate([_keys(n, first, partner[first]), _keys(n, a, b)]))


def _matching(around: list[Indices], rng: np.random.Generator) -> Indices:
    """(n,) a partner for as many locations as random alternating walks can find one; -1 for the others.

    A lonely location takes a new partner, whose old one is then lonely, until a walk ends at another.
    """
    partner = np.full(len(around), -1)
    for lonely in rng.permutation(len(around)).tolist():
        for _ in range(WALK_STEPS):
            if partner[lonely] >= 0 or not len(around[lonely]):
                break
            unmatched = around[lonely][partner[around[lonely]] < 0]
            chosen = int(rng.choice(unmatched if len(unmatched) else around[lonely]))
            left = int(partner[chosen])
            partner[lonely], partner[chosen] = chosen, lonely
            if left < 0:
                break
            partner[left], lonely = -1, left
    return partner


# ── circulant graphs: location a is joined with a + shift (mod n) ──


def _circulant(n: int, trials: int, whole: Indices, last: int) -> tuple[Indices, Indices]:
    """All pairs at the shifts `whole` and, for the rest, as even a part of those at the shift `last`."""
    a = np.tile(np.arange(n), len(whole))
    b = (a + np.repeat(whole, n)) % n
    rest = trials - len(a)
    if 2 * last == n:
        start = np.arange(rest)
    else:
        # The shift is coprime with n, so its pairs form one cycle, and every other pair is a matching.
        walk = np.arange(n) * last % n
        start = walk[::2][:rest] if 2 * rest <= n else np.delete(walk, 2 * np.arange(n - rest))
    return np.concatenate([a, start]), np.concatenate([b, (start + last) % n])


def _random_shifts(n: int, trials: int, rng: np.random.Generator) -> tuple[Indices, int]:
    """Different shifts at random: those used whole and the last, coprime with n."""
    shifts = np.arange(1, (n - 1) // 2 + 1)
    wanted = -(-trials // n)
    if wanted > len(shifts):
        return shifts, n // 2
    last = int(rng.choice(_coprime(shifts, n)))
    return rng.choice(shifts[shifts != last], wanted - 1, replace=False), last


def _even_shifts(n: int, trials: int) -> tuple[Indices, int]:
    """Shifts that divide a round of n evenly, so that the partners of a location lie evenly in the order."""
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


def _regions(positions: NDArray[np.float64], parts: int, rng: np.random.Generator) -> Indices:
    """(n,) the region of each location: parts of equal size (±1), by halving the longer side."""
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


# ── switching: (a, b), (c, d) become (a, d), (c, b), which keeps everybody's number of partners ──


def _block(
    layout: Layout,
    i: Indices,
    j: Indices,
    region: Indices,
    taken: Indices,
    rng: np.random.Generator,
    mixing: int,
) -> Pairs:
    """The pairs after so many rounds of switching, clear of those to avoid, in random order."""
    n = len(layout)
    i, j = i.copy(), j.copy()
    for done in range(REPAIR_ROUNDS):
        if done >= mixing and not np.isin(_keys(n, i, j), taken).any():
            break
        # Few pairs join some regions; what they cannot repair among themselves is switched with any other.
        stuck = done >= mixing + REPAIR_ROUNDS // 4
        _switch(n, i, j, np.zeros_like(region) if stuck else region, taken, rng, level=stuck)
    order = rng.permutation(len(i))
    return Pairs(layout, i[order], j[order])


def _switch(
    n: int, i: Indices, j: Indices, region: Indices, taken: Indices, rng: np.random.Generator, level: bool
) -> None:
    """One round, in place: pairs that join the same two regions swap partners, unless that repeats a pair.

    With `level`, two pairs of which some are taken may also become two of which no more are.
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
    repeats = np.isin(new, taken).sum(axis=0)
    allowed = np.isin(now, taken)[np.stack([first, second])].sum(axis=0) if level else 0
    _, where, times = np.unique(new, return_inverse=True, return_counts=True)
    once = times[where].reshape(new.shape) == 1
    other = (i[first] != j[second]) & (i[second] != j[first])
    good = other & (once & ~np.isin(new, now)).all(axis=0) & (repeats <= allowed)
    first, second = first[good], second[good]
    j[first], j[second] = j[second], j[first]
