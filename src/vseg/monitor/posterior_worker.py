"""The child process that computes posteriors: `python -m vseg.monitor.posterior_worker`, started by posterior_process.

It handles one request (pickled inputs) at a time, with low priority, and exits when its standard input ends: with the
server, or when it is not needed any more.
"""

import os
import pickle
import time
from dataclasses import replace

from vseg._support.subprocesses import serve_requests
from vseg.errors import VsegError
from vseg.monitor.posterior_summary import PosteriorInputs, PosteriorSummary, compute_posterior

NICENESS = 5  # the server, which answers participants, gets three times the processor time


def main() -> None:
    """Handle requests until standard input ends."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    serve_requests(lambda message: pickle.dumps(compute_or_explain(pickle.loads(message))))


def compute_or_explain(inputs: PosteriorInputs) -> PosteriorSummary | str:
    """Return the posterior, or a sentence if it could not be computed."""
    started = time.perf_counter()
    try:
        return replace(compute_posterior(inputs), seconds=time.perf_counter() - started)
    except VsegError as error:
        return str(error)
    except Exception as error:
        return f"The posterior could not be computed: {type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
