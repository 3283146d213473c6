"""replay(): make every choice of an exported adaptive study again from its answers."""

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from vseg.adaptive.chooser import Chooser, ChosenPairs
from vseg.adaptive.history import AdaptiveAnswer, Pair
from vseg.data.dataset import Dataset
from vseg.data.responses import is_real_trial
from vseg.errors import InvalidInput

Row = dict[str, str]


@dataclass(frozen=True)
class ReplayedBatch:
    """One batch of an adaptive study.

    Attributes
    ----------
    session : str
        The session that the pairs were chosen for.
    image : str
    batch : int
        The number of the batch.
    items : list of int
        The items of the session that got the pairs.
    original : ChosenPairs
        The pairs that were chosen then.
    repeated : ChosenPairs or None
        The pairs that the same answers and seed give now. None if answers are missing, because someone who shared the
        state has withdrawn or was erased. It may differ if only pairs are missing that were chosen for them.
    """

    session: str
    image: str
    batch: int
    items: list[int]
    original: ChosenPairs
    repeated: ChosenPairs | None

    @property
    def is_same(self) -> bool:
        """Whether the same pairs were chosen, in the same order."""
        return self.repeated == self.original


def replay(folder: str | Path) -> Iterator[ReplayedBatch]:
    """Choose again what an adaptive study has chosen, batch by batch.

    Parameters
    ----------
    folder : str or Path
        A folder written by `vseg export`.

    Yields
    ------
    ReplayedBatch
        In the order in which the batches were chosen.

    Examples
    --------
    >>> all(batch.is_same for batch in replay("my-data"))  # doctest: +SKIP
    True
    """
    tables = _Tables(Dataset(folder))
    study = tables.dataset.study
    choosers: dict[tuple[str, str], Chooser[str]] = {}
    for number, rows in sorted(tables.batches.items()):
        session, image = rows[0]["session"], rows[0]["image"]
        key = ("" if study.design.shared else session, image)
        if key not in choosers:
            choosers[key] = Chooser(study, image)
        chooser = choosers[key]
        bases = {basis.session: basis for basis in map(_parse_basis, rows[0]["taken"].split())}
        answers = {name: tables.list_answers(name, image) for name in bases if name in tables.sessions}
        chooser.take_basis({name: basis.records for name, basis in bases.items()}, answers)
        items = [int(row["item"]) for row in rows]
        original = ChosenPairs([int(row["i"]) for row in rows], [int(row["j"]) for row in rows])
        repeated = None
        if chooser.answers == int(rows[0]["answers"]):
            pending = [
                pair
                for name in answers
                for pair in _list_pending(chooser, bases[name], is_asker=name == session, tables=tables)
            ]
            repeated = chooser.choose(len(items), pending=pending, seed=int(rows[0]["seed"]))
        pairs = zip(original.i, original.j, strict=True)
        chooser.history.add_choices(session, dict(zip(items, pairs, strict=True)))
        yield ReplayedBatch(session, image, number, items, original, repeated)


class _Basis(NamedTuple):
    """What a batch rests on: the session's records below `records`, and its choices below item `ahead`."""

    session: str
    records: int
    ahead: int


class _Tables:
    """The tables of an exported study that a replay reads, each session's once."""

    def __init__(self, dataset: Dataset):
        if dataset.choices_table is None:
            raise InvalidInput(f"{dataset.folder} holds no choices; only an adaptive study has chosen any.")
        self.dataset = dataset
        self.batches: dict[int, list[Row]] = defaultdict(list)
        for row in _read_rows(dataset.choices_table):
            self.batches[int(row["batch"])].append(row)
        self.sessions = {
            path.stem.split("_session-")[1].removesuffix("_data"): path for path in dataset.response_tables
        }
        self._answers: dict[str, list[AdaptiveAnswer]] = {}

    def list_answers(self, session: str, image: str) -> list[AdaptiveAnswer]:
        """Return the answers of a session to real trials about an image, in the order of its records."""
        if session not in self._answers:
            answers = [
                AdaptiveAnswer(
                    int(row["seq"]), int(row["item"]), row["image"], int(row["i"]), int(row["j"]),
                    same=row["same"] == "1", good=row["flags"] == "", chosen=row["chosen"] == "1",
                )
                for row in _read_rows(self.sessions[session])
                if _is_real(row)
            ]  # fmt: skip
            self._answers[session] = sorted(answers, key=lambda answer: answer.seq)
        return [answer for answer in self._answers[session] if answer.image == image]

    def list_fixed_pairs(self, session: str, image: str) -> list[tuple[int, Pair]]:
        """Return the items of a session about an image, each with the pair it was given when the session began."""
        return [
            (int(row["item"]), (int(row["i"]), int(row["j"])))
            for row in _read_rows(self.dataset.trials_file(session))
            if row["image"] == image and _is_real(row)
        ]


def _list_pending(chooser: Chooser[str], basis: _Basis, *, is_asker: bool, tables: _Tables) -> list[Pair]:
    """Return the pairs that a session was to answer before item `basis.ahead`.

    For the session that the batch is for, these include its fixed pairs; for others, only those chosen for them.
    """
    own = chooser.history.sessions[basis.session]
    if is_asker:
        fixed = tables.list_fixed_pairs(basis.session, chooser.history.image)
        return own.list_unanswered((item, pair) for item, pair in fixed if item < basis.ahead)
    return [pair for item, pair in own.get_open_choices().items() if item < basis.ahead]


def _parse_basis(text: str) -> _Basis:
    session, records, ahead = text.split(":")
    return _Basis(session, int(records), int(ahead))


def _is_real(row: Row) -> bool:
    """Return whether a row of a table is about a real trial."""
    return is_real_trial(practice=row["practice"] != "0", catch=row["catch"] != "0")


def _read_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
