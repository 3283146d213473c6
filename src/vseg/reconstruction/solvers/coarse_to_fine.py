"""Coarse-to-fine levels: the same problem on fewer and fewer locations, for any layout and kernel.

Locations are grouped (2×2 cells of a grid, neighbours of a scatter); a group shares one row of the maps.
W of the groups is the group average of W; its λ is scaled so that a slow wave over the image costs the same
on every level. A coarse map becomes a finer one by interpolation with row-stochastic weights, so rows stay on
the simplex.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array

from vseg._support.numba_cache import compiled
from vseg.data.layout import Grid, Layout
from vseg.reconstruction.kernels import Penalty, Smoothness, flat_penalty, without_diagonal
from vseg.reconstruction.objective import PairRows

FEW = 25  # stop at about this many groups, where a fit from a random start takes microseconds
FEWEST = 16


class Levels(NamedTuple):
    """All levels in flat arrays for compiled code; level 0 is the problem itself.

    Depth d has `size[d]` rows, found in `diagonal` from `at[d]` and in `r_start` from `at[d] + d`; columns
    are row numbers within the depth. Row i of depth d+1 groups the rows `child[child_start[...]]` of depth d
    and passes its map down through the interpolation `q_*`.
    """

    size: NDArray[np.int64]
    at: NDArray[np.int64]
    r_start: NDArray[np.int64]
    r_column: NDArray[np.uint32]
    r_value: NDArray[np.float64]
    diagonal: NDArray[np.float64]
    parent: NDArray[np.uint32]
    child: NDArray[np.uint32]
    child_start: NDArray[np.int64]
    q_start: NDArray[np.int64]
    q_column: NDArray[np.uint32]
    q_value: NDArray[np.float64]


class _Level(NamedTuple):
    positions: NDArray[np.float64]
    weights: csr_array  # W
    adjacency: csr_array
    shape: tuple[int, int] | None  # rows and columns, on a grid


@lru_cache(maxsize=8)
def build_levels(smoothness: Smoothness) -> Levels:
    """Build the levels of a layout and its kernel, the finest first."""
    stack = [_finest_level(smoothness)]
    parents: list[NDArray[np.int32]] = []
    while len(stack[-1].positions) > FEW:
        parent, shape = _groups(stack[-1])
        if parent.max() + 1 < FEWEST or parent.max() + 1 == len(parent):
            break
        parents.append(parent)
        stack.append(_coarsen(stack[-1], parent, shape))
    return _flatten(smoothness, stack, parents)


@compiled
def group_pairs(depth, level, tested):
    """Group the pairs of one level for the next: weights add, shares average, pairs within a group vanish."""
    start, partner, share, weight = tested
    groups = level.size[depth + 1]
    parent = level.parent[level.at[depth] : level.at[depth + 1]]
    child = level.child[level.at[depth] : level.at[depth + 1]]
    child_start = level.child_start[level.at[depth + 1] - level.at[1] + depth :]
    to_start = np.zeros(groups + 1, np.int64)
    to_partner = np.empty(partner.size, np.uint32)
    to_share = np.empty(partner.size)
    to_weight = np.empty(partner.size)
    seen = np.zeros(groups, np.int64) - 1
    end = 0
    for a in range(groups):
        first = end
        for m in range(child_start[a], child_start[a + 1]):
            i = np.int64(child[m])
            for e in range(start[i], start[i + 1]):
                b = np.int64(parent[partner[e]])
                if b == a or weight[e] == 0.0:
                    continue
                slot = seen[b]
                if slot < first:
                    slot = end
                    seen[b] = slot
                    to_partner[slot] = b
                    to_weight[slot] = 0.0
                    to_share[slot] = 0.0
                    end += 1
                to_weight[slot] += weight[e]
                to_share[slot] += weight[e] * share[e]
        to_start[a + 1] = end
    for slot in range(end):
        to_share[slot] /= to_weight[slot]
    return PairRows(to_start, to_partner[:end], to_share[:end], to_weight[:end])


@compiled
def get_penalty(depth, level):
    """Return R of one level."""
    at, end = level.at[depth], level.at[depth + 1]
    return Penalty(
        level.r_start[at + depth : end + depth + 1], level.r_column, level.r_value, level.diagonal[at:end]
    )


@compiled
def interpolate(depth, level, coarse):
    """Interpolate maps of the next coarser level to this one."""
    q_start = level.q_start[level.at[depth] + depth :]
    p = np.zeros((level.size[depth], coarse.shape[1]))
    for i in range(p.shape[0]):
        for e in range(q_start[i], q_start[i + 1]):
            for c in range(p.shape[1]):
                p[i, c] += level.q_value[e] * coarse[level.q_column[e], c]
    return p


def _finest_level(smoothness: Smoothness) -> _Level:
    layout: Layout = smoothness.layout
    n, edges = len(layout), layout.neighbours
    joined = csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    shape = (layout.size, layout.size) if isinstance(layout, Grid) else None
    return _Level(layout.positions, smoothness.weights, csr_array(joined + joined.T), shape)


def _groups(level: _Level) -> tuple[NDArray[np.int32], tuple[int, int] | None]:
    """Assign each row to a group: 2×2 cells on a grid, else a location with its ungrouped neighbours."""
    if level.shape is not None:
        rows, columns = level.shape
        half = (rows + 1) // 2, (columns + 1) // 2
        row, column = np.divmod(np.arange(rows * columns), columns)
        return (row // 2 * half[1] + column // 2).astype(np.int32), half
    graph = level.adjacency
    parent = np.full(len(level.positions), -1, np.int32)
    count = 0
    for i in range(len(parent)):
        if parent[i] < 0:
            near = graph.indices[graph.indptr[i] : graph.indptr[i + 1]]
            parent[i] = count
            parent[near[parent[near] < 0][:3]] = count
            count += 1
    return parent, None


def _coarsen(level: _Level, parent: NDArray[np.int32], shape: tuple[int, int] | None) -> _Level:
    member = _membership(parent)
    share = csr_array(member.T / member.sum(axis=0)[:, None])  # row a: the mean over group a
    adjacency = without_diagonal(csr_array(member.T @ level.adjacency @ member))
    return _Level(share @ level.positions, csr_array(share @ level.weights @ member), adjacency, shape)


def _membership(parent: NDArray[np.int32]) -> csr_array:
    n = len(parent)
    return csr_array((np.ones(n), (np.arange(n), parent)), shape=(n, int(parent.max()) + 1))


def _interpolation(fine: _Level, coarse: _Level, parent: NDArray[np.int32]) -> csr_array:
    """Return row-stochastic weights: bilinear on a grid, else the mean over the neighbours' groups."""
    if fine.shape is not None and coarse.shape is not None:
        down, across = (_bilinear(a, b) for a, b in zip(fine.shape, coarse.shape, strict=True))
        from scipy.sparse import kron

        return csr_array(kron(down, across))
    around = fine.adjacency + eye_array(len(parent))
    return csr_array((around / around.sum(axis=1)[:, None]) @ _membership(parent))


