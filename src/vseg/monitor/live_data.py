"""The answers of running studies in memory; each refresh reads only what is new."""

import threading
import time
from collections import OrderedDict

from vseg import store
from vseg.monitor.answers import Answers
from vseg.monitor.buffer import StudyBuffer
from vseg.monitor.posterior_process import PosteriorService
from vseg.store.changes import read_study
from vseg.store.studies import StudyRow

MAX_ROWS = 5_000_000  # of all studies together; the least recently used study is dropped


class LiveData:
    """The studies of one database in the memory of this process; any thread may call it.

    Each study is read in a thread of its own. All callers during one refresh wait for the same refresh, and none longer
    than its `wait_s`. `posteriors` computes posteriors in the background.
    """

    def __init__(self, db: store.Database):
        self._db = db
        self.posteriors = PosteriorService()
        self._lock = threading.Lock()
        self._readers: OrderedDict[int, _BackgroundReader] = OrderedDict()

    def answers(self, study: StudyRow, wait_s: float) -> Answers | None:
        """Return the current answers of a study.

        If reading takes longer than `wait_s`, return those of the last refresh, or None during the first one, which
        reads everything.
        """
        return self._reader(study).refresh(study, wait_s)

    def loading_progress(self, study: StudyRow) -> float:
        """Return which share of the new sessions has been read, 0 to 1; 1 if nothing is being read."""
        return self._reader(study).fraction

    def close(self) -> None:
        """Stop the work in the background."""
        self.posteriors.close()

    def _reader(self, study: StudyRow) -> "_BackgroundReader":
        with self._lock:
            reader = self._readers.get(study.id)
            if reader is None:
                reader = self._readers[study.id] = _BackgroundReader(self._db)
            self._readers.move_to_end(study.id)
            rows = sum(len(each) for each in self._readers.values())
            while rows > MAX_ROWS and len(self._readers) > 1:
                rows -= len(self._readers.popitem(last=False)[1])
            return reader


class _BackgroundReader:
    """One study, and the thread that reads it on request."""

    def __init__(self, db: store.Database):
        self._db = db
        self._changed = threading.Condition()
        self._requested = self._done = 0
        self._thread: threading.Thread | None = None  # None if no request is left
        self._error: Exception | None = None
        self._study: StudyRow | None = None
        self._buffer: StudyBuffer | None = None
        self._answers: Answers | None = None
        self.fraction = 0.0

    def __len__(self) -> int:
        return 0 if self._answers is None else len(self._answers)

    def refresh(self, study: StudyRow, wait_s: float) -> Answers | None:
        """Return the answers of a refresh that began after this call, or the last ones if it takes too long."""
        with self._changed:
            self._study = study
            self._requested += 1
            request = self._requested
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._run, name="vseg-live-data", daemon=True)
                thread.start()
                self._thread = thread
            self._changed.wait_for(lambda: self._done >= request, wait_s)
            if self._done >= request and self._error is not None:
                raise self._error
            return self._answers

    def _run(self) -> None:
        """Refresh until no request is left."""
        while True:
            with self._changed:
                if self._done >= self._requested:
                    self._thread = None
                    return
                request, study = self._requested, self._study
            error, answers = None, self._answers
            try:
                assert study is not None
                answers = self._read(study)
            except Exception as caught:  # raised in the threads that wait
                error = caught
            with self._changed:
                self._answers, self._error, self._done = answers, error, request
                self._changed.notify_all()

    def _read(self, study: StudyRow) -> Answers:
        if self._buffer is None or self._buffer.digest != study.digest:
            self._buffer = StudyBuffer(study)
        self.fraction = 0.0
        with read_study(self._db, study.id) as reader:
            answers = self._buffer.refresh(reader, study, self._set_fraction)
        self.fraction = 1.0
        return answers

    def _set_fraction(self, fraction: float) -> None:
        self.fraction = fraction
        time.sleep(0)  # release the GIL after each session, since requests come first
