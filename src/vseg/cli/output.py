"""Where commands write: an output folder that is whole or not there, safe names, progress bars, and counts."""

import secrets
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vseg.errors import Conflict, InvalidInput

# What vseg writes at the top of a folder: --force deletes nothing else.
OURS = {
    "boundaries.png", "images", "images.csv", "intervals.png", "maps-spatial.npz", "maps.npz", "maps.png",
    "participants", "participants.csv", "participants.png", "photograph", "report.html", "responses.csv",
    "segments.png", "smoothness.png", "summary.json", "texture-high", "texture-low", "truth.npz", "entropies.png",
}  # fmt: skip

Advance = Callable[[int], None]


@contextmanager
def new_folder(
    out: Path, *, force: bool, inputs: Sequence[Path] = (), ours: Collection[str] = frozenset(OURS)
) -> Iterator[Path]:
    """A temporary folder beside `out` that takes its place at the end, or is removed if anything fails.

    Parameters
    ----------
    force : whether an `out` that exists is replaced, once all has succeeded
    inputs : files that must outlive this
    ours : what may lie in a folder that is replaced
    """
    out = Path(out)
    _check_free(out, force, inputs, ours)
    made = _make_parents(out)
    temporary = _sibling(out, "unfinished")
    try:
        temporary.mkdir()
        yield temporary
        _put(temporary, out)
        made = []
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        for parent in made:
            parent.rmdir()


def unused(name: str) -> Path:
    """The folder of that name, or name-2, name-3, … if it exists."""
    number, path = 1, Path(name)
    while path.exists() or path.is_symlink():
        number, path = number + 1, Path(f"{name}-{number + 1}")
    return path


@contextmanager
def resumable(out: Path) -> Iterator[None]:
    """Whoever cuts such a run is told that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        print(
            f"\nCut. What is finished is kept in {out}: the same command goes on from there.", file=sys.stderr
        )
        raise


@contextmanager
def progress_bar(doing: str, total: int, *, fits: bool = True) -> Iterator[Advance]:
    """A bar on stderr that is gone at the end; nothing where stderr is no terminal.

    Parameters
    ----------
    fits : whether the work is done by the solvers, which are compiled when first used
    """
    if fits and sys.stderr.isatty():
        from vseg._support.numba_cache import has_cached_kernels

        doing += "" if has_cached_kernels() else " (compiling first, this once: about 15 s)"
    with counting_bar(doing, total) as (advance, _):
        yield advance


@contextmanager
def counting_bar(doing: str, total: int, beside: str = "") -> Iterator[tuple[Advance, Advance]]:
    """The same with a second count behind, which `beside` words, such as "participants, {:,} answers"."""
    if not sys.stderr.isatty():
        yield (lambda done: None), (lambda more: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        *([TextColumn("{task.fields[beside]}", markup=False)] if beside else []),
        TimeElapsedColumn(),
    )
    counted_beside = 0
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=total, beside=beside.format(0))

        def count(more: int) -> None:
            nonlocal counted_beside
            counted_beside += more
            bar.update(task, beside=beside.format(counted_beside))

        yield (lambda done: bar.advance(task, done)), count


def _check_free(out: Path, force: bool, inputs: Sequence[Path], ours: Collection[str]) -> None:
    if not out.name:
        raise InvalidInput(f"--out is the name of a new folder, got {str(out)!r}.")
    if not (out.exists() or out.is_symlink()):
        return
    if not force:
        raise Conflict(f"{out} exists; choose another --out, or pass --force to replace it.")
    if not out.is_dir():
        raise Conflict(f"{out} is a file, which --force does not replace; choose another --out.")
    for kept in (Path.cwd(), *inputs):
        if kept.resolve().is_relative_to(out.resolve()):
            raise Conflict(f"--force would delete {kept}, which lies in {out}; choose another --out.")
    foreign = sorted(entry.name for entry in out.iterdir() if entry.name not in ours)
    if foreign:
        raise Conflict(f"--force would delete {foreign[0]}, which vseg did not write; choose another --out.")


def _make_parents(out: Path) -> list[Path]:
    """The parent folders that were missing and are now there, the innermost first."""
    missing = [parent for parent in out.parents if not parent.exists()]
    out.parent.mkdir(parents=True, exist_ok=True)
    return missing


def _sibling(out: Path, why: str) -> Path:
    return out.with_name(f".{out.name}-{why}-{secrets.token_hex(4)}")


def _put(temporary: Path, out: Path) -> None:
    """Rename into place; what was there before is deleted last, and put back if the renaming fails."""
    if not (out.exists() or out.is_symlink()):
        temporary.rename(out)
        return
    old = _sibling(out, "old")
    out.rename(old)
    try:
        temporary.rename(out)
    except BaseException:
        old.rename(out)
        raise
    if old.is_symlink():
        old.unlink()
    else:
        shutil.rmtree(old, ignore_errors=True)
