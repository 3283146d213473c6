"""A design over time and over people: several blocks, several sessions."""

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vseg._support.seeds import Seed, check_seed
from vseg.data.layout import Layout
from vseg.data.pairs import Pairs
from vseg.designs.pair_designs import Design, Indices, get_design
from vseg.errors import InvalidInput, VsegWarning

SPLIT_ROUNDS = (60, 1000)
SPLIT_WORK = 1_000_000


def draw_blocks(
    design: Design | str,
    layout: Layout,
    *,
    blocks: int,
    fresh: bool = False,
    seed: Seed,
    **options: Any,
) -> list[Pairs]:
    """The pairs of several blocks.

    Parameters
    ----------
    design : function or name
        `covering`, `balanced`, `scattered`, `all_pairs`, or any function with their keywords.
    layout : Layout
    blocks : int
        N_b.
    fresh : bool
        False: the same pairs every block, as in the paper, each time in another order. True: new pairs
        every block, as long as there are enough. When blocks nearly exhaust the pairs, `covering` repeats
        none that it need not to fill a block or to reach every location, while `balanced` and `scattered`
        may repeat some; a VsegWarning says how many repeat although new pairs were left.
    seed : int, SeedSequence or Generator
    **options
        Handed on to the design, such as `segments` or `trials`.

    Examples
    --------
    >>> from vseg import Grid
    >>> from vseg.designs import covering
    >>> first, second = blocks(covering, Grid(8), blocks=2, fresh=True, segments=2, seed=0)
    >>> set(first) & set(second)
    set()
    """
    if not isinstance(blocks, (int, np.integer)) or blocks < 1:
        raise InvalidInput(f"An experiment has at least one block, a whole number, got blocks={blocks!r}.")
    if isinstance(design, str):
        design = get_design(design)
    children = np.random.default_rng(check_seed(seed)).spawn(int(blocks))
    seeds = [int(child.bit_generator.seed_seq.generate_state(1)[0]) for child in children]
    shown = [design(layout, seed=seeds[0], **options)]
    for block_seed in seeds[1:]:
        if fresh:
            shown.append(design(layout, seed=block_seed, avoid=shown, **options))
        else:
            shown.append(shown[0].take(np.random.default_rng(block_seed).permutation(len(shown[0]))))
    if fresh:
        _warn_of_repeats(shown)
    return shown


def _warn_of_repeats(shown: list[Pairs]) -> None:
    """Of the pairs asked before, those in whose place a new pair could have been asked."""
    n = len(shown[0].layout)
    taken, again = np.zeros(0, np.int64), 0
    for block in shown:
        key = block.i * n + block.j
        repeated, left = int(np.isin(key, taken).sum()), n * (n - 1) // 2 - len(taken)
        again += max(repeated - max(len(block) - left, 0), 0)
        taken = np.union1d(taken, key)
    if again:
        warnings.warn(
            f"{again} of {sum(map(len, shown))} pairs were asked in an earlier block although new ones were "
            "left; a design of fewer trials or blocks, or a covering one, repeats fewer.",
            VsegWarning,
            stacklevel=3,
        )


def split(pairs: Pairs, sessions: int, *, seed: Seed) -> list[Pairs]:
    """One image's pairs dealt over several sessions, each of which covers the image as well as it can.

    The sessions are equal in size (±1) and hold every pair exactly once. Exchanging pairs between
    sessions evens out how often a session uses each location: in the paper's split of 1024 trials
    over 8 people, a session of 128 pairs can touch all 256 locations.

    Parameters
    ----------
    pairs : Pairs
    sessions : int
    seed : int, SeedSequence or Generator

    Examples
    --------
    >>> from vseg import Grid
    >>> from vseg.designs import balanced
    >>> parts = split(balanced(Grid(16), trials=1024, seed=0), 8, seed=1)
    >>> [len(part) for part in parts]
    [128, 128, 128, 128, 128, 128, 128, 128]
    """
    if not isinstance(sessions, (int, np.integer)) or not 1 <= sessions <= len(pairs):
        raise InvalidInput(
            f"{len(pairs)} pairs can be split over 1 to {len(pairs)} sessions, got {sessions}; "
            "ask for fewer sessions or more trials."
        )
    rng = np.random.default_rng(check_seed(seed))
    session = rng.permutation(np.arange(len(pairs)) % sessions)
    for _ in range(int(np.clip(SPLIT_WORK // len(pairs), *SPLIT_ROUNDS))):
        if _exchange(pairs, session, sessions, rng):
            break
    return [pairs.take(rng.permutation(np.flatnonzero(session == s))) for s in range(sessions)]


def _exchange(pairs: Pairs, session: Indices, sessions: int, rng: np.random.Generator) -> bool:
    """One round, in place: two pairs swap sessions where that evens out the use of the locations.

    True once the use of every location is even.
    """
    n, m = len(pairs.layout), len(pairs)
    ends = np.stack([pairs.i, pairs.j])
    uses = np.bincount((session * n + ends).ravel(), minlength=sessions * n)
    if np.ptp(uses.reshape(sessions, n), axis=0).max() <= 1:
        return True
    order = rng.permutation(m)
    e, f = order[: m // 2], order[m // 2 : 2 * (m // 2)]
    # Moving an end from cell x to cell y changes the sum of squared uses by 2 (uses[y] - uses[x] + 1).
    cells = [session[e] * n + ends[:, e], session[f] * n + ends[:, e],
             session[f] * n + ends[:, f], session[e] * n + ends[:, f]]  # fmt: skip
    change = sum((uses[to] - uses[out] + 1).sum(axis=0) for out, to in (cells[:2], cells[2:]))
    touched = np.concatenate(cells)
    better = np.flatnonzero((session[e] != session[f]) & (change <= 0))
    owner = np.full(sessions * n, -1)
    owner[touched[:, better]] = better
    alone = better[(owner[touched[:, better]] == better).all(axis=0)]
    e, f = e[alone], f[alone]
    session[e], session[f] = session[f], session[e]
    return False


def save_trials(blocks: Sequence[Pairs], path: str | Path, *, width_px: int, height_px: int) -> None:
    """Write a trial list for another experiment program: a CSV with the dots' centres in image pixels.

    The columns are block, trial, i, j, x1, y1, x2, y2. Ask the participant, add the column `same`, and
    `vseg fit` takes the file as it is.

    Examples
    --------
    >>> from vseg import Grid
    >>> save_trials(blocks("scattered", Grid(16), blocks=5, segments=3, seed=0), "trials.csv",
    ...             width_px=512, height_px=512)  # doctest: +SKIP
    """
    if not blocks:
        raise InvalidInput("Expected at least one block of pairs to write, got none.")
    centre = blocks[0].layout.pixels(width_px, height_px).round(2).tolist()
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["block", "trial", "i", "j", "x1", "y1", "x2", "y2"])
        numbered = ((block, i, j) for block, pairs in enumerate(blocks) for i, j in pairs)
        for trial, (block, i, j) in enumerate(numbered):
            writer.writerow([block, trial, i, j, *centre[i], *centre[j]])
