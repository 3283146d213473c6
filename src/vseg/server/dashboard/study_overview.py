"""The current state of a study, computed once for all browsers that show it, and the pages that update themselves."""

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
from vseg.monitor import Answers, ParticipantSummary, StudyProgress
from vseg.server import http
from vseg.server.api.dependencies import make_etag, not_modified_response
from vseg.server.dashboard.context import get_state, get_visitor, render_fragment, render_page
from vseg.server.dashboard.posteriors import PosteriorView
from vseg.store.studies import StudyRow

MAX_STUDIES = 8
READ_TIMEOUT_S = 0.2  # for new answers; a page that shows earlier ones updates itself
LARGE_STUDY = 200_000  # answers; pages about larger studies wait no longer than this for a new overview
LARGE_STUDY_TIMEOUT_S = 0.1
REFRESH_S = 60  # texts such as "5 min ago" change even if no data arrive


@dataclass(frozen=True)
class StudyOverview:
    """All answers of a study with their summaries; `version` changes when the page has to."""

    version: str
    answers: Answers
    progress: StudyProgress
    sessions: list[ParticipantSummary]

    def list_sessions(self, participant: str) -> list[ParticipantSummary]:
        """Return the sessions of one participant."""
        return [session for session in self.sessions if session.participant == participant]


class OverviewCache:
    """The latest overview of the studies shown last.

    While the overview of a large study is computed, pages show the previous one.
    """

    def __init__(self, db: store.Database, live_data: monitor.LiveData):
        self._db, self._live_data = db, live_data
        self._latest: OrderedDict[int, StudyOverview] = OrderedDict()
        self._computing: dict[int, Future[StudyOverview]] = {}
        self._executor = ThreadPoolExecutor(1, "vseg-overview")
        self._lock = Lock()

    def get(self, row: StudyRow) -> StudyOverview | None:
        """Return the overview of a study, or None while its answers are read for the first time."""
        answers = self._live_data.answers(row, READ_TIMEOUT_S)
        if answers is None:
            return None
        version = f"{answers.version} {row.status} {time.time() // REFRESH_S}"
        if len(answers) < LARGE_STUDY:
            latest = self._latest.get(row.id)
            return latest if latest and latest.version == version else self._compute(row, answers, version)
        with self._lock:
            latest, future = self._latest.get(row.id), self._computing.get(row.id)
            if latest is not None and latest.version == version:
                return latest
            if future is None or future.done():
                future = self._executor.submit(self._compute, row, answers, version)
                self._computing[row.id] = future
        try:
            return future.result(timeout=LARGE_STUDY_TIMEOUT_S)
        except TimeoutError:
            return latest  # the page updates itself, so a quick answer matters more than the newest data

    def _compute(self, row: StudyRow, answers: Answers, version: str) -> StudyOverview:
        progress = monitor.compute_progress(self._db, row, answers)
        overview = StudyOverview(version, answers, progress, monitor.summarise_participants(row, answers))
        with self._lock:
            self._latest[row.id] = overview
            self._latest.move_to_end(row.id)
            while len(self._latest) > MAX_STUDIES:
                self._latest.popitem(last=False)
        return overview


async def render_live_page(
    request: Request,
    row: StudyRow,
    name: str,
    get_values: Callable[[StudyOverview | None, dict[str, PosteriorView]], dict[str, Any]],
    get_posteriors: Callable[[StudyOverview], dict[str, PosteriorView]] | None = None,
) -> Response:
    """Render the page NAME.html about a study, or with ?part=live its live part; 304 if that has not changed.

    `get_values` returns the values of the template, from an overview or from None while the answers are being read, and
    from the posteriors; `get_posteriors` returns the posteriors on the page by image, which may be current, outdated or
    pending.
    """
    state = get_state(request)
    overview = await http.run_in_thread(state.overviews.get, row)
    read_fraction = None if overview else state.live_data.loading_progress(row)
    part = request.query_params.get("part")
    views: dict[str, PosteriorView] = {}
    if overview is not None and get_posteriors is not None:
        views = await http.run_in_thread(get_posteriors, overview)
    etag = await _compute_etag(request, row, overview, read_fraction, list(views.values()))
    if part is not None and (not_modified := not_modified_response(request, etag)) is not None:
        return not_modified
    values: dict[str, Any] = {"row": row, "study": row.study, "read_fraction": read_fraction, "views": views}
    values["has_pending"] = any(view.is_pending for view in views.values())
    values |= await http.run_in_thread(get_values, overview, views)
    if part is None:
        return await render_page(request, f"{name}.html", **values)
    template = part if name == "image" and part in ("fit", "contours") else name
    response = await render_fragment(request, f"parts/{template}.html", **values)
    response.headers["ETag"] = etag
    return response


async def _compute_etag(
    request: Request,
    row: StudyRow,
    overview: StudyOverview | None,
    read_fraction: float | None,
    views: list[PosteriorView],
) -> str:
    """Return the ETag of a live part, from what it depends on; its forms contain the login's form token."""
    state = get_state(request)
    job = state.simulations.find_job(row.name)
    version = overview.version if overview else f"{read_fraction:.2f}"
    query = request.url.path, sorted(request.query_params.multi_items())
    form_token = state.logins.form_token(await get_visitor(request))
    posteriors = [view.state for view in views]
    return make_etag(query, version, row.status, job and job.to_json(), posteriors, form_token)
