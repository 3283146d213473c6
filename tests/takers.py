"""People in adaptive studies, as far as the server sees them: `taker(server).answer_patiently(range(20))`."""

from typing import Any

from servers import Person, Served, response

ADAPTIVE = """
name = "ada"
segments = 2
participants = 20
layout = {grid = 4}
images = [{name = "patches", colours = 2}]
practice = {trials = 2}
catch = {per_block = 2}
"""
"""Two practice trials, then 60 pairs (of 120 there are) and two catch trials; the first six pairs are fixed."""

SOLO = ADAPTIVE + 'design = {name = "adaptive", trials = 60}\n'
CROWD = ADAPTIVE + 'design = {name = "adaptive", trials = 60, shared = true}\n'
STOPPING = ADAPTIVE + 'design = {name = "adaptive", trials = 60, target_error = 0.99, least_trials = 20}\n'
TWO = (
    ADAPTIVE.replace(
        "images = [", 'assignment = {images = "within"}\nimages = [{name = "others", colours = 3},'
    )
    + 'design = {name = "adaptive", trials = 40, target_error = 0.99, least_trials = 20}\n'
)
MOST_QUESTIONS = 100_000  # minutes, even where kernels are compiled first and every core is busy


class Taker:
    """Answers one trial after the other, with the chosen pair where it is known in time, as a page does."""

    def __init__(self, person: Person):
        self.person, self.seq = person, person.state["next_seq"]
        self.choices: dict[int, dict[str, Any]] = {}
        self.stops: list[int] = []
        self.shown: dict[int, tuple[int, int]] = {}
        self.hear(person.state)

    def hear(self, said: dict[str, Any]) -> None:
        columns = said["choices"]
        rows = zip(*columns.values(), strict=True)
        self.choices |= {row[0]: dict(zip(columns, row, strict=True)) for row in rows}
        self.stops = said["stops"]

    def answer(self, item: int, **changes: Any) -> dict[str, Any]:
        trials, chosen = self.person.state["trials"], self.choices.get(item)
        self.shown[item] = (chosen["i"], chosen["j"]) if chosen else (trials["i"][item], trials["j"][item])
        record = response(self.seq, item, chosen=chosen is not None) | changes
        self.seq += 1
        said = self.person.send(record)
        assert said.status_code == 200, said.text
        self.hear(said.json())
        return record

    def answer_patiently(self, items: Any) -> None:
        """Answer items, and wait after each until the server has chosen what it is about to choose."""
        for item in items:
            record = self.answer(item)
            for _ in range(MOST_QUESTIONS):
                said = self.person.send(record).json()  # a resend does no harm, and hears what is new
                self.hear(said)
                if not said["choosing"]:
                    break
            else:
                raise AssertionError(f"After item {item} the server was still choosing.")
            self.hear(self.person.send(record).json())  # what was stored just before it said so


def taker(server: Served, **entry: Any) -> Taker:
    return Taker(server.begin("ada", **entry))
