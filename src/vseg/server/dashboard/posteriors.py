"""The posterior of an image as pages show it: what there is, while a newer one is being computed."""

import math
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request

from vseg.errors import VsegError
from vseg.monitor import Answers, PosteriorStatus, PosteriorSummary
from vseg.server.api.posteriors import CHOOSER, EVIDENCE, default_segments, request_posterior
from vseg.server.dashboard.context import get_state
from vseg.store.studies import StudyRow
from vseg.study.schema import Study

NO_POSTERIOR = PosteriorStatus(None, "", is_current=False)


@dataclass(frozen=True)
class PosteriorView:
    """A posterior on a page.

    Attributes
    ----------
    study : the study
    parameters : the query parameters of the API that select it
    answers : the number of answers there are now
    status : the posterior, if there is one, and whether it is current
    error : why there is none, or none from all answers; else ""
    """

    study: Study
    parameters: dict[str, str]
    answers: int
    status: PosteriorStatus
    error: str = ""

    @property
    def posterior(self) -> PosteriorSummary | None:
        """The posterior, or None if there is none yet."""
        return self.status.latest

    @property
    def is_pending(self) -> bool:
        """Whether a newer posterior is being computed."""
        return not self.error and self.status.is_pending

    @property
    def newer_answers(self) -> int:
        """How many answers have arrived since this posterior."""
        return max(self.answers - self.posterior.trials, 0) if self.posterior else 0

    @property
    def query(self) -> str:
        """The query string for this posterior."""
        return urlencode({**self.parameters, "mark": self.status.mark})

    @property
    def newest_query(self) -> str:
        """The query string for the newest posterior of this kind."""
        return urlencode(self.parameters)

    @property
    def segments(self) -> str:
        """The number of segments, and how it was chosen."""
        if self.posterior is None:
            return ""
        favoured = f"; the evidence favours {self.posterior.chosen}" if self.posterior.by_chooser else ""
        return f"{self.posterior.segments}, {self.origin}{favoured}"

    @property
    def origin(self) -> str:
        """How the number of segments was chosen."""
        given = self.parameters["segments"]
        if given == EVIDENCE:
            return f"chosen by evidence{' from all participants’ answers' if 'participant' in self.parameters else ''}"
        if given == CHOOSER and self.study.segments == "free":
            return "assumed, since the study leaves it free"
        return "set by the study" if given in (CHOOSER, default_segments(self.study)) else "as selected"

    @property
    def number_of_segments(self) -> int | None:
        """K as given, or as the evidence has chosen it; None if it has not yet."""
        if self.posterior is not None:
            return self.posterior.segments
        given = self.parameters["segments"]
        return int(given) if given.isdecimal() and len(given) < 6 else None

    @property
    def plausible(self) -> str:
        """The tried numbers of segments that the evidence does not rule out, as text."""
        if self.posterior is None:
            return ""
        tried = [row["segments"] for row in self.posterior.table]
        plausible = [k for k in tried if k in self.posterior.plausible]
        if not plausible:
            return ""
        is_range = len(plausible) > 2 and plausible == list(range(plausible[0], plausible[-1] + 1))
        text = f"{plausible[0]} to {plausible[-1]}" if is_range else ", ".join(map(str, plausible))
        return f"{text}; larger K were not tried" if plausible[-1] == tried[-1] else text

    @property
    def max_entropy(self) -> float:
        """The entropy if all segments are equally likely, log K."""
        return math.log(self.posterior.segments if self.posterior else 2)

    @property
    def entropy_percentages(self) -> tuple[float, float, float]:
        """Lower end, median and upper end of the mean entropy, in percent of the maximum."""
        if self.posterior is None:
            return 0.0, 0.0, 0.0
        ends = self.posterior.entropy_low, self.posterior.entropy, self.posterior.entropy_high
        low, middle, high = (round(100 * value / self.max_entropy, 2) for value in ends)
        return low, middle, high

    @property
    def state(self) -> object:
        """Everything that its part of the page depends on."""
        return self.parameters, self.answers, self.status.mark, self.status.is_current, self.error


def get_posterior_view(
    request: Request, row: StudyRow, answers: Answers, image: str, participant: str | None, segments: str
) -> PosteriorView:
    """Request a posterior and return what there is of it."""
    state = get_state(request)
    parameters = {"segments": segments} | ({"participant": participant} if participant else {})
    try:
        count = answers.tally(image, participant).trials
        status = request_posterior(
            state.db,
            state.live_data.posteriors,
            row,
            answers,
            image,
            participant=participant,
            segments=segments,
        )
    except VsegError as error:
        return PosteriorView(row.study, parameters, 0, NO_POSTERIOR, str(error))
    return PosteriorView(row.study, parameters, count, status, status.failed)
