"""Fixtures: a temporary working directory."""

from pathlib import Path

import pytest


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path
