"""Test run_submission with submissions that hang, fill the memory, crash and succeed in real child processes."""

import os
import pickle
import re
import select
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from vseg.data.layout import Grid, Scatter
from vseg.errors import InvalidInput, NotFound
from vseg.evaluation.submissions import file_digest, run_submission

HALVES = "return (np.arange(image.shape[1]) >= image.shape[1] // 2) * np.ones(image.shape[:2], int)"


@pytest.fixture
def images():
    return {"grey": np.full((30, 40), 128, np.uint8), "red": np.full((32, 32, 3), [200, 0, 0], np.uint8)}


def test_labels_become_maps_at_the_locations(submit, images):
    result = run_submission(submit(HALVES), images, Grid(4))
    assert set(result.maps) == {"grey", "red"}
    assert result.maps["grey"].labels.reshape(4, 4).tolist() == [[0, 0, 1, 1]] * 4
    assert result.repeatable
    assert result.name == "mine"


def test_scattered_locations(submit, images):
    layout = Scatter([[0.1, 0.1], [0.9, 0.2], [0.2, 0.8], [0.8, 0.9], [0.45, 0.5]])
    labels = run_submission(submit(HALVES), images, layout).maps["red"].labels.tolist()
    assert labels[0] == labels[2] != labels[1] == labels[3]


@pytest.mark.parametrize(
    "body",
    [
        "p = np.full((*image.shape[:2], 3), 1 / 3, np.float32); return p",
        "import vseg; return vseg.Maps(vseg.Grid(4), np.full((16, 3), 1 / 3))",
        "import vseg; return vseg.Maps(vseg.Grid(8), np.full((64, 3), 1 / 3))",
    ],
)
def test_probabilities_and_maps_are_accepted(body, submit, images):
    maps = run_submission(submit(body), images, Grid(4)).maps["red"]
    assert maps.probabilities == pytest.approx(np.full((16, 3), 1 / 3), abs=1e-6)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('no idea')", "ValueError: no idea"),
        ("return np.zeros((3, 3))", "(3, 3)"),
        ("return np.full((*image.shape[:2], 2), np.nan)", "finite"),
        ("return np.full((*image.shape[:2], 2), 1.5)", "from 0 to 1"),
        ("return None", "grey"),
        ("import os; os._exit(0)", "without an answer"),
        ("import sys; sys.exit(3)", "without an answer"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("return np.ones((200_000, 100_000))", "more memory than the 500 MB"),
        ("held = []\n    while True: held.append(np.ones(10**6))", "more memory than the 500 MB"),
    ],
)
def test_a_failure_is_one_sentence(body, message, submit, images):
    with pytest.raises(InvalidInput, match=re.escape(message)) as caught:
        run_submission(submit(body), images, Grid(4), memory_mb=500)
    assert "\n" not in str(caught.value)


def test_a_submission_that_hangs_is_ended(submit, images):
    with pytest.raises(InvalidInput, match="ended after 1 s"):
        run_submission(submit("while True: pass"), images, Grid(4), seconds=1)


@pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="needs Linux to watch the process of another parent"
)
def test_processes_that_a_submission_started_are_ended(submit, images, tmp_path):
    body = f"""import subprocess, sys
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    open({str(tmp_path / "child")!r}, "w").write(str(child.pid))
    raise ValueError"""
    with pytest.raises(InvalidInput, match="ValueError"):
        run_submission(submit(body), images, Grid(4))
    try:
        child = os.pidfd_open(int((tmp_path / "child").read_text()))
    except ProcessLookupError:
        return
    assert select.select([child], [], [], 30)[0]  # readable once it has ended


def test_random_submissions(submit, images):
    """Test that draws from the global state repeat, and that other randomness is noticed."""
    source = submit("return np.random.randint(0, 3, image.shape[:2])")
    first, again = run_submission(source, images, Grid(4)), run_submission(source, images, Grid(4))
    assert first.repeatable
    assert first.maps["red"] == again.maps["red"]
    other = run_submission(
        submit("return np.random.default_rng().integers(0, 3, image.shape[:2])"), images, Grid(4)
    )
    assert not other.repeatable


def test_a_package_as_submission(tmp_path, images):
    package = tmp_path / "theirs"
    package.mkdir()
    (package / "__init__.py").write_text("from theirs.inner import halves as model, halves\n")
    (package / "inner.py").write_text(f"import numpy as np\n\n\ndef halves(image):\n    {HALVES}\n")
    before = file_digest(package)
    result = run_submission(f"{package}:halves", images, Grid(4))
    assert result.maps["red"].segments == 2
    assert result.name == "theirs:halves"
    assert result.digest == before  # __pycache__ is not part of it
    with pytest.raises(InvalidInput, match="no function nothing"):
        run_submission(f"{package}:nothing", images, Grid(4))


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_pytorch_weights_cannot_run_code(tmp_path, images, submit):
    """Test that PyTorch refuses a pickle that would run code, even if the submission asks for it."""
    (tmp_path / "weights.pt").write_bytes(pickle.dumps(Path("anything")))
    body = "import torch; return torch.load('weights.pt', weights_only=False)"
    with pytest.raises(InvalidInput, match="UnpicklingError"):
        run_submission(submit(body), images, Grid(4))


def test_missing_file_and_missing_images(images):
    with pytest.raises(NotFound, match=r"no file nowhere\.py"):
        run_submission("nowhere.py", images, Grid(4))
    with pytest.raises(InvalidInput, match="no pictures"):
        run_submission(__file__, {}, Grid(4))
