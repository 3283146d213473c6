"""Test that files are complete or unchanged: a disk that is full at any byte leaves no partial and no extra file."""

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from vseg import stimuli
from vseg._support.atomic_files import atomic_write, write_text
from vseg.data.layout import Grid, Scatter
from vseg.data.maps import Maps
from vseg.data.responses import Responses

ANSWERS = Responses(Grid(3), [0] * 200, [1, 8] * 100, [1, 0] * 100, rt_ms=np.arange(200.0))
CORNERS = Scatter([[0, 0], [1, 0], [0, 1], [1, 1]])
SAVED: dict[str, Callable[[Path], object]] = {
    "answers.csv": ANSWERS.save,
    "answers.parquet": ANSWERS.save,
    "grid.npz": stimuli.random_maps(Grid(8), segments=3, seed=0).save,
    "scatter.npz": Maps.one_hot(CORNERS, [0, 0, 1, 1]).save,
    "durable.json": lambda path: write_text(path, '{"seed": 7}\n' * 50, durable=True),
    "page.html": lambda path: write_text(path, "<p>as long as a page is</p>\n" * 50),
}


@contextmanager
def limit_file_size(most: int) -> Iterator[None]:
    """Let no file of this process grow beyond so many bytes, which looks like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("earlier", [None, b"what was there before"], ids=["new", "replaced"])
@pytest.mark.parametrize("name", SAVED)
def test_a_disk_that_is_full_at_any_byte(tmp_path, name, earlier):
    save, complete, path = SAVED[name], tmp_path / f"complete-{name}", tmp_path / "folder" / name
    save(complete)
    path.parent.mkdir()
    if earlier is not None:
        path.write_bytes(earlier)
    size = complete.stat().st_size
    for most in (0, 1, *range(40, size - 1, size // 10), size - 1):
        with pytest.raises(OSError, match="File too large"), limit_file_size(most):
            save(path)
        left = {file.name: file.read_bytes() for file in path.parent.iterdir()}
        assert left == ({} if earlier is None else {name: earlier}), f"with room for {most} of {size} bytes"
    with limit_file_size(size):
        save(path)
    assert [file.name for file in path.parent.iterdir()] == [name]
    assert path.stat().st_size == size


def test_an_interrupt_leaves_the_old_file(tmp_path):
    (tmp_path / "file.txt").write_text("before")

    def write_and_interrupt() -> None:
        with atomic_write(tmp_path / "file.txt") as file:
            file.write("half of i")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_interrupt()
    assert [file.read_text() for file in tmp_path.iterdir()] == ["before"]


def test_links_and_permissions_are_preserved(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("before")
    target.chmod(0o600)
    link.symlink_to(target)
    write_text(link, "after")
    assert link.is_symlink()
    assert target.read_text() == "after"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_pipes_are_written_directly_and_folders_are_refused(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "through a pipe")
    assert os.read(reading, 100) == b"through a pipe"
    os.close(reading)
    assert pipe.is_fifo()
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "a folder is not a file")


@pytest.mark.parametrize("name", ["nowhere/answers.csv", "nowhere/grid.npz"])
def test_errors_name_the_requested_file(tmp_path, name):
    with pytest.raises(FileNotFoundError) as caught:
        SAVED[Path(name).name](tmp_path / name)
    assert caught.value.filename == str(tmp_path / name)


def test_the_longest_possible_file_name(tmp_path):
    path = tmp_path / ("é" * 127)
    write_text(path, "text")
    assert path.read_text() == "text"


HOLD = """
import sys
from vseg._support.atomic_files import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write("half of it")
    file.flush()
    print(flush=True)
    sys.stdin.read()
"""
WRITE = (
    "import sys; from vseg._support.atomic_files import atomic_write\nwith atomic_write(sys.argv[1]): pass"
)


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    write_other = [sys.executable, "-c", WRITE, tmp_path / "other.csv"]
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "answers.csv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as killed:
        killed.stdout.readline()
        (left,) = tmp_path.iterdir()
        os.utime(left, (0, 0))
        subprocess.run(write_other, check=True)
        assert left.exists(), "it is in use"
        killed.kill()
    assert left.read_text() == "half of it"
    os.utime(left, (0, 0))
    mine = tmp_path / ".notes-unfinished-mine"
    mine.touch()
    os.utime(mine, (0, 0))
    subprocess.run(write_other, check=True)
    assert sorted(tmp_path.iterdir()) == [mine, tmp_path / "other.csv"]
