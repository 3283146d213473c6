"""Responses, a row a trial, and Tally, the counts k_ij and n_ij that inference sees.

A file of responses is a CSV or Parquet table with at least the columns `i`, `j` and `same`; the other
columns of COLUMNS are read where they are there, and any further ones are passed over.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg.errors import InvalidInput, MissingExtra, NotFound
from vseg.layout import Layout, as_floats, read_only
from vseg.pairs import Pairs, as_index, checked_pairs

COLUMNS = ("participant", "image", "block", "trial", "i", "j", "same", "rt_ms")
REQUIRED = ("i", "j", "same")
CHUNK_ROWS = 2048
TRUTH = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}


@dataclass(frozen=True, eq=False)
class Responses:
    """Same/different answers, a row a trial.

    Parameters
    ----------
    layout : Layout
    i, j : array_like of int
        The two locations of each trial.
    same : array_like of bool or 0/1
        Whether the participant said that they lie in the same segment.
    participant, image : str or array_like of str, optional
    block, trial : int or array_like of int, optional
        Counted from 0.
    rt_ms : array_like of float, optional
        Reaction times; NaN where unknown.

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
        checked_pairs(layout, i, j)
        count = len(np.asarray(i))
        columns: dict[str, NDArray[Any]] = {
            "participant": np.asarray(participant, dtype=np.str_),
            "image": np.asarray(image, dtype=np.str_),
            "block": _counts(block, "block"),
            "trial": np.arange(count) if trial is None else _counts(trial, "trial"),
            "i": np.asarray(i, dtype=np.int64),
            "j": np.asarray(j, dtype=np.int64),
            "same": truth_values(same),
            "rt_ms": _times(rt_ms),
        }
        object.__setattr__(self, "layout", layout)
        for name, values in columns.items():
            if values.ndim and values.shape != (count,):
                raise InvalidInput(f"Column {name} has shape {values.shape}, but there are {count} trials.")
            object.__setattr__(self, name, read_only(np.array(np.broadcast_to(values, count))))

    def __len__(self) -> int:
        return len(self.i)

    @property
    def participants(self) -> list[str]:
        """The participants' names, sorted."""
        return sorted(np.unique(self.participant).tolist())

    @property
    def images(self) -> list[str]:
        """The images' names, sorted."""
        return sorted(np.unique(self.image).tolist())

    def where(self, chosen: ArrayLike) -> "Responses":
        """The rows of a boolean mask or of these numbers."""
        rows = as_index(chosen)
        return Responses(self.layout, **{name: getattr(self, name)[rows] for name in COLUMNS})

    def of(self, *, participant: str | None = None, image: str | None = None) -> "Responses":
        """The rows of one participant, of one image, or of both."""
        chosen = np.ones(len(self), bool)
        for name, wanted in (("participant", participant), ("image", image)):
            if wanted is not None:
                chosen &= getattr(self, name) == wanted
                if not chosen.any():
                    known = ", ".join(np.unique(getattr(self, name))[:10].tolist())
                    raise NotFound(f"No responses of {name} {wanted!r}; there are: {known}.")
        return self.where(chosen)

    def tally(self) -> "Tally":
        """How often each distinct pair was tested and answered 'same'."""
        key = np.minimum(self.i, self.j) * len(self.layout) + np.maximum(self.i, self.j)
        row = np.sort(2 * key + self.same)  # the answer rides along: one sort instead of a sort and a look-up
        key, same = row >> 1, row & 1
        first = np.flatnonzero(np.diff(key, prepend=-1))
        n = np.diff(first, append=len(key))
        k = np.add.reduceat(same, first) if len(key) else same
        i, j = np.divmod(key[first], len(self.layout))
        return Tally(Pairs(self.layout, i, j), k, n)

    def save(self, path: str | Path) -> None:
        """Write a table: Parquet if the name ends in .parquet, else CSV."""
        table = {name: getattr(self, name) for name in COLUMNS}
        table["same"] = self.same.astype(np.int64)
        if Path(path).suffix == ".parquet":
            _parquet().write_table(_arrow().table(table), path)
            return
        times = ["" if np.isnan(rt) else f"{rt:.1f}" for rt in self.rt_ms]
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(zip(*(table[name].tolist() for name in COLUMNS[:-1]), times, strict=True))


