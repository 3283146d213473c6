"""The process in which posteriors are worked out: `python -m vseg.monitor.posterior_worker`, driven by `posteriors`.

It reads pickled questions from its standard input and writes what came of each to its standard output, one at a time,
with a lower claim on the processor, and ends when its input does: with the server, or when it is not needed.
"""

import os
import pickle
import queue
import sys
import threading
import time
from dataclasses import replace
from typing import BinaryIO

from vseg.errors import VsegError
from vseg.monitor.posterior_summary import Believed, Question, believed

MODEST = 5  # niceness: whoever answers participants comes first, with three times the claim


def main() -> None:
    """Answer until there are no more questions."""
    if hasattr(os, "nice"):
        os.nice(MODEST)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no reply
    waiting: queue.SimpleQueue[Question] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, waiting), daemon=True).start()
    while True:
        pickle.dump(answer_to(waiting.get()), replies)
        replies.flush()


def answer_to(asked: Question) -> Believed | str:
    """What came of a question; a sentence if it could not be answered."""
    began = time.perf_counter()
    try:
        return replace(believed(asked), seconds=time.perf_counter() - began)
    except VsegError as error:
        return str(error)
    except Exception as error:
        return f"The posterior could not be worked out: {type(error).__name__}: {error}"


def _listen(questions: BinaryIO, waiting: "queue.SimpleQueue[Question]") -> None:
    """In a thread, so that a process in the midst of a question ends with the server, too."""
    try:
        while True:
            waiting.put(pickle.load(questions))
    finally:  # at the end, or in the midst of a question if the server was killed
        os._exit(0)


if __name__ == "__main__":
    main()
