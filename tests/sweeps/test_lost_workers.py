"""Test killed workers and unusable clusters, with real processes and a real Dask cluster."""

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import pytest

import vseg
from sweeps.studies import deadly, noisy, raising
from vseg.errors import InvalidInput, MissingExtra, VsegError
from vseg.sweeps import open_workers, sweep

pytestmark = pytest.mark.slow

BLOCKS = [1, 2, 4]
UNGUARDED = """
from vseg.sweeps import sweep

def repetition(x, seed):
    return {"y": x}

sweep(repetition, {"x": [1]}, repeats=1, seed=0, executor="processes:1")
"""


@pytest.fixture(scope="module")
def plain():
    return sweep(noisy, {"blocks": BLOCKS}, repeats=60, seed=5).column("error").tolist()


class Killer:
    """Kill a worker when the first repetition is finished; the workers write their PIDs into a folder."""

    def __init__(self, where: Path):
        self.where, self.killed = where, 0

    def __call__(self, _: int) -> None:
        if not self.killed:
            self.killed = int(next(self.where.iterdir()).name)
            os.kill(self.killed, signal.SIGKILL)


def sweep_with_killed_worker(executor, where: Path) -> list[float]:
    """Return the errors of a sweep during which a worker is killed and replaced."""
    killer = Killer(where)
    settings = {"blocks": BLOCKS, "where": [str(where)]}
    table = sweep(noisy, settings, repeats=60, seed=5, executor=executor, progress=killer)
    assert killer.killed
    assert len(list(where.iterdir())) > 1  # another one continued
    return table.column("error").tolist()


def test_a_killed_process_loses_no_repetition(tmp_path, plain):
    assert sweep_with_killed_worker("processes:2", tmp_path) == plain


def test_a_process_that_dies_between_two_sweeps_is_replaced(tmp_path, plain):
    with open_workers("processes:2") as workers:
        settings = {"blocks": BLOCKS, "where": [str(tmp_path)]}
        first = sweep(noisy, settings, repeats=60, seed=5, executor=workers).column("error").tolist()
        os.kill(int(next(tmp_path.iterdir()).name), signal.SIGKILL)
        second = sweep(noisy, settings, repeats=60, seed=5, executor=workers).column("error").tolist()
    assert first == second == plain


def test_a_repetition_that_kills_every_worker_is_reported():
    """Test that the repetition itself is named, and not one that ran at the same time."""
    with pytest.raises(VsegError, match="blocks=3, repeat 0 has lost its worker 3 times"):
        sweep(deadly, {"blocks": [1, 2, 3]}, repeats=1, seed=0, executor="processes:2")


def test_a_broken_pool_of_the_caller_is_an_error():
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(VsegError, match="executor lost a worker and cannot go on"),
    ):
        sweep(deadly, {"blocks": [3]}, repeats=1, seed=0, executor=pool)


def test_a_script_without_main_guard_is_an_error(tmp_path):
    """Test the message: each process imports the script, and would start a sweep of its own."""
    (tmp_path / "script.py").write_text(UNGUARDED)
    run = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 1
    assert "if __name__ == '__main__':" in run.stderr.splitlines()[-1]


def test_ctrl_c_ends_the_workers_at_once(tmp_path):
    def interrupt(_):
        signal.raise_signal(signal.SIGINT)

    settings = {"blocks": BLOCKS, "where": [str(tmp_path)]}
    with pytest.raises(KeyboardInterrupt):
        sweep(noisy, settings, repeats=100_000, seed=5, executor="processes:1", progress=interrupt)
    [worker] = tmp_path.iterdir()
    with pytest.raises(ProcessLookupError):
        os.kill(int(worker.name), 0)


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as cluster:
        yield address(cluster)


def address(cluster) -> str:
    return cluster.scheduler_address.replace("tcp", "dask")


def test_a_killed_dask_worker_loses_no_repetition(cluster, tmp_path, plain):
    assert sweep_with_killed_worker(cluster, tmp_path) == plain


