"""Features kept on disk by content: the image's pixels, the layout, the feature and its settings, vseg's version.

A file is written under a name of its own and then renamed, so that several processes may share a folder; one that
cannot be read is computed anew.
"""

import hashlib
import inspect
import os
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg import __version__
from vseg._support.atomic_files import atomic_write
from vseg.data.layout import Layout
from vseg.errors import InvalidInput
from vseg.features import Feature, get_feature


def cache_feature(what: str | Feature, *, settings: str = "", folder: str | Path | None = None) -> Feature:
    """The same feature, computed once for each image and layout.

    Parameters
    ----------
    what : str or callable
        A name as for `features.of`, or a function `(image, layout) -> (n, D)`.
    settings : str
        Whatever else the values of a function follow from, such as the name of a network's weights. Its source is
        taken into account, what it closes over is not.
    folder : path, optional
        By default the user's cache folder.

    Examples
    --------
    >>> from vseg import Grid, stimuli
    >>> slow = cached("orientation", folder="kept")
    >>> slow(stimuli.sample("coffee", 64), Grid(4)).shape, slow.__name__
    ((16, 36), 'orientation')
    """
    function = _joined(what) if isinstance(what, str) else what
    if not callable(function):
        raise InvalidInput(f"Features are kept by name or by function, got {type(what).__name__}.")
    told = f"{what} {_sources()}" if isinstance(what, str) else _identity(function)
    identity = f"{__version__}\n{told}\n{settings}"

    def kept(image: NDArray[np.uint8], layout: Layout) -> NDArray[np.float64]:
        file = (cache_folder() if folder is None else Path(folder)) / f"{_key(identity, image, layout)}.npy"
        found = _read(file, len(layout))
        if found is None:
            found = np.asarray(function(image, layout), np.float64)
            _write(file, found)
        return found

    kept.__name__ = what if isinstance(what, str) else getattr(function, "__name__", "function")
    return kept


def cache_folder() -> Path:
    """Where the user's programs keep what can be computed anew."""
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "vseg" / "features"


@cache
def _sources() -> str:
    """Of vseg's own features: what was kept before an edit is not taken for what comes after it."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _joined(names: str) -> Feature:
    parts = [get_feature(name) for name in names.split("+")]

    def all_of(image: NDArray[np.uint8], layout: Layout) -> NDArray[np.float64]:
        return np.concatenate([part(image, layout) for part in parts], axis=1)

    return all_of


def _identity(function: Any) -> str:
    """A function by its name, its source and the arguments it was given beforehand."""
    if isinstance(function, partial):
        return f"{_identity(function.func)} {function.args} {sorted(function.keywords.items())}"
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = ""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(type(function)))}\n{source}"


def _key(identity: str, image: NDArray[np.uint8], layout: Layout) -> str:
    digest = hashlib.sha256(identity.encode())
    picture = np.ascontiguousarray(image)
    digest.update(f"{picture.shape} {picture.dtype} {type(layout).__name__}".encode())
    digest.update(picture.tobytes())
    digest.update(np.ascontiguousarray(layout.positions).tobytes())
    return digest.hexdigest()[:40]


def _read(file: Path, rows: int) -> NDArray[np.float64] | None:
    try:
        found = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if found.dtype != np.float64 or found.ndim not in (1, 2) or len(found) != rows:
        return None
    return np.asarray(found)


def _write(file: Path, values: NDArray[np.float64]) -> None:
    """A folder that cannot be written to is no reason to fail: nothing is kept then."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(file, "wb") as kept:
            np.save(kept, values)
    except OSError:
        return
