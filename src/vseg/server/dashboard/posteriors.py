"""The posterior of an image, as a page shows it: at once with what is there, while something newer is worked out."""

import math
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from starlette.requests import Request

from vseg.errors import VsegError
from vseg.monitor import Answers, Believed, Standing
from vseg.server.api.posteriors import EVIDENCE, default_segments, get_posterior_state
from vseg.store.studies import StudyRow

NONE = Standing(None, "", is_current=False)


@dataclass(frozen=True)
class PosteriorView:
    """How a posterior stands; `said` is why there is none, or none of all answers."""

    asked: dict[str, str]
    answers: int
    standing: Standing
    said: str = ""

    @property
    def found(self) -> Believed | None:
        """What there is to show."""
        return self.standing.latest

    @property
    def is_coming(self) -> bool:
        """Whether something new will be there soon."""
        return not self.said and self.standing.is_coming

    @property
    def newer(self) -> int:
        """How many answers have come since."""
        return max(self.answers - self.found.trials, 0) if self.found else 0

    @property
    def query(self) -> str:
        """What the API is asked for this very posterior."""
        return urlencode({**self.asked, "mark": self.standing.mark})

    @property
    def plain_query(self) -> str:
        """What the API is asked for the newest one of its kind."""
        return urlencode(self.asked)

    @property
    def segments(self) -> str:
        """K, and whose it is."""
        if self.found is None:
            return ""
        if self.found.by_chooser:
            return f"{self.found.segments}, the study’s; the evidence would choose {self.found.chosen}"
        by_evidence = self.asked["segments"] == EVIDENCE
        return (
            f"{self.found.segments}, {'chosen by the evidence' if by_evidence else 'as in the classic map'}"
        )

    @property
    def plausible(self) -> str:
        """Which of the K that were tried the evidence does not rule out; more may be where the last one is not."""
        tried = [row["segments"] for row in self.found.table] if self.found else []
        left = [k for k in tried if self.found and k in self.found.plausible]
        if not left:
            return ""
        is_run = len(left) > 2 and left == list(range(left[0], left[-1] + 1))
        said = f"{left[0]} to {left[-1]}" if is_run else ", ".join(map(str, left))
        return f"{said}; more were not tried" if left[-1] == tried[-1] else said

    @property
    def most_entropy(self) -> float:
        """Where nothing is known: log K."""
        return math.log(self.found.segments if self.found else 2)

    @property
    def strip(self) -> tuple[float, float, float]:
        """Where entropy lies between 0 and the most, in percent: lower end, median, upper end."""
        if self.found is None:
            return 0.0, 0.0, 0.0
        ends = self.found.entropy_low, self.found.entropy, self.found.entropy_high
        low, middle, high = (round(100 * value / self.most_entropy, 2) for value in ends)
        return low, middle, high

    @property
    def state(self) -> object:
        """All that its looks follow from."""
        return self.asked, self.answers, self.standing.mark, self.standing.is_current, self.said


def get_posterior_view(
    request: Request, row: StudyRow, answers: Answers, image: str, participant: str | None, segments: str
) -> PosteriorView:
    """Ask for it, and say what is there."""
    state = request.app.state
    asked = {"segments": segments} | ({"participant": participant} if participant else {})
    try:
        count = answers.tally(image, participant).trials
        found = get_posterior_state(
            state.db, state.watch.posteriors, row, answers, image, participant=participant, segments=segments
        )
    except VsegError as error:
        return PosteriorView(asked, 0, NONE, str(error))
    belief = PosteriorView(asked, count, found, found.failed)
    if found.latest is not None and participant is None and segments == default_segments(row, None):
        state.glances.remember(row, image, replace(belief, said="", standing=replace(found, is_current=True)))
    return belief
