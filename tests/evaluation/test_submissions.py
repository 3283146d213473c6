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
from vseg.evaluation.submissions import SubmissionFailed, file_digest, run_submission

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


LEAVE = """import json, os, pathlib, sys, zipfile
    folder = pathlib.Path(sys.argv[1])
    (folder / "report.json").write_text(json.dumps({"seconds": 1.0, "repeatable": True}))
    np.savez(folder / "maps.npz", **{f"maps-{k}": np.full((16, 2), 0.5) for k in range(2)})
    {more}
    os._exit(0)"""


def test_the_result_of_the_next_test_is_valid_unless_it_is_spoilt(submit, images):
    assert set(run_submission(submit(LEAVE.replace("{more}", "pass")), images, Grid(4)).maps) == set(images)


@pytest.mark.parametrize(
    "more",
    [
        "(folder / 'maps.npz').write_bytes(b'PK not a zip')",
        "(folder / 'maps.npz').write_bytes((folder / 'maps.npz').read_bytes()[:300])",
        "np.savez(folder / 'maps.npz', **{'maps-0': np.full((16, 2), 0.5)})",
        "np.savez(folder / 'maps.npz', **{f'maps-{k}': np.full((16, 2), np.nan) for k in range(2)})",
        "np.savez(folder / 'maps.npz', **{f'maps-{k}': np.full((9, 2), 0.5) for k in range(2)})",
        "np.savez(folder / 'maps.npz', **{f'maps-{k}': np.array(['a', 'b']) for k in range(2)})",
        "(folder / 'report.json').write_text('{')",
        "(folder / 'report.json').write_text('[1, 2]')",
        "(folder / 'report.json').write_text('[' * 100_000)",
        "(folder / 'report.json').write_text('{\"seconds\": \"soon\"}')",
        "(folder / 'report.json').write_text('{\"seconds\": NaN}')",
        "(folder / 'report.json').write_bytes(bytes([255, 254]))",
        "open(folder / 'report.json', 'wb').truncate(2**40)",
    ],
)
def test_a_spoilt_result_is_a_failure_of_this_submission(more, submit, images):
    """The process of a submission can write whatever it wants, by mistake or not."""
    with pytest.raises(SubmissionFailed, match="cannot be read") as caught:
        run_submission(submit(LEAVE.replace("{more}", more)), images, Grid(4))
    assert "\n" not in str(caught.value)


def test_maps_that_would_unpack_to_gigabytes_are_not_unpacked(submit, images):
    more = """with zipfile.ZipFile(folder / "maps.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("maps-0.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array_header_1_0(
                member, {"descr": "<f8", "fortran_order": False, "shape": (16, 2**25)}
            )
            for _ in range(512):
                member.write(bytes(2**20))"""
    with pytest.raises(SubmissionFailed, match=r"would unpack to \d+ bytes"):
        run_submission(submit(LEAVE.replace("{more}", more)), images, Grid(4))


@pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="needs Linux to watch the process of another parent"
)
def test_a_process_that_has_left_the_group_is_ended(submit, images, tmp_path):
    """By a double fork with a session of its own, as daemons do; the submission itself succeeds."""
    file = tmp_path / "daemon"
    body = f"""import os, signal
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open({str(file)!r} + ".new", "w").write(str(os.getpid()))
            os.rename({str(file)!r} + ".new", {str(file)!r})
            while True:
                signal.pause()
        os._exit(0)
    while not os.path.exists({str(file)!r}):
        pass
    {HALVES}"""
    run_submission(submit(body), images, Grid(4))
    try:
        daemon = os.pidfd_open(int(file.read_text()))
    except ProcessLookupError:
        return
    assert select.select([daemon], [], [], 30)[0]  # readable once it has ended
