"""Responses: one row per trial. Tally: the counts k_ij and n_ij of each pair, which inference uses."""

import csv
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.atomic_files import atomic_write
from vseg._support.optional_imports import import_parquet, import_pyarrow
from vseg.data.layout import Layout, as_floats, as_read_only, find_nearest
from vseg.data.pairs import Pairs, as_index, check_pairs
from vseg.errors import InvalidInput, NotFound, VsegWarning

COLUMNS = ("participant", "image", "block", "trial", "i", "j", "same", "rt_ms")
MAX_NAME_LENGTH = 256  # characters; Prolific IDs have 24, names made by vseg at most 63


@dataclass(frozen=True, eq=False, repr=False)
class Responses:
    """Same/different answers, one row per trial.

    Parameters
    ----------
    layout : Layout
    i, j : array_like of int
        The two locations of each trial.
    same : array_like of bool or 0/1
        Whether the participant answered that they lie in the same segment.
    participant, image : str or array_like of str, optional
        Names of at most 256 characters, one for all rows or one for each.
    block, trial : int or array_like of int, optional
        Counted from 0.
    rt_ms : array_like of float, optional
        Reaction times in milliseconds; NaN if unknown.

    Examples
    --------
    >>> from vseg import Grid
    >>> Responses(Grid(3), [0, 8, 0], [8, 0, 4], [1, 0, 1]).tally().n
    array([1, 2])
    """

    layout: Layout
    participant: NDArray[np.str_]
    image: NDArray[np.str_]
    block: NDArray[np.int64]
    trial: NDArray[np.int64]
    i: NDArray[np.int64]
    j: NDArray[np.int64]
    same: NDArray[np.bool_]
    rt_ms: NDArray[np.float64]

    def __init__(
        self,
        layout: Layout,
        i: ArrayLike,
        j: ArrayLike,
        same: ArrayLike,
        *,
        participant: ArrayLike = "anonymous",
        image: ArrayLike = "image",
        block: ArrayLike = 0,
        trial: ArrayLike | None = None,
        rt_ms: ArrayLike = np.nan,
    ):
        check_pairs(layout, i, j)
        count = len(np.asarray(i))
        columns: dict[str, NDArray[Any]] = {
            "participant": _check_names(participant, "participant"),
            "image": _check_names(image, "image"),
            "block": _check_counts(block, "block"),
            "trial": np.arange(count) if trial is None else _check_counts(trial, "trial"),
            "i": np.asarray(i, dtype=np.int64),
            "j": np.asarray(j, dtype=np.int64),
            "same": as_booleans(same),
            "rt_ms": _check_times(rt_ms),
        }
        object.__setattr__(self, "layout", layout)
        for name, values in columns.items():
            if values.ndim and values.shape != (count,):
                raise InvalidInput(f"Column {name} has shape {values.shape}, but there are {count} trials.")
            object.__setattr__(self, name, _as_column(values, count))

    def __len__(self) -> int:
        return len(self.i)

    def __repr__(self) -> str:
        participants, images = len(self.participants), len(self.images)
        return f"<Responses: {len(self)} trials on {self.layout}, participants: {participants}, images: {images}>"

    @property
    def participants(self) -> list[str]:
        """The participants' names, sorted."""
        return sorted(np.unique(self.participant).tolist())

    @property
    def images(self) -> list[str]:
        """The images' names, sorted."""
        return sorted(np.unique(self.image).tolist())

    def take(self, index: ArrayLike) -> "Responses":
        """Return the rows selected by a boolean mask or by indices."""
        rows = as_index(index)
        return Responses(self.layout, **{name: getattr(self, name)[rows] for name in COLUMNS})

    def select(self, *, participant: str | None = None, image: str | None = None) -> "Responses":
        """Return the rows of one participant, of one image, or of both.

        Parameters
        ----------
        participant, image : str, optional
            A name in the columns of the same name; `NotFound` if there is no such row.
        """
        is_selected = np.ones(len(self), bool)
        for name, wanted in (("participant", participant), ("image", image)):
            if wanted is not None:
                is_selected &= getattr(self, name) == wanted
                if not is_selected.any():
                    names = ", ".join(map(repr, np.unique(getattr(self, name))[:10].tolist()))
                    raise NotFound(f"No responses with {name} {wanted!r}; there are: {names}.")
        return self.take(is_selected)

    def with_layout(self, layout: Layout) -> "Responses":
        """Return the same answers on a layout that begins with the same locations, such as one from `refine`."""
        own = self.layout.positions
        if len(layout) < len(own) or not np.array_equal(layout.positions[: len(own)], own):
            raise InvalidInput(
                f"The first {len(own)} locations of {layout} are not those of {self.layout}, to which these answers "
                "refer; vseg.data.layout.refine keeps them, and Responses.coarsen takes answers to fewer locations."
            )
        return Responses(layout, **{name: getattr(self, name) for name in COLUMNS})

    def coarsen(self, layout: Layout) -> "Responses":
        """Return the answers on a layout with fewer locations: each dot moves to the nearest one.

        On a grid, this is the cell that contains the dot. An answer about two dots that come to lie in the same cell
        says nothing about the maps and is left out, with a warning that counts these answers.

        Parameters
        ----------
        layout : Layout
            A grid or scatter with at most as many locations as the present one.

        Returns
        -------
        Responses
            The answers about two different locations of the new layout.

        Examples
        --------
        >>> from vseg import Grid
        >>> coarse = Responses(Grid(6), [0, 3], [35, 12], [0, 1]).coarsen(Grid(3))
        >>> coarse.i, coarse.j
        (array([0, 1]), array([8, 3]))
        """
        if not isinstance(layout, Layout):
            raise InvalidInput(f"Expected a layout such as vseg.Grid(16), got {layout!r}.")
        if len(layout) > len(self.layout):
            raise InvalidInput(
                f"Expected a layout of at most {len(self.layout)} locations, as many as {self.layout} has, got "
                f"{layout}; fit the answers as they are and bring the maps onto it with Maps.resample."
            )
        location = find_nearest(layout, self.layout.positions)
        i, j = location[self.i], location[self.j]
        kept = i != j
        if dropped := int(np.sum(~kept)):
            warnings.warn(
                f"{dropped} of {len(self)} answers {'is' if dropped == 1 else 'are'} left out: both dots lie in the "
                f"same cell of {layout}.",
                VsegWarning,
                stacklevel=2,
            )
        columns = {name: getattr(self, name)[kept] for name in COLUMNS}
        return Responses(layout, **{**columns, "i": i[kept], "j": j[kept]})

    def tally(self) -> "Tally":
        """Count how often each distinct pair was tested and answered 'same'."""
        key = np.minimum(self.i, self.j) * len(self.layout) + np.maximum(self.i, self.j)
        row = np.sort(
            2 * key + self.same
        )  # the answer is the lowest bit: one sort instead of a sort and a look-up
        key, same = row >> 1, row & 1
        first = np.flatnonzero(np.diff(key, prepend=-1))
        n = np.diff(first, append=len(key))
        k = np.add.reduceat(same, first) if len(key) else same
        i, j = np.divmod(key[first], len(self.layout))
        return Tally(Pairs(self.layout, i, j), k, n)

    def save(self, path: str | Path) -> None:
        """Write a table: Parquet if the name ends in .parquet, else CSV. An error leaves no partial file."""
        table = {name: getattr(self, name) for name in COLUMNS}
        table["same"] = self.same.astype(np.int64)
        if Path(path).suffix == ".parquet":
            writer, columns = import_parquet(), import_pyarrow().table(table)
            with atomic_write(path, "wb") as file:
                writer.write_table(columns, file)
            return
        times = ["" if np.isnan(rt) else f"{rt:.1f}" for rt in self.rt_ms]
        with atomic_write(path, newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(zip(*(table[name].tolist() for name in COLUMNS[:-1]), times, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """For each distinct pair, k 'same' answers in n trials: all that inference needs.

    Attributes
    ----------
    pairs : Pairs
        The tested pairs, sorted.
    k, n : NDArray of int, shape (m,)
        'Same' answers and trials of each pair.
    """

    pairs: Pairs
    k: NDArray[np.int64]
    n: NDArray[np.int64]

    def __init__(self, pairs: Pairs, k: ArrayLike, n: ArrayLike):
        same, tested = _check_tally(k, "k"), _check_tally(n, "n")
        if same.shape != (len(pairs),) or tested.shape != (len(pairs),):
            raise InvalidInput(f"Expected {len(pairs)} counts k and n, got {same.shape} and {tested.shape}.")
        if len(pairs) and (tested.min() < 1 or same.min() < 0 or (same > tested).any()):
            raise InvalidInput("Expected n ≥ 1 trials and 0 ≤ k ≤ n 'same' answers for each pair.")
        key = pairs.i * len(pairs.layout) + pairs.j
        if not (np.diff(key) > 0).all():
            order = np.argsort(key)
            pairs, same, tested = pairs.take(order), same[order], tested[order]
        object.__setattr__(self, "pairs", pairs)
        object.__setattr__(self, "k", as_read_only(same))
        object.__setattr__(self, "n", as_read_only(tested))

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return f"<Tally: {self.trials} trials of {len(self)} pairs on {self.layout}>"

    @property
    def layout(self) -> Layout:
        """The layout of the pairs."""
        return self.pairs.layout

    @property
    def share(self) -> NDArray[np.float64]:
        """(m,) the share of 'same' answers, the paper's k_ij."""
        return self.k / self.n

    @property
    def trials(self) -> int:
        """The number of answers to all pairs."""
        return int(self.n.sum())

    def take(self, index: ArrayLike) -> "Tally":
        """Return the pairs selected by a boolean mask or by indices."""
        index = as_index(index)
        return Tally(self.pairs.take(index), self.k[index], self.n[index])


def concatenate(parts: Iterable[Responses]) -> Responses:
    """Concatenate the rows of several Responses, which must have the same layout."""
    parts = list(parts)
    if not parts:
        raise InvalidInput("Expected at least one Responses to concatenate, got none.")
    if any(part.layout != parts[0].layout for part in parts):
        raise InvalidInput("Expected responses on one layout to concatenate, got several layouts.")
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS}
    return Responses(parts[0].layout, **columns)


def is_real_trial(*, practice: bool, catch: bool) -> bool:
    """Return whether answers to a trial can count: it is neither a practice nor a catch trial."""
    return not (practice or catch)


def mark_used(
    session: NDArray[np.integer],
    item: NDArray[np.integer],
    *,
    practice: NDArray[np.bool_],
    catch: NDArray[np.bool_],
    flagged: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Mark the responses that count: in each session, the last valid response to each item.

    A response is valid if it is to a real trial (see `is_real_trial`) that was shown without flags. An item is a trial
    in the list of its session; it is asked again when it was not shown correctly. This is the only place with this
    rule: the database, the export and the live monitor all call it.

    Parameters
    ----------
    session : NDArray of int
        Number of the session of each response, from 0.
    item : NDArray of int
        Number of the trial in the session's list, from 0. The rows of a session are in the order in which its
        responses were given.
    practice, catch : NDArray of bool
        Whether it is the response to a practice trial, or to a catch trial.
    flagged : NDArray of bool
        Whether something went wrong when the trial was shown.

    Returns
    -------
    NDArray of bool
        Whether each response counts.

    Examples
    --------
    >>> no, flagged = np.zeros(4, bool), np.array([False, False, False, True])
    >>> mark_used(np.array([0, 0, 1, 0]), np.array([5, 5, 5, 5]), practice=no, catch=no, flagged=flagged)
    array([False,  True,  True, False])
    """
    used = np.zeros(len(item), np.bool_)
    if not len(item):
        return used
    is_valid = ~(practice | catch | flagged)
    # One slot for every item of every session: the slots of a session follow those of the one before.
    items_per_session = np.zeros(int(session.max()) + 1, np.int64)
    np.maximum.at(items_per_session, session, item + 1)
    slot = (np.cumsum(items_per_session) - items_per_session)[session] + item
    last_row = np.full(int(items_per_session.sum()), -1, np.int64)
    last_row[slot[is_valid]] = np.flatnonzero(is_valid)  # NumPy keeps the last value of a repeated index
    used[last_row[last_row >= 0]] = True
    return used


def as_booleans(same: ArrayLike) -> NDArray[np.bool_]:
    """Return answers as booleans, from booleans or 0 and 1."""
    array = np.asarray(same)
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind in "iuf" and np.isin(array, (0, 1)).all():
        return array.astype(np.bool_)
    if not array.size:
        return np.zeros(0, np.bool_)
    odd = [value for value in array.ravel().tolist() if value not in (0, 1)]
    if not odd:
        return array.astype(np.bool_)
    raise InvalidInput(f"Column same holds 0 or 1 (false or true), got {odd[0]!r}.")


def _as_column(values: NDArray[Any], count: int) -> NDArray[Any]:
    """Return a read-only column; copy the values unless they are read-only already."""
    if values.shape == (count,) and values.flags.owndata and not values.flags.writeable:
        return values
    return as_read_only(np.array(np.broadcast_to(values, count)))


def _check_names(values: ArrayLike, name: str) -> NDArray[np.str_]:
    array = np.asarray(values, dtype=np.str_)
    # An array can be wider than its longest name, for example if it is part of another; only then measure the names.
    if array.itemsize > MAX_NAME_LENGTH * np.dtype("U1").itemsize and array.size:
        longest = int(np.strings.str_len(array).max())
        if longest > MAX_NAME_LENGTH:
            raise InvalidInput(
                f"Column {name} holds names of at most {MAX_NAME_LENGTH} characters, got one of {longest}; shorten it."
            )
    return array


def _check_counts(values: ArrayLike, name: str) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.dtype.kind in "iuf" and ((array >= 0) & (array < 2**53) & (array == np.rint(array))).all():
        return array.astype(np.int64)
    odd = [v for v in array.ravel().tolist() if not isinstance(v, int | float) or v < 0 or v != v // 1]
    raise InvalidInput(f"Column {name} holds whole numbers from 0 up, got {(odd or [None])[0]!r}.")


def _check_times(values: ArrayLike) -> NDArray[np.float64]:
    array = as_floats(values, "rt_ms")
    odd = (array < 0) | np.isinf(array)
    if odd.any():
        raise InvalidInput(
            f"Column rt_ms holds times in milliseconds from 0 up, NaN where unknown, got {array[odd][0]:g}."
        )
    return array


def _check_tally(values: ArrayLike, name: str) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    if array.dtype.kind == "f" and (np.abs(array) < 2**53).all() and (array == np.rint(array)).all():
        return array.astype(np.int64)
    odd = [v for v in array.ravel().tolist() if not isinstance(v, int | float) or abs(v) >= 2**53 or v % 1]
    raise InvalidInput(f"Counts {name} are whole numbers, got {(odd or [None])[0]!r}.")


assert [field.name for field in fields(Responses)][1:] == list(COLUMNS)
