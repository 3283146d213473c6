"""Compile numba kernels that run without the GIL, and cache their machine code on disk.

numba caches machine code per source file and does not notice when a function imported from another file has changed.
The cache folder is therefore named after the content of all sources with kernels: a new version or an edit compiles
again. numba takes a third of a second to import, so it is imported with the first kernel and not with this module.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE = Path(__file__).parents[1]
# a·b + c may be fused; sums keep their order, so results do not depend on how a compiler would vectorise them.
OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def compiled(function: Function) -> Function:
    """Compile a function at its first call, and cache the machine code if the cache folder is writable."""
    from numba import njit

    try:
        with _use_cache_folder():
            return njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # no home, or no writable cache folder: compile in each process
        return njit(**OPTIONS)(function)


def has_cached_kernels() -> bool:
    """Return whether machine code for these sources is on disk; without it, the first fit takes about 15 s more."""
    return any(_cache_folder().rglob("*.nbi"))


@contextmanager
def _use_cache_folder() -> Iterator[None]:
    import numba

    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_cache_folder())
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


@cache
def _cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("NUMBA_CACHE_DIR") or Path(home) / "vseg") / f"kernels-{_fingerprint()}"


@cache
def _fingerprint() -> str:
    sources = sorted(PACKAGE.rglob("*.py"))
    kernels = [text for path in sources if b"@compiled" in (text := path.read_bytes())]
    return hashlib.sha256(b"".join(kernels)).hexdigest()[:16]
