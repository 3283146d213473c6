"""Divide a design over blocks and sessions."""

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vseg._support.seeds import Seed, check_seed
from vseg.data.layout import Layout
from vseg.data.pairs import Pairs
from vseg.designs.pair_designs import Design, get_design
from vseg.designs.pair_graphs import Indices
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
    """Draw the pairs of several blocks.

    Parameters
    ----------
    design : callable or str
        `covering`, `balanced`, `scattered`, `all_pairs`, the name of one, or a function with the same keywords.
    layout : Layout
        The locations.
    blocks : int
        The number of blocks N_b.
    fresh : bool
        False: the same pairs in every block, as in the paper, in a new order each time. True: new pairs in every
        block while there are enough. When few new pairs are left, `covering` repeats a pair only if it must, to fill
        a block or to reach every location; `balanced` and `scattered` may repeat more. A VsegWarning gives the number
        of pairs that were repeated although new ones were left.
    seed : int, SeedSequence or Generator
        Seed of the pairs and their order.
    **options
        Passed to the design, such as `segments` or `trials`.

    Returns
    -------
    list of Pairs
        The pairs of each block.

    Examples
    --------
    >>> from vseg import Grid
    >>> from vseg.designs import covering
    >>> first, second = draw_blocks(covering, Grid(8), blocks=2, fresh=True, segments=2, seed=0)
    >>> set(first) & set(second)
    set()
    """
    if not isinstance(blocks, (int, np.integer)) or blocks < 1:
        raise InvalidInput(f"Expected a whole number of blocks from 1 up, got blocks={blocks!r}.")
    if isinstance(design, str):
        design = get_design(design)
    children = np.random.default_rng(check_seed(seed)).spawn(int(blocks))
    seeds = [int(child.bit_generator.seed_seq.generate_state(1)[0]) for child in children]
    drawn = [design(layout, seed=seeds[0], **options)]
    for block_seed in seeds[1:]:
        if fresh:
            drawn.append(design(layout, seed=block_seed, avoid=drawn, **options))
        else:
            drawn.append(drawn[0].take(np.random.default_rng(block_seed).permutation(len(drawn[0]))))
    if fresh:
        _warn_of_repeats(drawn)
    return drawn


def _warn_of_repeats(blocks: list[Pairs]) -> None:
    """Warn about the pairs that were repeated although new ones were left."""
    n = len(blocks[0].layout)
    used, avoidable = np.zeros(0, np.int64), 0
    for block in blocks:
        key = block.i * n + block.j
        repeated, left = int(np.isin(key, used).sum()), n * (n - 1) // 2 - len(used)
        avoidable += max(repeated - max(len(block) - left, 0), 0)
        used = np.union1d(used, key)
    if avoidable:
        warnings.warn(
            f"{avoidable} of {sum(map(len, blocks))} pairs repeat those of an earlier block although new ones were "
            "left; fewer trials or blocks, or a covering design, repeat fewer.",
            VsegWarning,
            stacklevel=3,
        )


def split(pairs: Pairs, sessions: int, *, seed: Seed) -> list[Pairs]:
    """Split the pairs of one image over several sessions, so that each session covers the image well.

    The sessions are equal in size (±1), and together they hold every pair exactly once. Pairs are exchanged between
    sessions until each session uses the locations evenly: in the paper's split of 1024 trials over 8 participants, a
    session of 128 pairs can include all 256 locations.

    Parameters
    ----------
    pairs : Pairs
        All pairs of the image.
    sessions : int
        The number of sessions.
    seed : int, SeedSequence or Generator
        Seed of the first split and of the exchanges.

    Returns
    -------
    list of Pairs
        The pairs of each session.

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
            f"Expected 1 to {len(pairs)} sessions for {len(pairs)} pairs, got {sessions}; "
            "use fewer sessions or more trials."
        )
    rng = np.random.default_rng(check_seed(seed))
    session = rng.permutation(np.arange(len(pairs)) % sessions)
    for _ in range(int(np.clip(SPLIT_WORK // len(pairs), *SPLIT_ROUNDS))):
        if _exchange_pairs(pairs, session, sessions, rng):
            break
    return [pairs.take(rng.permutation(np.flatnonzero(session == s))) for s in range(sessions)]


def _exchange_pairs(pairs: Pairs, session: Indices, sessions: int, rng: np.random.Generator) -> bool:
    """Exchange pairs between sessions, in place, if that makes the use of the locations more even.

    Return True once every location is used evenly.
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
    """Write a list of trials for other experiment software: a CSV file with the dots' centres in image pixels.

    The columns are block, trial, i, j, x1, y1, x2, y2. With the answers in an additional column `same`, `vseg.load`
    and `vseg fit` read the file.

    Parameters
    ----------
    blocks : sequence of Pairs
        The pairs of each block.
    path : str or Path
        The CSV file to write.
    width_px, height_px : int
        Size of the image.

    Examples
    --------
    >>> from vseg import Grid
    >>> blocks = draw_blocks("scattered", Grid(16), blocks=5, segments=3, seed=0)
    >>> save_trials(blocks, "trials.csv", width_px=512, height_px=512)  # doctest: +SKIP
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