def _bilinear(fine: int, coarse: int) -> csr_array:
    where = np.clip((np.arange(fine) - 0.5) / 2, 0, coarse - 1)
    low = np.minimum(where.astype(np.int64), max(coarse - 2, 0))
    high = np.minimum(low + 1, coarse - 1)
    row = np.arange(fine)
    weight = where - low
    matrix = csr_array((1 - weight, (row, low)), shape=(fine, coarse))
    return csr_array(matrix + csr_array((weight, (row, high)), shape=(fine, coarse)))


def _wave_cost(level: _Level) -> float:
    """Return ‖u - Wu‖² of the slowest waves over the image, which calibrates λ between levels."""
    waves = np.cos(np.pi * level.positions)
    return float(np.sum((waves - level.weights @ waves) ** 2))


def _flatten(smoothness: Smoothness, stack: list[_Level], parents: list[NDArray[np.int32]]) -> Levels:
    size = np.array([len(level.positions) for level in stack])
    penalties = [smoothness.matrix]
    for level in stack[1:]:
        cost = _wave_cost(level)
        scale = _wave_cost(stack[0]) / cost if cost > 0 else 1.0
        residual = csr_array(eye_array(len(level.positions)) - level.weights)
        penalties.append(flat_penalty(csr_array(scale * (residual.T @ residual))))
    down = [_interpolation(a, b, parent) for a, b, parent in zip(stack, stack[1:], parents, strict=False)]
    return Levels(
        size=size,
        at=np.concatenate([[0], np.cumsum(size)]),
        r_start=_starts([penalty.start for penalty in penalties]),
        r_column=_concatenate([penalty.column for penalty in penalties], np.uint32),
        r_value=_concatenate([penalty.value for penalty in penalties], np.float64),
        diagonal=_concatenate([penalty.diagonal for penalty in penalties], np.float64),
        parent=_concatenate(parents, np.uint32),
        child=_concatenate([np.argsort(parent, kind="stable") for parent in parents], np.uint32),
        child_start=_concatenate(
            [np.concatenate([[0], np.cumsum(np.bincount(parent))]) for parent in parents], np.int64
        ),
        q_start=_starts([matrix.indptr for matrix in down]),
        q_column=_concatenate([matrix.indices for matrix in down], np.uint32),
        q_value=_concatenate([matrix.data for matrix in down], np.float64),
    )


def _starts(starts: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the row starts of several matrices whose entries are stored one after the other."""
    before = np.cumsum([0] + [start[-1] for start in starts])
    return _concatenate([start + offset for start, offset in zip(starts, before, strict=False)], np.int64)


def _concatenate(parts: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *(part.astype(dtype) for part in parts)])
