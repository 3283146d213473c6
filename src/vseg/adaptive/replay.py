"""Every choice of an exported study, made once more from its answers."""

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from vseg.adaptive.chooser import Answered, Chooser, Chosen
from vseg.data.dataset import Dataset
from vseg.errors import InvalidInput

Row = dict[str, str]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Replayed:
    """One batch: what was chosen then, and what its answers and its seed give now.

    Where someone of a crowd has withdrawn or was erased, nothing tells any more what they were about to answer: `again`
    is None where answers of theirs are missing, and may differ where pairs were only chosen for them.
    """

    session: str
    image: str
    batch: int
    items: list[int]
    then: Chosen
    again: Chosen | None

    @property
    def is_same(self) -> bool:
        """Whether the very same pairs came out, in the same order."""
        return self.again == self.then


def replay(folder: str | Path) -> Iterator[Replayed]:
    """Choose again what an adaptive study has chosen, batch by batch.

    Parameters
    ----------
    folder : str or Path
        What `vseg export` wrote.

    Examples
    --------
    >>> all(batch.is_same for batch in replay("my-data"))  # doctest: +SKIP
    True
    """
    data = _Data(Dataset(folder))
    study = data.dataset.study
    choosers: dict[tuple[str, str], _Known] = {}
    for number, rows in sorted(data.batches.items()):
        session, image = rows[0]["session"], rows[0]["image"]
        key = ("" if study.design.shared else session, image)
        known = choosers.setdefault(key, _Known(Chooser(study, image)))
        taken = [_taking(text) for text in rows[0]["taken"].split()]
        for name, records, _ in taken:
            known.take(name, image, data, records)
        items = [int(row["item"]) for row in rows]
        then = Chosen([int(row["i"]) for row in rows], [int(row["j"]) for row in rows])
        again = None
        if known.chooser.answers == int(rows[0]["answers"]):
            pending = [pair for each in taken for pair in known.pending(session, number, image, data, *each)]
            again = known.chooser.choose(len(items), pending=pending, seed=int(rows[0]["seed"]))
        yield Replayed(session, image, number, items, then, again)


@dataclass(frozen=True)
class _Answer:
    seq: int
    item: int
    answered: Answered
    good: bool


class _Data:
    """The tables that a replay reads, each session's once."""

    def __init__(self, dataset: Dataset):
        if dataset.choices_table is None:
            raise InvalidInput(f"{dataset.folder} holds no choices; only an adaptive study has chosen any.")
        self.dataset = dataset
        self.batches: dict[int, list[Row]] = defaultdict(list)
        for row in _rows(dataset.choices_table):
            self.batches[int(row["batch"])].append(row)
        self._tables = {
            path.stem.split("_session-")[1].removesuffix("_data"): path for path in dataset.response_tables
        }
        self._answers: dict[tuple[str, str], list[_Answer]] = {}

    def answers(self, session: str, image: str) -> list[_Answer]:
        """The answers of a session to real trials on an image, in their order."""
        key = session, image
        if key not in self._answers:
            rows = [
                row
                for row in _rows(self._tables[session])
                if row["image"] == image and row["practice"] == row["catch"] == "0"
            ]
            found = [
                _Answer(
                    int(row["seq"]), int(row["item"]),
                    Answered(int(row["i"]), int(row["j"]), row["same"] == "1"), row["flags"] == "",
                )
                for row in rows
            ]  # fmt: skip
            self._answers[key] = sorted(found, key=lambda answer: answer.seq)
        return self._answers[key]

    @cached_property
    def chosen(self) -> dict[str, dict[int, tuple[int, Pair]]]:
        """For each session, by item, in which batch which pair was chosen."""
        found: dict[str, dict[int, tuple[int, Pair]]] = defaultdict(dict)
        for number, rows in self.batches.items():
            for row in rows:
                found[row["session"]][int(row["item"])] = number, (int(row["i"]), int(row["j"]))
        return found

    def fixed(self, session: str, image: str) -> dict[int, Pair]:
        """The pairs that a session was given when it began, by item."""
        return {
            int(row["item"]): (int(row["i"]), int(row["j"]))
            for row in _rows(self.dataset.trials_file(session))
            if row["image"] == image and row["practice"] == row["catch"] == "0"
        }


@dataclass
class _Known:
    """A chooser, and what it has taken of each session."""

    chooser: Chooser
    records: dict[str, int] = field(default_factory=dict)

    def take(self, session: str, image: str, data: _Data, records: int) -> None:
        before = self.records.get(session, 0)
        new = [each for each in data.answers(session, image) if before <= each.seq < records and each.good]
        self.chooser.take(each.answered for each in new)
        self.records[session] = max(before, records)

    def pending(
        self, asker: str, batch: int, image: str, data: _Data, session: str, records: int, ahead: int
    ) -> list[Pair]:
        """What a session was to answer before item `ahead`; of those who did not ask, only what was chosen for them."""
        known = [each for each in data.answers(session, image) if each.seq < records]
        chosen = {item: pair for item, (number, pair) in data.chosen[session].items() if number < batch}
        if session == asker:
            good = {each.item for each in known if each.good}
            fixed = data.fixed(session, image)
            return [
                chosen.get(item, pair) for item, pair in fixed.items() if item < ahead and item not in good
            ]
        highest = max((each.item for each in known), default=-1)
        of_image = data.fixed(session, image)
        return [pair for item, pair in chosen.items() if highest < item < ahead and item in of_image]


def _taking(text: str) -> tuple[str, int, int]:
    session, records, ahead = text.split(":")
    return session, int(records), int(ahead)


def _rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