@dataclass(frozen=True, eq=False)
class Tally:
    """For each distinct pair, k 'same' answers out of n: all that inference needs, in no order.

    Attributes
    ----------
    pairs : Pairs
        The tested pairs, sorted.
    k, n : NDArray, shape (m,)
        'Same' answers and trials of each pair.
    """

    pairs: Pairs
    k: NDArray[np.int64]
    n: NDArray[np.int64]

    def __init__(self, pairs: Pairs, k: ArrayLike, n: ArrayLike):
        same, tested = _tallied(k, "k"), _tallied(n, "n")
        if same.shape != (len(pairs),) or tested.shape != (len(pairs),):
            raise InvalidInput(f"Expected {len(pairs)} counts k and n, got {same.shape} and {tested.shape}.")
        if len(pairs) and (tested.min() < 1 or same.min() < 0 or (same > tested).any()):
            raise InvalidInput("Each pair was tested n ≥ 1 times and answered 'same' 0 ≤ k ≤ n times.")
        key = pairs.i * len(pairs.layout) + pairs.j
        if not (np.diff(key) > 0).all():
            order = np.argsort(key)
            pairs, same, tested = pairs.take(order), same[order], tested[order]
        object.__setattr__(self, "pairs", pairs)
        object.__setattr__(self, "k", read_only(same))
        object.__setattr__(self, "n", read_only(tested))

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def layout(self) -> Layout:
        """Where the pairs lie."""
        return self.pairs.layout

    @property
    def share(self) -> NDArray[np.float64]:
        """(m,) the paper's k_ij: the share of 'same' answers."""
        return self.k / self.n

    @property
    def trials(self) -> int:
        """All answers together."""
        return int(self.n.sum())

    def take(self, chosen: ArrayLike) -> "Tally":
        """The pairs of a boolean mask or of these numbers."""
        index = as_index(chosen)
        return Tally(self.pairs.take(index), self.k[index], self.n[index])


def concatenated(parts: Iterable[Responses]) -> Responses:
    """The rows of several Responses on one layout, one after the other."""
    listed = list(parts)
    if not listed:
        raise InvalidInput("Expected at least one set of responses to put together, got none.")
    if any(part.layout != listed[0].layout for part in listed):
        raise InvalidInput("Only responses on one layout can be put together; these lie on several.")
    columns = {name: np.concatenate([getattr(part, name) for part in listed]) for name in COLUMNS}
    return Responses(listed[0].layout, **columns)


def load(path: str | Path, layout: Layout) -> Responses:
    """Read a CSV or Parquet file of responses whose locations are those of `layout`.

    Names are taken as they are, spaces included; around numbers, spaces do not matter.

    Examples
    --------
    >>> responses = load("responses.csv", Grid(16))  # doctest: +SKIP
    """
    path = Path(path)
    if not path.is_file():
        raise NotFound(
            f"No file {path}; expected a CSV or Parquet file with the columns {', '.join(REQUIRED)}."
        )
    columns = _parquet_columns(path) if path.suffix == ".parquet" else _csv_columns(path)
    if not len(columns["i"]):
        raise InvalidInput(f"{path} holds no responses; expected a row a trial.")
    _check_locations(path, layout, columns["i"], columns["j"])
    return Responses(layout, **columns)


