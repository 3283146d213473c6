"""Maps: for every location, the probability of belonging to each segment."""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vseg._support.atomic_files import atomic_write
from vseg.data.layout import Grid, Layout, Scatter, as_floats, as_read_only, check_image_size
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput, NotFound

SIMPLEX_TOLERANCE = 1e-6
MAX_BYTES = 2**30  # uncompressed; protects the memory from files that are not maps
# The errors that NumPy and zipfile raise for an invalid file.
INVALID_FILE_ERRORS = (
    ValueError, TypeError, OSError, EOFError, BadZipFile, zlib.error, MemoryError, AttributeError, NotImplementedError,
    KeyError, SyntaxError, OverflowError, RuntimeError, struct.error,
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Maps:
    """Probabilistic segmentation maps: for every location, the probability of each of K segments.

    Parameters
    ----------
    layout : Layout
    probabilities : array_like, shape (n, K), or (N, N, K) on a grid
        Non-negative, each row summing to one.

    Examples
    --------
    >>> from vseg import Grid
    >>> maps = Maps.one_hot(Grid(3), [0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> maps.labels, float(maps.mean_entropy)
    (array([0, 0, 0, 1, 1, 1, 1, 1, 1]), 0.0)
    """

    layout: Layout
    probabilities: NDArray[np.float64]

    def __init__(self, layout: Layout, probabilities: ArrayLike):
        p = as_floats(probabilities, "probabilities")
        if p.ndim == 3 and isinstance(layout, Grid) and p.shape[:2] == (layout.size, layout.size):
            p = p.reshape(len(layout), -1)
        if p.ndim != 2 or len(p) != len(layout) or p.shape[1] < 1:
            raise InvalidInput(
                f"Expected maps of shape ({len(layout)}, K) on {layout}, got {np.shape(probabilities)}."
            )
        if not np.isfinite(p).all():
            raise InvalidInput("Expected finite probabilities; some are NaN or infinite.")
        if p.min() < -SIMPLEX_TOLERANCE or np.abs(p.sum(axis=1) - 1).max() > SIMPLEX_TOLERANCE:
            raise InvalidInput(
                "Probabilities are non-negative and sum to 1 at every location; the smallest is "
                f"{p.min():g} and the sums run from {p.sum(axis=1).min():g} to {p.sum(axis=1).max():g}."
            )
        p = np.maximum(p, 0)
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "probabilities", as_read_only(p / p.sum(axis=1, keepdims=True)))

    @classmethod
    def one_hot(cls, layout: Layout, labels: ArrayLike, segments: int | None = None) -> "Maps":
        """Return certain maps from one label (0..K-1) for every location."""
        flat = np.asarray(labels).reshape(-1)
        if flat.dtype.kind not in "iub" or len(flat) != len(layout) or flat.min() < 0:
            raise InvalidInput(
                f"Expected {len(layout)} labels from 0 up, one for each location, got {flat!r:.80}."
            )
        count = int(flat.max()) + 1 if segments is None else segments
        if flat.max() >= count:
            raise InvalidInput(f"Labels are 0..{flat.max()}, but segments is {count}.")
        return cls(layout, np.eye(count)[flat.astype(np.int64)])

    def __repr__(self) -> str:
        return f"<Maps: {self.segments} segments on {self.layout}, mean entropy {self.mean_entropy:.3f} nats>"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Maps)
            and self.layout == other.layout
            and np.array_equal(self.probabilities, other.probabilities)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def segments(self) -> int:
        """K, the number of maps."""
        return self.probabilities.shape[1]

    @property
    def image(self) -> NDArray[np.float64]:
        """(N, N, K) probabilities on a grid."""
        return self.probabilities.reshape(*_grid_shape(self.layout), self.segments)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """(n,) the most probable segment of each location: the segmentation map."""
        return as_read_only(self.probabilities.argmax(axis=1))

    @property
    def segments_won(self) -> int:
        """The number of segments that are the most probable one at some location."""
        return len(np.unique(self.labels))

    @cached_property
    def entropy(self) -> NDArray[np.float64]:
        """(n,) -Σ p log p in nats: 0 if certain, log K if all segments are equally likely."""
        return as_read_only(_compute_entropy(self.probabilities))

    @property
    def mean_entropy(self) -> float:
        """The entropy averaged over locations, in nats."""
        return float(self.entropy.mean())

    def same_probability(self, pairs: Pairs) -> NDArray[np.float64]:
        """Return P(same) of each pair (Eq. 2): the inner product of its two rows."""
        if pairs.layout != self.layout:
            raise InvalidInput(f"Expected pairs on {self.layout}, as the maps, got pairs on {pairs.layout}.")
        p = self.probabilities
        return np.clip(np.einsum("mk,mk->m", p[pairs.i], p[pairs.j]), 0, 1)

    def permute(self, order: ArrayLike) -> "Maps":
        """Return the maps in another order of the labels: map `order[k]` becomes map k."""
        index = np.asarray(order)
        if index.dtype.kind not in "iu" or sorted(index.tolist()) != list(range(self.segments)):
            raise InvalidInput(
                f"Expected the numbers 0..{self.segments - 1} in some order, got {index.tolist()}."
            )
        return Maps(self.layout, self.probabilities[:, index])

    def pad(self, segments: int) -> "Maps":
        """Return the maps with empty ones added, up to this number of segments."""
        extra = max(segments - self.segments, 0)
        return Maps(self.layout, np.pad(self.probabilities, ((0, 0), (0, extra))))

    def align_to(self, other: "Maps") -> "Maps":
        """Reorder the labels, which are arbitrary (Eq. 4), to be closest to `other` in L1 (Hungarian assignment).

        If there are fewer maps than in `other`, empty ones are added; if there are more, the unmatched come last.
        """
        return self.pad(other.segments).permute(self.matching_order(other))

    def matching_order(self, other: "Maps") -> NDArray[np.int64]:
        """Return the order of the labels that `align_to` applies, to reorder other arrays in the same way."""
        from scipy.optimize import linear_sum_assignment

        if other.layout != self.layout:
            raise InvalidInput(
                f"Expected maps on the same layout, got {self.layout} and {other.layout}; use resample() first."
            )
        mine, theirs = self.pad(other.segments), other.pad(self.segments)
        cost = np.abs(theirs.probabilities[:, :, None] - mine.probabilities[:, None, :]).sum(axis=0)
        return np.asarray(linear_sum_assignment(cost)[1])

    def distance_to(self, other: "Maps") -> float:
        """Return the L1 distance between the rows of the two maps, with labels aligned, averaged over locations."""
        mine = self.align_to(other)
        return float(np.abs(mine.probabilities - other.pad(mine.segments).probabilities).sum(axis=1).mean())

    def resample(self, layout: Layout) -> "Maps":
        """Return the maps on another layout, by linear interpolation between the locations."""
        return Maps(layout, self._interpolate(layout.positions))

    def render(self, width_px: int, height_px: int) -> NDArray[np.float64]:
        """Return (height_px, width_px, K) the interpolated probabilities for every pixel of an image."""
        size = check_image_size(width_px, height_px)
        y, x = np.mgrid[:height_px, :width_px] + 0.5
        positions = np.stack([x.ravel(), y.ravel()], axis=1) / size
        return self._interpolate(positions).reshape(height_px, width_px, self.segments)

    def save(self, path: str | Path) -> None:
        """Write `probabilities`, (N, N, K) on a grid or (n, K) with `positions`, to an .npz file."""
        # An open file, since NumPy would append .npz to a name without it.
        with atomic_write(path, "wb") as file:
            if isinstance(self.layout, Grid):
                np.savez_compressed(file, probabilities=self.image)
            else:
                np.savez_compressed(file, probabilities=self.probabilities, positions=self.layout.positions)

    @classmethod
    def load(cls, path: str | Path) -> "Maps":
        """Read maps that `save` wrote."""
        if not Path(path).is_file():
            raise NotFound(f"No maps at {path}; expected an .npz file written by vseg.")
        try:
            arrays = read_arrays(path, ("probabilities", "positions"))
        except INVALID_FILE_ERRORS as error:
            raise InvalidInput(
                f"{path} is not an .npz file of maps; expected one written by vseg."
            ) from error
        p = arrays.get("probabilities")
        if p is None:
            raise InvalidInput(f"{path} has no array 'probabilities'; expected maps written by vseg.")
        if "positions" in arrays:
            return cls(Scatter(arrays["positions"]), p)
        if p.ndim != 3 or p.shape[0] != p.shape[1]:
            raise InvalidInput(f"{path}: 'probabilities' has shape {p.shape}, expected (N, N, K).")
        return cls(Grid(p.shape[0]), p)

    def _interpolate(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (m, K) probabilities at any positions: bilinear on a grid, linear on the triangles of a scatter."""
        if isinstance(self.layout, Grid):
            from scipy.ndimage import map_coordinates

            rows_columns = (positions.T * self.layout.size - 0.5)[::-1]
            channels = [
                map_coordinates(p, rows_columns, order=1, mode="nearest")
                for p in np.moveaxis(self.image, 2, 0)
            ]
            values = np.stack(channels, axis=1)
        else:
            from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator

            centres = self.layout.positions
            values = LinearNDInterpolator(centres, self.probabilities)(positions)
            outside = np.isnan(values[:, 0])
            if outside.any():
                values[outside] = NearestNDInterpolator(centres, self.probabilities)(positions[outside])
        values = np.maximum(values, 0)
        return values / values.sum(axis=1, keepdims=True)


def read_arrays(
    path: str | Path, names: Sequence[str], max_bytes: int = MAX_BYTES
) -> dict[str, NDArray[Any]]:
    """Read arrays of an .npz file; those that it does not have are omitted.

    A file that would unpack to more than `max_bytes`, and any other unreadable file, raises one of
    `INVALID_FILE_ERRORS`.
    """
    with open(path, "rb") as file:
        if file.read(2) != b"PK":  # NumPy would read an .npy file, of any size
            raise ValueError("the file is no archive")
        file.seek(0)
        with np.load(file, allow_pickle=False) as stored:
            # A member never unpacks to more than its declared size.
            if (size := sum(member.file_size for member in stored.zip.infolist())) > max_bytes:
                raise ValueError(f"the file would unpack to {size} bytes")
            return {name: stored[name] for name in names if name in stored.files}


def average_entropy(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n,) the entropy at each location in nats, averaged over draws (S, n, K) of maps.

    This is the uncertainty of a posterior's maps. That of its median map is another number.

    Examples
    --------
    >>> average_entropy(np.array([[[1.0, 0.0]], [[0.5, 0.5]]])).round(3)
    array([0.347])
    """
    return _compute_entropy(draws).mean(axis=0)


def _compute_entropy(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return -Σ p log p over the last axis, in nats."""
    p = probabilities
    return -np.sum(p * np.log(np.where(p > 0, p, 1)), axis=-1) + 0.0


def _grid_shape(layout: Layout) -> tuple[int, int]:
    if not isinstance(layout, Grid):
        raise InvalidInput(f"Only maps on a grid have an image, these are on {layout}; use render().")
    return layout.size, layout.size
