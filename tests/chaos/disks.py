"""A disk that can be full: a small file system of our own where we may mount one, else a limit on the files."""

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

NO_MOUNT = "no file system may be mounted here, which takes root"
"""Why PostgreSQL's full disk is left out: it is somebody else's process, which no limit of ours reaches."""
SIZE_MB = 64
CHUNK = 1 << 16
NO_MORE_BYTES = 8192


class Disk(Protocol):
    """`folder` is on it; full it takes nothing more from this server."""

    folder: Path
    how: str

    def fill(self, server: int) -> None: ...
    def free(self, server: int) -> None: ...


class Mounted:
    """A tmpfs; what is left of it is filled by a file of ours."""

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
    """No file of the server may grow beyond a few kB (RLIMIT_FSIZE): for those who may not mount anything."""

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
    """A disk in a new folder directly below /tmp, where PostgreSQL, which is somebody else, can reach it."""
    folder = Path(tempfile.mkdtemp(prefix="vseg-disk-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        if not _mounted(folder):
            yield Limited(folder)
            return
        try:
            yield Mounted(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def can_mount() -> bool:
    """Whether a full disk is a real one here."""
    with small_disk() as disk:
        return isinstance(disk, Mounted)


def _mounted(folder: Path) -> bool:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=755", "tmpfs", folder]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
