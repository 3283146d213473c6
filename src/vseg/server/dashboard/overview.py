"""What a study looks like at this moment: computed once for everyone who looks, until something new arrives."""

import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from vseg import monitor, store
from vseg.monitor import Answers, Person, Progress
from vseg.server import http
from vseg.server.api.dependencies import make_etag, not_modified_response
from vseg.server.dashboard.context import get_visitor, render_fragment, render_page
from vseg.server.dashboard.posteriors import PosteriorView
from vseg.store.studies import StudyRow

MOST_STUDIES, MOST_BELIEFS = 8, 64
LARGE, WAIT_S = 200_000, 0.1  # answers from which on a page does not wait longer for a new glance
FRESH_S = 60  # how long ago things were changes without anything new


@dataclass(frozen=True)
class Overview:
    """All answers of a study, and what they amount to."""

    version: str
    answers: Answers
    progress: Progress
    people: list[Person]

    def of(self, participant: str) -> list[Person]:
        """The sessions of one participant."""
        return [person for person in self.people if person.participant == participant]


class OverviewCache:
    """The latest glance at each of a few studies; of a large one, the one before while a new one is being made."""

    def __init__(self, db: store.Database, watch: monitor.Watch):
        self._db, self._watch = db, watch
        self._latest: OrderedDict[int, Overview] = OrderedDict()
        self._making: dict[int, Future[Overview]] = {}
        self._beliefs: OrderedDict[tuple[int, str, str], PosteriorView] = OrderedDict()
        self._makers = ThreadPoolExecutor(1, "vseg-glance")
        self._lock = Lock()

    def at(self, row: StudyRow) -> Overview | None:
        """A study now, or None while it is still being read for the first time."""
        answers = self._watch.answers(row)
        if answers is None:
            return None
        version = f"{answers.version} {row.status} {time.time() // FRESH_S}"
        if len(answers) < LARGE:
            known = self._latest.get(row.id)
            return known if known and known.version == version else self._made(row, answers, version)
        with self._lock:
            known, making = self._latest.get(row.id), self._making.get(row.id)
            if known is not None and known.version == version:
                return known
            if making is None or making.done():
                making = self._makers.submit(self._made, row, answers, version)
                self._making[row.id] = making
        try:
            return making.result(timeout=WAIT_S)
        except TimeoutError:
            return known  # a page that refreshes by itself is better a moment late than slow

    def remember(self, row: StudyRow, image: str, belief: PosteriorView) -> None:
        """The posterior of everyone together that a page has shown last."""
        with self._lock:
            self._beliefs[row.id, row.digest, image] = belief
            self._beliefs.move_to_end((row.id, row.digest, image))
            while len(self._beliefs) > MOST_BELIEFS:
                self._beliefs.popitem(last=False)

    def recalled(self, row: StudyRow, image: str, answers: Answers) -> PosteriorView | None:
        """That posterior, if there is one, for a page that begins none; not once answers of it were erased."""
        with self._lock:
            belief = self._beliefs.get((row.id, row.digest, image))
        if belief is None or belief.found is None or belief.found.trials > answers.tally(image).trials:
            return None
        return belief

    def _made(self, row: StudyRow, answers: Answers, version: str) -> Overview:
        found = monitor.progress(self._db, row, answers)
        glance = Overview(version, answers, found, monitor.people(row, answers))
        with self._lock:
            self._latest[row.id] = glance
            self._latest.move_to_end(row.id)
            while len(self._latest) > MOST_STUDIES:
                self._latest.popitem(last=False)
        return glance


async def render_live_page(
    request: Request,
    row: StudyRow,
    name: str,
    values: Callable[[Overview | None], dict[str, Any]],
    believed: Callable[[Overview], dict[str, PosteriorView]] | None = None,
) -> Response:
    """The page NAME.html about a study, or with ?part=live its live part, 304 where nothing is new.

    `values` says what is shown, from a glance, or from None while the answers are being read; `believed` asks for the
    posteriors on the page, by image, which may be there, old, or still to come.
    """
    state = request.app.state
    glance = await http.run_in_thread(state.glances.at, row)
    reading = None if glance else state.watch.progress(row)
    asked = request.query_params.get("part")
    beliefs = await http.run_in_thread(believed, glance) if glance and believed else {}
    tag = await _tag(request, row, glance, reading, [each.state for each in beliefs.values()])
    if asked is not None and (same := not_modified_response(request, tag)) is not None:
        return same
    shown: dict[str, Any] = {"row": row, "study": row.study, "reading": reading, "beliefs": beliefs}
    shown["is_coming"] = any(each.is_coming for each in beliefs.values())
    shown |= await http.run_in_thread(values, glance)
    if asked is None:
        return await render_page(request, f"{name}.html", **shown)
    template = "fit" if (name, asked) == ("image", "fit") else name
    answer = await render_fragment(request, f"parts/{template}.html", **shown)
    answer.headers["ETag"] = tag
    return answer


async def _tag(
    request: Request, row: StudyRow, glance: Overview | None, reading: float | None, beliefs: list[object]
) -> str:
    """Of everything that a live part follows from, known before it is computed; its forms hold the login's token."""
    job = request.app.state.simulations.find_job(row.name)
    seen = glance.version if glance else f"{reading:.2f}"
    asked = request.url.path, sorted(request.query_params.multi_items())
    form_token = request.app.state.logins.form_token(await get_visitor(request))
    return make_etag(asked, seen, row.status, job and job.to_json(), beliefs, form_token)
