"""Whether all that was acknowledged is there, once, as it was answered: in the database, in the export, in the maps."""

import csv
from collections import Counter
from collections.abc import Set
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import vseg
from chaos.people import Answer, Ledger
from vseg import export, store

STORED = (
    "SELECT sessions.name, seq, item, i, j, same FROM responses JOIN sessions ON sessions.id = responses.session "
    "JOIN studies ON studies.id = sessions.study WHERE studies.name = '{study}'"
)
Found = list[tuple[tuple[str, int], Answer]]


@dataclass
class Verdict:
    """What is wrong; all zero and empty where nothing is."""

    lost: int = 0
    doubled: int = 0
    changed: int = 0
    """Stored with another pair or another answer than it was given with."""
    invented: int = 0
    """Stored, and nobody has sent it."""

    def __bool__(self) -> bool:
        return not (self.lost or self.doubled or self.changed or self.invented)

    def __add__(self, other: "Verdict") -> "Verdict":
        return Verdict(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))


def compared(
    acknowledged: dict[tuple[str, int], Answer], given: Set[tuple[tuple[str, int], Answer]], found: Found
) -> Verdict:
    """Each acknowledged record is found exactly once; nobody answered an item twice; nothing else is there."""
    return Verdict(
        lost=len(acknowledged.keys() - dict(found).keys()),
        doubled=_again(found),
        changed=sum(acknowledged[key] != answer for key, answer in found if key in acknowledged),
        invented=sum(each not in given for each in found if each[0] not in acknowledged),
    )


def _again(found: Found) -> int:
    """Rows whose number, or whose item, the same session has in a row before."""
    seen: set[tuple[str, str, int]] = set()
    again = 0
    for (session, seq), (item, *_) in found:
        here = {("seq", session, seq), ("item", session, item)}
        again += not seen.isdisjoint(here)
        seen |= here
    return again


def in_database(db: store.Database, study: str) -> Found:
    """As it is at this moment."""
    with db.reading() as connection:
        rows = connection.exec_driver_sql(STORED.format(study=study)).all()
    return [((name, seq), (item, i, j, bool(same))) for name, seq, item, i, j, same in rows]


def exported(db: store.Database, study: str, folder: Path) -> None:
    folder.mkdir()
    export.write_dataset(db, store.studies.get_study(db, study), folder)


def in_export(folder: Path) -> Found:
    """Row by row of the tables that a researcher would open."""
    found: Found = []
    for table in sorted((folder / "data").glob("*_session-*_data.csv")):
        if "_description-" in table.name:
            continue
        with open(table, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                item, i, j = (int(row[name]) for name in ("item", "i", "j"))
                found.append(((row["session"], int(row["seq"])), (item, i, j, row["same"] == "1")))
    return found


def sessions_in(folder: Path, but: Set[str] = frozenset()) -> Counter[str]:
    """How many sessions there are of each status, without those of these names."""
    (table,) = (folder / "data").glob("*_description-sessions_data.csv")
    with open(table, newline="", encoding="utf-8") as file:
        return Counter(row["status"] for row in csv.DictReader(file) if row["session"] not in but)


def names_in(db: store.Database) -> set[str]:
    """Of all sessions, as it is at this moment."""
    with db.reading() as connection:
        return {name for (name,) in connection.exec_driver_sql("SELECT name FROM sessions")}


def map_of(folder: Path) -> NDArray[np.float64]:
    """The map that a researcher would get."""
    return vseg.reconstruct(vseg.load(folder), segments=2, seed=0).maps.probabilities


def verdict_of(ledger: Ledger, folder: Path) -> Verdict:
    """Of an export, after everybody has finished."""
    verdict = compared(ledger.acknowledged, ledger.given, in_export(folder))
    verdict.lost += len(ledger.lost)
    return verdict
