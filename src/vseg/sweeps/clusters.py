"""The workers of a Dask cluster. Dask is imported only in this module, and only when a cluster is used."""

import pickle
import socket
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any

import vseg
from vseg.errors import InvalidInput, MissingExtra, VsegError
from vseg.sweeps.repetitions import (
    PreparedFunction,
    Repetition,
    Setting,
    SweepFunction,
    TaskOutcome,
    run_repetitions_remotely,
)
from vseg.sweeps.workers import Workers, failed_future, pickle_function, select_settings

if TYPE_CHECKING:
    from distributed import Client

CONNECT_TIMEOUT_S = 3
WORKERS_TIMEOUT_S = 30
LOST_BY_KILLED_WORKER = 3  # Dask itself has tried a task on several workers before it raises KilledWorker
# Evaluated on each worker, which may have nothing but Python.
VERSION_EXPRESSION = (
    "__import__('vseg').__version__ if __import__('importlib.util').util.find_spec('vseg') else None"
)


class DaskWorkers(Workers):
    """The workers of a Dask cluster; the scheduler itself gives the task of a lost worker to another one."""

    def __init__(self, address: str):
        self.address = address
        self._client = _connect(address)
        try:
            self._check_versions()
            self.count = self._count_threads()
            self._executor = self._client.get_executor(pure=False)
        except BaseException:
            self._client.close()
            raise

    def prepare(self, function: SweepFunction) -> bytes:
        """Pickle the function, by value if it is from a script or notebook, which the workers do not have."""
        return pickle_function(function, by_value=True)

    def submit(
        self,
        function: PreparedFunction,
        settings: dict[int, Setting],
        repetitions: Sequence[Repetition],
        seed: int,
    ) -> "Future[TaskOutcome]":
        """Begin a task, as bytes that only a worker reads: the scheduler need not have vseg."""
        call = _RemoteCall(
            function, select_settings(settings, repetitions), repetitions, seed, vseg.__version__
        )
        try:
            self.count = self._count_threads()
            future: Future[TaskOutcome] = self._executor.submit(pickle.loads, pickle.dumps(call))
            return future
        except (OSError, RuntimeError) as error:  # the scheduler does not answer any more
            return failed_future(error)

    def count_lost(self, error: BaseException) -> int:
        """Return how many workers Dask has lost on this task; raise if the scheduler itself is gone."""
        from distributed import KilledWorker

        if isinstance(error, (CancelledError, OSError)) or self._client.status != "running":
            raise VsegError(
                f"The Dask scheduler at {self.address} is gone; finished repetitions are saved if a checkpoint folder "
                "was given: start the scheduler again and run the same sweep."
            ) from error
        if isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "vseg":
            raise _version_error(f"A worker of {self.address}", "has no vseg or another one") from error
        return LOST_BY_KILLED_WORKER if isinstance(error, KilledWorker) else 0

    def close(self, *, at_once: bool = False) -> None:
        """Disconnect; the cluster itself goes on."""
        self._executor.shutdown(wait=not at_once)
        self._client.close()

    def _count_threads(self) -> int:
        """Return the number of threads of all workers; it changes as workers come and go."""
        return max(1, sum(self._client.nthreads().values()))

    def _check_versions(self) -> None:
        """Check that each worker has this version of vseg."""
        try:
            self._client.wait_for_workers(1, timeout=WORKERS_TIMEOUT_S)
        except TimeoutError as error:
            raise VsegError(
                f"The Dask scheduler at {self.address} has no workers; start some: dask worker HOST:PORT."
            ) from error
        versions = self._client.run(eval, VERSION_EXPRESSION, on_error="return")
        for worker, version in sorted(versions.items()):
            if version is None or isinstance(version, ImportError):
                raise _version_error(f"The Dask worker at {worker}", "has no vseg")
            if isinstance(version, str) and version != vseg.__version__:  # otherwise it has just gone
                raise _version_error(f"The Dask worker at {worker}", f"has vseg {version}")


class _RemoteCall:
    """An object that becomes the result of `run_repetitions_remotely` where it is unpickled."""

    def __init__(self, *arguments: Any):
        self._arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return run_repetitions_remotely, self._arguments


def _version_error(worker: str, problem: str) -> VsegError:
    return VsegError(
        f"{worker} {problem}, but this is vseg {vseg.__version__}; install the same version there: "
        f"pip install vseg=={vseg.__version__}."
    )


def _connect(address: str) -> "Client":
    """Return a client of the scheduler; raise within a few seconds if it does not answer."""
    host, _, port = address.removeprefix("dask://").rstrip("/").rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidInput(f"A Dask scheduler is given as dask://HOST:PORT, got {address!r}.")
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtra('Working on a Dask cluster needs Dask: pip install "vseg[dask]".') from error
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_TIMEOUT_S).close()
        return Client(f"tcp://{host}:{port}", timeout=CONNECT_TIMEOUT_S, set_as_default=False)
    except Exception as error:  # anything may listen there, and Dask raises many kinds of errors
        raise VsegError(
            f"No Dask scheduler answers at {address} ({type(error).__name__}: {error}); is it running there, and can "
            "this machine reach it?"
        ) from error
