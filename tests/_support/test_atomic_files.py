"""Files are whole or as they were: a disk that is full at any byte leaves neither half a file nor a stray one."""

import os
import resource
import stat
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
def room_for(most: int) -> Iterator[None]:
    """No file of this process may grow beyond so many bytes: to a program, a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("earlier", [None, b"what was there before"], ids=["new", "replaced"])
@pytest.mark.parametrize("name", SAVED)
def test_a_disk_that_is_full_at_any_moment(tmp_path, name, earlier):
    save, whole_file, path = SAVED[name], tmp_path / f"whole-{name}", tmp_path / "folder" / name
    save(whole_file)
    path.parent.mkdir()
    if earlier is not None:
        path.write_bytes(earlier)
    size = whole_file.stat().st_size
    for most in (0, 1, *range(40, size - 1, size // 10), size - 1):
        with pytest.raises(OSError, match="File too large"), room_for(most):
            save(path)
        left = {each.name: each.read_bytes() for each in path.parent.iterdir()}
        assert left == ({} if earlier is None else {name: earlier}), f"with room for {most} of {size} bytes"
    with room_for(size):
        save(path)
    assert [each.name for each in path.parent.iterdir()] == [name]
    assert path.stat().st_size == size


def test_whatever_ends_the_writing(tmp_path):
    """Also someone who loses patience."""
    (tmp_path / "kept.txt").write_text("before")

    def interrupted() -> None:
        with atomic_write(tmp_path / "kept.txt") as file:
            file.write("half of i")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"]


def test_what_is_replaced_stays_what_it_was(tmp_path):
    """A link still leads to the file, and who may read the file has not changed."""
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("before")
    target.chmod(0o600)
    link.symlink_to(target)
    write_text(link, "after")
    assert link.is_symlink()
    assert target.read_text() == "after"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_what_is_no_file_is_written_to_as_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "through a pipe")
    assert os.read(reading, 100) == b"through a pipe"
    os.close(reading)
    assert pipe.is_fifo()
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "a folder is no file")


@pytest.mark.parametrize("name", ["nowhere/answers.csv", "nowhere/grid.npz"])
def test_an_error_names_the_file_that_was_asked_for(tmp_path, name):
    with pytest.raises(FileNotFoundError) as caught:
        SAVED[Path(name).name](tmp_path / name)
    assert caught.value.filename == str(tmp_path / name)


def test_the_longest_name_that_a_file_may_have(tmp_path):
    path = tmp_path / ("é" * 127)
    write_text(path, "text")
    assert path.read_text() == "text"
