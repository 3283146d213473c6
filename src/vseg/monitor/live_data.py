"""Keeps the answers of running studies in memory: each look reads what is new, and no more."""

import threading
import time
from collections import OrderedDict

from vseg import store
from vseg.monitor.answers import Answers
from vseg.monitor.buffer import Held
from vseg.monitor.posterior_process import Posteriors
from vseg.store.changes import read_study
from vseg.store.studies import StudyRow

WAIT_S = 0.2
MOST_ROWS = 5_000_000  # of all studies together; those looked at longest ago make room


class Watch:
    """The studies of one database as this process sees them; any thread may ask.

    Reading goes on in a thread of its own, one a study: everyone who asks meanwhile waits for the same look, and
    nobody longer than they said. `posteriors` are those of the same process.
    """

    def __init__(self, db: store.Database):
        self._db = db
        self.posteriors = Posteriors()
        self._lock = threading.Lock()
        self._watched: OrderedDict[int, _Watched] = OrderedDict()

    def answers(self, study: StudyRow, wait_s: float = WAIT_S) -> Answers | None:
        """The answers of a study as they are now.

        After `wait_s` it is those of the last look, or None if the first one, which reads everything, is not over.
        """
        return self._of(study).looked_at(study, wait_s)

    def progress(self, study: StudyRow) -> float:
        """Which share of what is new has been read, 0 to 1; 1 when nothing is being read."""
        return self._of(study).fraction

    def close(self) -> None:
        """Begin nothing more in the background."""
        self.posteriors.close()

    def _of(self, study: StudyRow) -> "_Watched":
        with self._lock:
            watched = self._watched.get(study.id)
            if watched is None:
                watched = self._watched[study.id] = _Watched(self._db)
            self._watched.move_to_end(study.id)
            rows = sum(len(each) for each in self._watched.values())
            while rows > MOST_ROWS and len(self._watched) > 1:
                rows -= len(self._watched.popitem(last=False)[1])
            return watched


class _Watched:
    """One study, and the thread that reads it when someone has asked."""

    def __init__(self, db: store.Database):
        self._db = db
        self._changed = threading.Condition()
        self._asked = self._done = 0
        self._reading = False
        self._failed: Exception | None = None
        self._study: StudyRow | None = None
        self._held: Held | None = None
        self._answers: Answers | None = None
        self.fraction = 0.0

    def __len__(self) -> int:
        return 0 if self._answers is None else len(self._answers)

    def looked_at(self, study: StudyRow, wait_s: float) -> Answers | None:
        """The answers of a look that began after this call, if it is over in time."""
        with self._changed:
            self._study = study
            self._asked += 1
            mine = self._asked
            if not self._reading:
                self._reading = True
                threading.Thread(target=self._read, name="vseg-watch", daemon=True).start()
            self._changed.wait_for(lambda: self._done >= mine, wait_s)
            if self._done >= mine and self._failed is not None:
                raise self._failed
            return self._answers

    def _read(self) -> None:
        while True:
            with self._changed:
                if self._done >= self._asked:
                    self._reading = False
                    return
                target, study = self._asked, self._study
            failed, answers = None, self._answers
            try:
                assert study is not None
                answers = self._look(study)
            except Exception as error:  # whoever asked is told
                failed = error
            with self._changed:
                self._answers, self._failed, self._done = answers, failed, target
                self._changed.notify_all()

    def _look(self, study: StudyRow) -> Answers:
        if self._held is None or self._held.digest != study.digest:
            self._held = Held(study)
        self.fraction = 0.0
        with read_study(self._db, study.id) as now:
            answers = self._held.refresh(now, study, self._told)
        self.fraction = 1.0
        return answers

    def _told(self, fraction: float) -> None:
        self.fraction = fraction
        time.sleep(0)  # requests come first: this lets go of the interpreter after each session
