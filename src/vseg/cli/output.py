"""The output of commands: a folder that is written completely or not at all, and progress bars."""

import os
import secrets
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vseg._support.temporary_folders import name_unfinished, open_locked, remove_abandoned
from vseg.errors import Conflict, InvalidInput

# What vseg writes at the top of an output folder: --force deletes nothing else.
OURS = {
    "boundaries.png", "durations.csv", "images", "images.csv", "intervals.png", "maps-spatial.npz", "maps.npz",
    "maps.png", "participants", "participants.csv", "participants.png", "photograph", "report.html", "responses.csv",
    "segments.png", "smoothness.png", "summary.json", "texture-high", "texture-low", "truth.npz", "entropies.png",
}  # fmt: skip

Advance = Callable[[int], None]


@contextmanager
def new_folder(
    out: Path, *, force: bool, inputs: Sequence[Path] = (), ours: Collection[str] = frozenset(OURS)
) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `out` at the end, or removed if anything fails.

    Parameters
    ----------
    out : Path
        The output folder.
    force : bool
        Whether an existing `out` is replaced, once everything has succeeded.
    inputs : sequence of Path
        Input files, which must not be deleted.
    ours : collection of str
        The names that a folder may contain to be replaced.
    """
    out = Path(out)
    _check_free(out, force, inputs, ours)
    new_parents = _make_parents(out)
    remove_abandoned(out.parent)
    temporary, lock = name_unfinished(out), None
    try:
        temporary.mkdir()
        lock = open_locked(temporary)
        yield temporary
        _move_into_place(temporary, out)
        new_parents = []
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if lock is not None:
            os.close(lock)
        for parent in new_parents:
            parent.rmdir()


def find_unused_folder(name: str) -> Path:
    """Return the first of name, name-2, name-3, … that does not exist."""
    number, path = 1, Path(name)
    while path.exists() or path.is_symlink():
        number, path = number + 1, Path(f"{name}-{number + 1}")
    return path


@contextmanager
def report_interruption(out: Path) -> Iterator[None]:
    """Print on Ctrl+C that the run can be resumed."""
    try:
        yield
    except KeyboardInterrupt:
        print(
            f"\nInterrupted. What is finished is kept in {out}; the same command resumes from there.",
            file=sys.stderr,
        )
        raise


@contextmanager
def progress_bar(doing: str, total: int, *, fits: bool = True) -> Iterator[Advance]:
    """Show a progress bar on stderr, removed at the end, if stderr is a terminal; yield the function that advances it.

    Parameters
    ----------
    doing : str
        What is being done, such as "Fitting".
    total : int
        The number of steps.
    fits : bool
        Whether the solvers are used, which are compiled at first use.
    """
    if fits and sys.stderr.isatty():
        from vseg._support.numba_cache import has_cached_kernels

        doing += "" if has_cached_kernels() else " (compiling once, about 15 s)"
    with counting_bar(doing, total) as (advance, _):
        yield advance


@contextmanager
def counting_bar(doing: str, total: int, beside: str = "") -> Iterator[tuple[Advance, Advance]]:
    """Show a progress bar with a second count, formatted by `beside`, such as "participants, {:,} answers".

    Yield two functions: one advances the bar, the other adds to the second count.
    """
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
    second_count = 0
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=total, beside=beside.format(0))

        def count(more: int) -> None:
            nonlocal second_count
            second_count += more
            bar.update(task, beside=beside.format(second_count))

        yield (lambda done: bar.advance(task, done)), count


def _check_free(out: Path, force: bool, inputs: Sequence[Path], ours: Collection[str]) -> None:
    if not out.name:
        raise InvalidInput(f"--out: expected the name of a new folder, got {str(out)!r}.")
    if not (out.exists() or out.is_symlink()):
        return
    if not force:
        raise Conflict(f"{out} exists; choose another --out, or use --force to replace it.")
    if not out.is_dir():
        raise Conflict(f"{out} is a file, which --force does not replace; choose another --out.")
    for kept in (Path.cwd(), *inputs):
        if kept.resolve().is_relative_to(out.resolve()):
            raise Conflict(f"--force would delete {kept}, which lies in {out}; choose another --out.")
    foreign = sorted(entry.name for entry in out.iterdir() if entry.name not in ours)
    if foreign:
        raise Conflict(f"--force would delete {foreign[0]}, which vseg did not write; choose another --out.")


def _make_parents(out: Path) -> list[Path]:
    """Create the missing parent folders and return them, the innermost first."""
    missing = [parent for parent in out.parents if not parent.exists()]
    out.parent.mkdir(parents=True, exist_ok=True)
    return missing


def _move_into_place(temporary: Path, out: Path) -> None:
    """Rename `temporary` to `out`; the old `out` is deleted last, and restored if the renaming fails."""
    if not (out.exists() or out.is_symlink()):
        temporary.rename(out)
        return
    old = out.with_name(f".{out.name}-old-{secrets.token_hex(4)}")
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
