"""Participants of adaptive studies: `begin_adaptive_session(server).answer_patiently(range(20))`."""

from typing import Any

from servers import ParticipantClient, RunningServer, pause, response

BASE_STUDY = """
name = "ada"
segments = 2
participants = 20
layout = {grid = 4}
images = [{name = "patches", colours = 2}]
practice = {trials = 2}
catch = {per_block = 2}
"""
"""Two practice trials, then 60 of 120 pairs and two catch trials; the first six pairs are fixed."""

ADAPTIVE_STUDY = BASE_STUDY + 'design = {name = "adaptive", trials = 60}\n'
SHARED_STUDY = BASE_STUDY + 'design = {name = "adaptive", trials = 60, shared = true}\n'
STOPPING_STUDY = (
    BASE_STUDY + 'design = {name = "adaptive", trials = 60, target_error = 0.99, least_trials = 20}\n'
)
TWO_IMAGE_STUDY = (
    BASE_STUDY.replace(
        "images = [", 'assignment = {images = "within"}\nimages = [{name = "others", colours = 3},'
    )
    + 'design = {name = "adaptive", trials = 40, target_error = 0.99, least_trials = 20}\n'
)
MAX_POLLS = 6_000  # enough for five minutes, even if kernels are compiled first and every core is busy


class AdaptiveParticipant:
    """Answers one trial after the other, with the chosen pair if it arrived in time, as the page does."""

    def __init__(self, person: ParticipantClient):
        self.person, self.seq = person, person.state["next_seq"]
        self.choices: dict[int, dict[str, Any]] = {}
        self.stops: list[int] = []
        self.shown: dict[int, tuple[int, int]] = {}
        self.read_choices(person.state)

    def read_choices(self, reply: dict[str, Any]) -> None:
        columns = reply["choices"]
        rows = zip(*columns.values(), strict=True)
        self.choices |= {row[0]: dict(zip(columns, row, strict=True)) for row in rows}
        self.stops = reply["stops"]

    def answer(self, item: int, **changes: Any) -> None:
        self._send(self._make_record(item) | changes)

    def answer_patiently(self, items: Any) -> None:
        """Answer items, and wait after each until the server has finished choosing pairs."""
        for item in items:
            record = self._make_record(item)
            for _ in range(MAX_POLLS):  # sending a record again is harmless, and the reply is new
                if not self._send(record)["choosing"]:
                    break
                pause()
            else:
                raise AssertionError(f"The server did not finish choosing after item {item}.")

    def _make_record(self, item: int) -> dict[str, Any]:
        trials, chosen = self.person.state["trials"], self.choices.get(item)
        self.shown[item] = (chosen["i"], chosen["j"]) if chosen else (trials["i"][item], trials["j"][item])
        self.seq += 1
        return response(self.seq - 1, item, chosen=chosen is not None)

    def _send(self, record: dict[str, Any]) -> dict[str, Any]:
        said = self.person.send(record)
        assert said.status_code == 200, said.text
        reply: dict[str, Any] = said.json()
        self.read_choices(reply)
        return reply


def begin_adaptive_session(server: RunningServer, **entry: Any) -> AdaptiveParticipant:
    return AdaptiveParticipant(server.begin("ada", **entry))
