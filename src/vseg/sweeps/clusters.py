"""A Dask cluster as a place of work. Dask is imported only here, and only when it is asked for."""

import pickle
import socket
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from typing import Any

import vseg
from vseg.errors import InvalidInput, MissingExtra, VsegError
from vseg.sweeps.trials import Function, Outcome, Setting, Trial, run_carried
from vseg.sweeps.workers import Place, failed, needed, pickled

CONNECT_S = 3
WORKERS_WITHIN_S = 30
VERSION = "__import__('vseg').__version__ if __import__('importlib.util').util.find_spec('vseg') else None"


class Dask(Place):
    """The workers of a Dask cluster. A task whose worker is gone is given to another by the scheduler itself."""

    def __init__(self, address: str):
        self.address = address
        self._client = _client(address)
        try:
            self._check()
            self.count = self._threads()
            self._executor = self._client.get_executor(pure=False)
        except BaseException:
            self._client.close()
            raise

    def prepare(self, function: Function) -> bytes:
        """Pickled by value where it is of a script or a notebook, which the workers do not have."""
        return pickled(function, by_value=True)

    def submit(
        self, function: Any, settings: dict[int, Setting], trials: Sequence[Trial], seed: int
    ) -> "Future[Outcome]":
        """Begin a task, as bytes that only a worker reads: the scheduler need not have vseg."""
        call = _Call(function, needed(settings, trials), trials, seed, vseg.__version__)
        try:
            self.count = self._threads()
            return self._executor.submit(pickle.loads, pickle.dumps(call))
        except (OSError, RuntimeError) as error:  # the scheduler does not answer any more
            return failed(error)

    def lost(self, error: BaseException) -> int:
        """Dask gives a task up after several workers; a scheduler that is gone is not a lost worker."""
        from distributed import KilledWorker

        if isinstance(error, (CancelledError, OSError)) or self._client.status != "running":
            raise VsegError(
                f"The Dask scheduler at {self.address} is gone; finished trials are kept where a folder was given: "
                "start it again and run the same sweep."
            ) from error
        if isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "vseg":
            raise _unfit(f"A worker of {self.address}", "has no vseg or another one") from error
        return 3 if isinstance(error, KilledWorker) else 0

    def close(self, *, at_once: bool = False) -> None:
        """The cluster stays; only we leave."""
        self._executor.shutdown(wait=not at_once)
        self._client.close()

    def _threads(self) -> int:
        """Asked again before each task: workers come and go."""
        return max(1, sum(self._client.nthreads().values()))

    def _check(self) -> None:
        """Each worker must have this version of vseg; what is asked needs nothing but Python on the other side."""
        try:
            self._client.wait_for_workers(1, timeout=WORKERS_WITHIN_S)
        except TimeoutError as error:
            raise VsegError(
                f"The Dask scheduler at {self.address} has no workers; start some: dask worker HOST:PORT."
            ) from error
        versions = self._client.run(eval, VERSION, on_error="return")
        for worker, version in sorted(versions.items()):
            if version is None or isinstance(version, ImportError):
                raise _unfit(f"The Dask worker at {worker}", "has no vseg")
            if isinstance(version, str) and version != vseg.__version__:  # else it has just gone
                raise _unfit(f"The Dask worker at {worker}", f"has vseg {version}")


class _Call:
    """Becomes, where it is unpickled, what `run_carried` returns."""

    def __init__(self, *arguments: Any):
        self._arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return run_carried, self._arguments


def _unfit(worker: str, what: str) -> VsegError:
    return VsegError(
        f"{worker} {what}, but this is vseg {vseg.__version__}; install the same version there: "
        f"pip install vseg=={vseg.__version__}."
    )


def _client(address: str) -> Any:
    """A client of the scheduler, or a sentence within a few seconds."""
    host, _, port = address.removeprefix("dask://").rstrip("/").rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidInput(f"A Dask scheduler is given as dask://HOST:PORT, got {address!r}.")
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtra('Working on a Dask cluster needs Dask: pip install "vseg[dask]".') from error
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S).close()
        return Client(f"tcp://{host}:{port}", timeout=CONNECT_S, set_as_default=False)
    except Exception as error:  # what is at the other end may be anything, and Dask says so in many ways
        raise VsegError(
            f"No Dask scheduler answers at {address} ({type(error).__name__}: {error}); is it running there, and can "
            "this machine reach it?"
        ) from error
