"""The one way vseg compiles: numba kernels that run without the GIL and are kept on disk.

numba keeps machine code per source file and does not notice when a function imported from another file
has changed. So the cache folder is named after the content of all sources with kernels: a new version,
or an edit, compiles anew. numba itself takes a third of a second to load: with the first kernel, not with this file.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# a·b + c may be fused; sums keep their order, so results do not depend on how a compiler would vectorise them.
OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def compiled(function: Function) -> Function:
    """Compile on first call; keep the machine code on disk where a cache folder can be written."""
    from numba import njit

    try:
        with _cache_folder():
            return njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # no home, or no cache folder that can be written: compile anew in each process
        return njit(**OPTIONS)(function)


def are_kept() -> bool:
    """Whether there is machine code on disk for these sources; if not, a first fit takes some 15 s more."""
    return any(_folder().rglob("*.nbi"))


@contextmanager
def _cache_folder() -> Iterator[None]:
    import numba

    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_folder())
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


@cache
def _folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("NUMBA_CACHE_DIR") or Path(home) / "vseg") / f"kernels-{_fingerprint()}"


@cache
def _fingerprint() -> str:
    sources = sorted(Path(__file__).parents[1].rglob("*.py"))
    kernels = [text for path in sources if b"@compiled" in (text := path.read_bytes())]
    return hashlib.sha256(b"".join(kernels)).hexdigest()[:16]
