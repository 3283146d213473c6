import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from vseg._support.temporary_folders import SUFFIX, remove_abandoned_folders, temporary_folder

HOLD = """
import sys
from vseg._support.temporary_folders import temporary_folder
with temporary_folder("export") as folder:
    (folder / "answers.csv").write_text("private")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)  # Python reads TMPDIR again


def make_old(folder: Path) -> None:
    os.utime(folder, (0, 0))


def test_a_folder_is_private_and_deleted_at_the_end():
    with temporary_folder("export") as folder:
        assert folder.stat().st_mode & 0o077 == 0
        (folder / "inner").mkdir()
    assert not folder.exists()


def test_a_folder_of_a_killed_process_is_deleted_by_the_next(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        folder = Path(other.stdout.readline().strip())
        make_old(folder)
        remove_abandoned_folders()
        assert (folder / "answers.csv").exists(), "it is in use"
        other.kill()
    assert (folder / "answers.csv").exists()
    make_old(folder)
    with temporary_folder("maps") as mine:
        assert list(tmp_path.iterdir()) == [mine]


def test_a_folder_that_may_not_be_locked_yet_is_kept(tmp_path):
    folder = tmp_path / f"vseg-export-new{SUFFIX}"
    folder.mkdir()
    remove_abandoned_folders()
    assert folder.exists()
    make_old(folder)
    remove_abandoned_folders()
    assert not folder.exists()


def test_other_folders_files_and_links_are_kept(tmp_path):
    target, other, file, link = (
        tmp_path / name for name in ("target", "vseg-disk-a", f"vseg-file{SUFFIX}", f"vseg-link{SUFFIX}")
    )
    target.mkdir()
    other.mkdir()
    file.touch()
    link.symlink_to(target)
    for path in (target, other, file):
        make_old(path)
    os.utime(link, (0, 0), follow_symlinks=False)
    remove_abandoned_folders()
    assert sorted(tmp_path.iterdir()) == sorted([target, other, file, link])
