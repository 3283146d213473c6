"""A folder to stand in, and a simulated study in it."""

from pathlib import Path

import pytest

from commands import SMALL, vseg


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def simulated(here, capsys) -> Path:
    assert vseg(f"simulate {SMALL} --participants 3 --out sim", capsys)[0] == 0
    return here / "sim"
