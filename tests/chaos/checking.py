"""Check that each acknowledged answer is stored exactly once and unchanged, in the database, the export and the map."""

import csv
from collections import Counter
from collections.abc import Set
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import vseg
from chaos.participants import Answer, Ledger
from vseg import export, store

STORED = (
    "SELECT sessions.name, seq, item, i, j, same FROM responses JOIN sessions ON sessions.id = responses.session "
    "JOIN studies ON studies.id = sessions.study WHERE studies.name = '{study}'"
)
Found = list[tuple[tuple[str, int], Answer]]


@dataclass
class Verdict:
    """Numbers of wrong records; true if there are none."""

    lost: int = 0
    doubled: int = 0
    changed: int = 0
    """Stored with another pair or another answer than was given."""
    invented: int = 0
    """Stored, although nobody sent it."""

    def __bool__(self) -> bool:
        return not (self.lost or self.doubled or self.changed or self.invented)

    def __add__(self, other: "Verdict") -> "Verdict":
        return Verdict(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))


def compare_records(
    acknowledged: dict[tuple[str, int], Answer], given: Set[tuple[tuple[str, int], Answer]], found: Found
) -> Verdict:
    """Compare the stored records with those that were acknowledged and with all that were ever sent."""
    return Verdict(
        lost=len(acknowledged.keys() - dict(found).keys()),
        doubled=_count_repeats(found),
        changed=sum(acknowledged[key] != answer for key, answer in found if key in acknowledged),
        invented=sum(each not in given for each in found if each[0] not in acknowledged),
    )


def _count_repeats(found: Found) -> int:
    """Count rows whose sequence number or item occurred before in the same session."""
    seen: set[tuple[str, str, int]] = set()
    again = 0
    for (session, seq), (item, *_) in found:
        here = {("seq", session, seq), ("item", session, item)}
        again += not seen.isdisjoint(here)
        seen |= here
    return again


def read_database(db: store.Database, study: str) -> Found:
    """Return the records that are in the database now."""
    with db.reading() as connection:
        rows = connection.exec_driver_sql(STORED.format(study=study)).all()
    return [((name, seq), (item, i, j, bool(same))) for name, seq, item, i, j, same in rows]


def export_study(db: store.Database, study: str, folder: Path) -> None:
    """Export a study to a new folder."""
    folder.mkdir()
    export.write_dataset(db, store.studies.get_study(db, study), folder)


def read_export(folder: Path) -> Found:
    """Return the records in the tables of an exported folder."""
    found: Found = []
    for table in sorted((folder / "data").glob("*_session-*_data.csv")):
        if "_description-" in table.name:
            continue
        with open(table, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                item, i, j = (int(row[name]) for name in ("item", "i", "j"))
                found.append(((row["session"], int(row["seq"])), (item, i, j, row["same"] == "1")))
    return found


def count_sessions(folder: Path, but: Set[str] = frozenset()) -> Counter[str]:
    """Count the exported sessions by status, except those with the names in `but`."""
    (table,) = (folder / "data").glob("*_description-sessions_data.csv")
    with open(table, newline="", encoding="utf-8") as file:
        return Counter(row["status"] for row in csv.DictReader(file) if row["session"] not in but)


def session_names(db: store.Database) -> set[str]:
    """Return the names of all sessions that are in the database now."""
    with db.reading() as connection:
        return {name for (name,) in connection.exec_driver_sql("SELECT name FROM sessions")}


def reconstruct_map(folder: Path) -> NDArray[np.float64]:
    """Return the map that a researcher would get."""
    return vseg.reconstruct(vseg.load(folder), segments=2, seed=0).maps.probabilities


def judge_export(ledger: Ledger, folder: Path) -> Verdict:
    """Compare an export with the ledger, after all participants finished."""
    verdict = compare_records(ledger.acknowledged, ledger.given, read_export(folder))
    verdict.lost += len(ledger.lost)
    return verdict