def _csv_columns(path: Path) -> dict[str, NDArray[Any]]:
    """Each column as an array, read some rows at a time so that few cells are held as text."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = _csv_rows(path, file)
        header = [name.strip() for name in next(rows, [])]
        if not header:
            raise InvalidInput(f"{path} is empty; expected a header with the columns {', '.join(REQUIRED)}.")
        index, done = {name: header.index(name) for name in _present(path, header)}, 0
        parts: dict[str, list[NDArray[Any]]] = {name: [] for name in index}
        code_of: dict[str, dict[str, int]] = {name: {} for name in index}
        while chunk := list(islice(rows, CHUNK_ROWS)):
            _check_widths(path, done, chunk, len(header))
            cells = list(zip(*chunk, strict=False))
            for name, at in index.items():
                parts[name].append(
                    _numbers(path, name, cells[at], done)
                    if name in MANY_VALUED
                    else _codes(cells[at], code_of[name])
                )
            done += len(chunk)
    whole = {name: np.concatenate(parts[name] or [np.zeros(0, np.int64)]) for name in index}
    return {
        name: values if name in MANY_VALUED else _read(path, name, list(code_of[name]), values)
        for name, values in whole.items()
    }


def _csv_rows(path: Path, file: Iterable[str]) -> Iterator[list[str]]:
    try:
        yield from filter(None, csv.reader(file))
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as a CSV file ({error}).") from error


def _check_widths(path: Path, done: int, rows: list[list[str]], width: int) -> None:
    """A row may end in empty cells beyond the header, as spreadsheets write them."""
    if set(map(len, rows)) == {width}:
        return
    for number, row in enumerate(rows):
        if len(row) < width or any(row[width:]):
            line = _line(path, done + number)
            raise InvalidInput(f"{path}, line {line}: {len(row)} cells, but the header has {width} columns.")


def _parquet_columns(path: Path) -> dict[str, NDArray[Any]]:
    """Each column as an array; numbers as Arrow holds them, anything else through its distinct values."""
    parquet = _parquet()
    try:
        names = parquet.read_schema(path).names
        table = parquet.read_table(path, columns=_present(path, names))
    except (OSError, _arrow().ArrowInvalid) as error:
        raise InvalidInput(f"{path} cannot be read as a Parquet file ({error}).") from error
    return {name: _arrow_values(path, name, table[name]) for name in table.column_names}


def _arrow_values(path: Path, name: str, column: Any) -> NDArray[Any]:
    types = _arrow().types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    numeric = types.is_integer(column.type) or types.is_floating(column.type) or types.is_boolean(column.type)
    if numeric and name in TYPES and (name == "rt_ms" or not column.null_count):
        values = column.to_numpy()
        if _fits(name, values):
            return values.astype(TYPES[name])
    try:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        distinct, code = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    except _arrow().ArrowNotImplementedError:  # lists and the like have no dictionary
        distinct, code = column.to_pylist(), np.arange(len(column))
    return _read(path, name, ["" if value is None else str(value) for value in distinct], code)


def _check_locations(path: Path, layout: Layout, i: NDArray[np.int64], j: NDArray[np.int64]) -> None:
    n, smallest, largest = len(layout), min(i.min(), j.min()), max(i.max(), j.max())
    if largest >= n:
        row = int(np.argmax((i >= n) | (j >= n)))
        advice = (
            f"the file's locations are 1..{n}, but they count from 0: take 1 off each"
            if (smallest, largest) == (1, n)
            else "give the --grid that was used (locations count from 0)"
        )
        raise InvalidInput(
            f"{path}, line {_line(path, row)}: location {max(i[row], j[row])} is outside {layout}, "
            f"whose locations are 0..{n - 1}; {advice}."
        )
    if (i == j).any():
        row = int(np.argmax(i == j))
        raise InvalidInput(
            f"{path}, line {_line(path, row)}: i and j are both location {i[row]}, but a pair joins two "
            "different locations; correct the row or leave it out."
        )


def _line(path: Path, row: int) -> int:
    """Where a row of a CSV file ends, from a second look at the file; of a Parquet file, its number from 1."""
    if path.suffix == ".parquet":
        return row + 1
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        next(islice(filter(None, reader), row + 1, None))
        return reader.line_num


def _present(path: Path, names: list[str]) -> list[str]:
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise InvalidInput(
            f"{path} has no column {', '.join(map(repr, missing))}; expected {', '.join(REQUIRED)}, "
            f"found {', '.join(names)}."
        )
    present = [name for name in COLUMNS if name in names]
    twice = [name for name in present if names.count(name) > 1]
    if twice:
        raise InvalidInput(f"{path} has the column {twice[0]!r} twice; expected each once.")
    return present


def _codes(cells: Sequence[str], code_of: dict[str, int]) -> NDArray[np.int32]:
    """Which of the distinct cells each row holds; new ones are added to them."""
    try:
        return np.fromiter(map(code_of.__getitem__, cells), np.int32, len(cells))
    except KeyError:
        for cell in dict.fromkeys(cells):
            code_of.setdefault(cell, len(code_of))
        return np.fromiter(map(code_of.__getitem__, cells), np.int32, len(cells))


def _numbers(path: Path, name: str, cells: Sequence[str], done: int) -> NDArray[Any]:
    """All at once where the cells are plain numbers, else each distinct one by itself."""
    try:
        plain = cells if all(cells) else [cell or "nan" for cell in cells]
        values = np.fromiter(map(float, plain), np.float64, len(plain))
    except ValueError:
        values = np.array([-1.0])
    if _fits(name, values):
        return values.astype(TYPES[name])
    code_of: dict[str, int] = {}
    code = _codes(cells, code_of)
    return _read(path, name, list(code_of), code, done)


def _read(path: Path, name: str, distinct: list[str], code: NDArray[Any], done: int = 0) -> NDArray[Any]:
    """Each distinct cell is read once; of those that cannot be, the first is named with its line."""
    if name not in READERS:
        return np.array(distinct, dtype=np.str_)[code]
    read, refused = [], {}
    for number, cell in enumerate(distinct):
        try:
            read.append(READERS[name](cell.strip()))
        except ValueError as error:
            read.append(0)
            refused[number] = str(error)
    if refused:
        row = int(np.argmax(np.isin(code, list(refused))))
        cell, expected = distinct[code[row]].strip(), refused[int(code[row])]
        raise InvalidInput(
            f"{path}, line {_line(path, done + row)}: column {name} is {cell!r}; expected {expected}."
        )
    return np.array(read, dtype=TYPES[name])[code]


def _fits(name: str, values: NDArray[Any]) -> bool:
    """Whether these numbers are what the column holds, so that no cell needs a closer look."""
    if name == "same":
        return bool(((values == 0) | (values == 1)).all())
    if values.dtype.kind == "b":
        return False
    if name == "rt_ms":
        return bool(((values >= 0) & (values < np.inf) | np.isnan(values)).all())
    return bool(((values >= 0) & (values < 2**53) & (values == np.rint(values))).all())


def _whole(cell: str) -> int:
    number = float(cell) if _is_number(cell) else np.nan
    if not 0 <= number < 2**53 or number != np.rint(number):
        raise ValueError("a whole number from 0 up")
    return int(number)


def _truth(cell: str) -> bool:
    if cell.lower() not in TRUTH:
        raise ValueError("0 or 1 (false or true)")
    return TRUTH[cell.lower()]


def _time(cell: str) -> float:
    if cell.lower() in ("", "nan", "na", "null"):
        return np.nan
    if not _is_number(cell) or float(cell) < 0:
        raise ValueError("a time in milliseconds from 0 up, or nothing")
    return float(cell)


def _is_number(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False


MANY_VALUED = ("trial", "rt_ms")
READERS: dict[str, Callable[[str], Any]] = {
    "block": _whole, "trial": _whole, "i": _whole, "j": _whole, "same": _truth, "rt_ms": _time,
}  # fmt: skip
TYPES: dict[str, type[np.generic]] = {
    "block": np.int64, "trial": np.int64, "i": np.int64, "j": np.int64, "same": np.bool_, "rt_ms": np.float64,
}  # fmt: skip


def truth_values(same: ArrayLike) -> NDArray[np.bool_]:
    """Answers as booleans, from booleans or 0/1."""
    given = np.asarray(same)
    if given.dtype.kind == "b":
        return given
    if given.dtype.kind in "iuf" and np.isin(given, (0, 1)).all():
        return given.astype(np.bool_)
    if not given.size:
        return np.zeros(0, np.bool_)
    odd = [value for value in given.ravel().tolist() if value not in (0, 1)]
    if not odd:
        return given.astype(np.bool_)
    raise InvalidInput(f"Column same holds 0 or 1 (false or true), got {odd[0]!r}.")


def _counts(values: ArrayLike, name: str) -> NDArray[np.int64]:
    given = np.asarray(values)
    if given.dtype.kind in "iuf" and ((given >= 0) & (given < 2**53) & (given == np.rint(given))).all():
        return given.astype(np.int64)
    odd = [v for v in given.ravel().tolist() if not isinstance(v, int | float) or v < 0 or v != v // 1]
    raise InvalidInput(f"Column {name} holds whole numbers from 0 up, got {(odd or [None])[0]!r}.")


def _times(values: ArrayLike) -> NDArray[np.float64]:
    given = as_floats(values, "rt_ms")
    odd = (given < 0) | np.isinf(given)
    if odd.any():
        raise InvalidInput(
            f"Column rt_ms holds times in milliseconds from 0 up, NaN where unknown, got {given[odd][0]:g}."
        )
    return given


def _tallied(values: ArrayLike, name: str) -> NDArray[np.int64]:
    given = np.asarray(values)
    if given.dtype.kind in "iub":
        return given.astype(np.int64)
    if given.dtype.kind == "f" and (np.abs(given) < 2**53).all() and (given == np.rint(given)).all():
        return given.astype(np.int64)
    odd = [v for v in given.ravel().tolist() if not isinstance(v, int | float) or abs(v) >= 2**53 or v % 1]
    raise InvalidInput(f"Counts {name} are whole numbers, got {(odd or [None])[0]!r}.")


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtra('Parquet files need pyarrow: pip install "vseg[parquet]".') from error
    return pyarrow


def _parquet() -> Any:
    _arrow()
    import pyarrow.parquet

    return pyarrow.parquet


assert [field.name for field in fields(Responses)][1:] == list(COLUMNS)
