"""Simulate a full disk: by a small file system if the user may mount one, otherwise by a limit on file sizes."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

NO_MOUNT = "mounting a file system needs root"
"""Why PostgreSQL's full disk is skipped: its process belongs to another user, so no limit can be set on it."""
SIZE_MB = 64
CHUNK = 1 << 16
NO_MORE_BYTES = 8192


class Disk(Protocol):
    """A disk with a folder on it; when it is full, the server cannot write to it."""

    folder: Path
    how: str

    def fill(self, server: int) -> None: ...
    def free(self, server: int) -> None: ...


class Mounted:
    """A tmpfs; a file fills the free space."""

    how = f"a tmpfs of {SIZE_MB} MB, filled"

    def __init__(self, folder: Path):
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self, _server: int) -> None:
        with open(self._filler, "wb", buffering=0) as file:
            for size in (CHUNK, 512):
                with suppress(OSError):
                    while True:
                        file.write(b"\0" * size)

    def free(self, _server: int) -> None:
        self._filler.unlink()


class Limited:
    """A limit on the size of the server's files (RLIMIT_FSIZE), for users who may not mount file systems."""

    how = "RLIMIT_FSIZE of the server set to 8 kB"

    def __init__(self, folder: Path):
        self.folder = folder

    def fill(self, server: int) -> None:
        _, most = resource.prlimit(server, resource.RLIMIT_FSIZE)
        resource.prlimit(server, resource.RLIMIT_FSIZE, (NO_MORE_BYTES, most))

    def free(self, server: int) -> None:
        _, most = resource.prlimit(server, resource.RLIMIT_FSIZE)
        resource.prlimit(server, resource.RLIMIT_FSIZE, (most, most))


@contextmanager
def small_disk() -> Iterator[Disk]:
    """Create a disk in a new folder directly below /tmp, which PostgreSQL, run by another user, can access."""
    folder = Path(tempfile.mkdtemp(prefix="vseg-disk-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        if not _try_mount(folder):
            yield Limited(folder)
            return
        try:
            yield Mounted(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def can_mount() -> bool:
    """Return whether file systems can be mounted on this machine."""
    with small_disk() as disk:
        return isinstance(disk, Mounted)


def _try_mount(folder: Path) -> bool:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=755", "tmpfs", folder]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