def test_dask_gives_the_same_numbers_and_errors(cluster, plain):
    with open_workers(cluster) as workers:
        table = sweep(noisy, {"blocks": BLOCKS}, repeats=60, seed=5, executor=workers)
        assert table.column("error").tolist() == plain
        with pytest.raises(VsegError, match="blocks=3, repeat 0 raised ValueError: three"):
            sweep(raising, {"blocks": [1, 3]}, repeats=1, seed=5, executor=workers)
        offset = 5  # a closure, as in a notebook, is sent with its values
        local = sweep(lambda x, seed: {"y": x + offset}, {"x": [1, 2]}, repeats=1, seed=5, executor=workers)
        assert local.column("y").tolist() == [6, 7]


def test_a_module_that_the_workers_do_not_have_is_reported(cluster, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def repetition(x, seed):\n    return {'y': x}\n")
    monkeypatch.syspath_prepend(tmp_path)
    from only_here import repetition

    with pytest.raises(InvalidInput, match=r"cannot load the function .*No module named 'only_here'"):
        sweep(repetition, {"x": [1]}, repeats=1, seed=0, executor=cluster)


@contextmanager
def scheduler_with_worker(path: Path):
    """Start a scheduler, and a worker whose Python imports modules from `path` first."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=0,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address=":0",
        silence_logs=50,
    ) as cluster:
        worker = subprocess.Popen(
            [
                *(sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address),
                *("--no-nanny", "--no-dashboard", "--nthreads", "1"),
            ],
            env={**os.environ, "PYTHONPATH": str(path)},
            stderr=subprocess.DEVNULL,
        )
        try:
            yield cluster
        finally:
            worker.kill()
            worker.wait()


HIDDEN = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "vseg":
            raise ModuleNotFoundError("No module named 'vseg'", name="vseg")

sys.meta_path.insert(0, Hidden())
"""


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("sitecustomize.py", HIDDEN, "has no vseg"),
        ("vseg/__init__.py", '__version__ = "0.0.1"\n', "has vseg 0.0.1"),
    ],
)
def test_a_dask_worker_without_this_vseg_is_reported(file, text, problem, tmp_path):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    with (
        scheduler_with_worker(tmp_path) as cluster,
        pytest.raises(
            VsegError, match=rf"worker at tcp://.* {problem}.*pip install vseg=={vseg.__version__}"
        ),
    ):
        sweep(noisy, {"blocks": BLOCKS}, repeats=1, seed=0, executor=address(cluster))


def test_finished_repetitions_are_saved_when_the_scheduler_goes(tmp_path):
    settings = {"blocks": BLOCKS}
    with (
        scheduler_with_worker(Path(__file__).parent.parent) as cluster,
        pytest.raises(VsegError, match=f"scheduler at {address(cluster)} is gone"),
    ):
        sweep(
            noisy, settings, repeats=10_000, seed=5, executor=address(cluster), checkpoint=tmp_path,
            progress=lambda _: cluster.close(),
        )  # fmt: skip
    assert (tmp_path / "trials.jsonl").read_text().count("\n") >= 1


def test_no_scheduler_at_the_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"dask://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(VsegError, match=rf"No Dask scheduler answers at {address} \(ConnectionRefusedError"):
        sweep(noisy, {"blocks": BLOCKS}, repeats=1, seed=0, executor=address)


@pytest.mark.parametrize("address", ["dask://", "dask://here", "dask://here:port"])
def test_invalid_scheduler_address(address):
    with pytest.raises(InvalidInput, match="dask://HOST:PORT"):
        sweep(noisy, {"blocks": BLOCKS}, repeats=1, seed=0, executor=address)


def test_a_missing_dask_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"pip install \"vseg\[dask\]\""):
        sweep(noisy, {"blocks": BLOCKS}, repeats=1, seed=0, executor="dask://127.0.0.1:8786")
