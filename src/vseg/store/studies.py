"""Studies: a study file and its images, as people see them; frozen at the first session."""

import hashlib
import io
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Connection, Row, delete, insert, select, update

from vseg.data.layout import Grid, Scatter
from vseg.data.maps import Maps
from vseg.errors import Conflict, InvalidInput, NotFound, SchemaMismatch
from vseg.store.database import Database, now_ms
from vseg.store.schema import images, studies
from vseg.study.schema import Study, parsed

if TYPE_CHECKING:
    from vseg.study.pictures import Shown


log = logging.getLogger("vseg.store")


@dataclass(frozen=True)
class ImageRow:
    """One image of a study; `image(db, study.id, sha256)` has its PNG."""

    name: str
    sha256: str
    width_px: int
    height_px: int


@dataclass(frozen=True)
class StudyRow:
    """A study in the database. `status` is open, paused or closed; `frozen_at_ms` is None before the first session."""

    id: int
    name: str
    text: str
    digest: str
    study: Study
    status: str
    created_at_ms: int
    frozen_at_ms: int | None
    images: dict[str, ImageRow]
    _db: Database = field(repr=False, compare=False)

    def truth(self, image: str) -> Maps | None:
        """The maps an image was generated from, if vseg generated it."""
        wanted = select(images.c.truth).where(images.c.study == self.id, images.c.name == image)
        with self._db.reading() as connection:
            stored = connection.scalar(wanted)
        return None if stored is None else _unpacked(stored)


def register(db: Database, text: str, study: Study, shown: "Mapping[str, Shown]") -> StudyRow:
    """Store a study and its images: new, unchanged, or in place of what it was before its first session.

    `Conflict` if it has sessions and differs. Images that vseg generates are then taken from the database, so that
    an upgrade that draws them a little differently changes nothing for a study that runs.
    """
    digest = _digest(study, shown)
    with db.writing() as connection:
        old = connection.execute(_of(study.name).with_for_update()).one_or_none()
        if old is None:
            row = {
                "name": study.name,
                "text": text,
                "digest": digest,
                "status": "open",
                "created_at_ms": now_ms(),
            }
            number = connection.scalar(db.insert_or_ignore(studies).values(row).returning(studies.c.id))
            if number is not None:
                _store_images(connection, number, shown)
                return _row(db, connection, study.name)
            # Another worker, started at the same time, was faster: its study is the old one.
            old = connection.execute(_of(study.name).with_for_update()).one()
        if old.frozen_at_ms is not None:
            _check_unchanged(connection, old, study, shown)
        elif old.digest != digest or old.text != text:
            changed = update(studies).where(studies.c.id == old.id).values(text=text, digest=digest)
            connection.execute(changed)
            connection.execute(delete(images).where(images.c.study == old.id))
            _store_images(connection, old.id, shown)
        return _row(db, connection, study.name)


def get_study(db: Database, name: str) -> StudyRow:
    """One study; `NotFound` if there is none of that name."""
    with db.reading() as connection:
        return _row(db, connection, name)


def get_studies(db: Database, ids: Collection[int]) -> dict[int, StudyRow]:
    """Some studies, by their `id`."""
    with db.reading() as connection:
        names = connection.scalars(select(studies.c.name).where(studies.c.id.in_(ids))).all()
        rows = [_row(db, connection, name) for name in names]
    return {row.id: row for row in rows}


def list_studies(db: Database) -> list[StudyRow]:
    """All studies, by name; one that this version of vseg cannot read is left out and logged: the others go on."""
    rows = []
    with db.reading() as connection:
        for name in connection.scalars(select(studies.c.name).order_by(studies.c.name)).all():
            try:
                rows.append(_row(db, connection, name))
            except SchemaMismatch as error:
                log.warning("A study is left out: %s", error)
    return rows


def get_image(db: Database, study: int, sha256: str) -> bytes:
    """The PNG of an image of that study."""
    wanted = select(images.c.png).where(images.c.study == study, images.c.sha256 == sha256).limit(1)
    with db.reading() as connection:
        png = connection.scalar(wanted)
    if png is None:
        raise NotFound("This study has no such image; load the page again.")
    return bytes(png)


def pause(db: Database, name: str) -> None:
    """Let nobody begin for the time being; those who have begun go on. `Conflict` if the study is closed."""
    _set_status(db, name, "paused", unless="closed")


def close(db: Database, name: str) -> None:
    """Let nobody begin any more; those who have begun can finish."""
    _set_status(db, name, "closed")


def reopen(db: Database, name: str) -> None:
    """Undo `pause` or `close`."""
    _set_status(db, name, "open")


def _set_status(db: Database, name: str, status: str, unless: str = "") -> None:
    with db.writing() as connection:
        changed = update(studies).where(studies.c.name == name, studies.c.status != unless)
        if connection.execute(changed.values(status=status)).rowcount:
            return
        if connection.scalar(select(studies.c.status).where(studies.c.name == name)) is None:
            raise _no_study(connection, name)
        raise Conflict(f"{name} is {unless}, perhaps by someone else meanwhile; open it again first.", unless)


def _row(db: Database, connection: Connection, name: str) -> StudyRow:
    stored = connection.execute(_of(name)).one_or_none()
    if stored is None:
        raise _no_study(connection, name)
    columns = (images.c.name, images.c.sha256, images.c.width_px, images.c.height_px)
    pictures = connection.execute(select(*columns).where(images.c.study == stored.id).order_by(images.c.name))
    return StudyRow(
        **stored._asdict(),
        study=parse_stored_study(name, stored.text),
        images={each.name: ImageRow(*each) for each in pictures},
        _db=db,
    )


@lru_cache(maxsize=64)
def parse_stored_study(name: str, text: str) -> Study:
    """A study of a database; the same text gives the same study. `SchemaMismatch` if this vseg cannot read it."""
    try:
        return parsed(text, "the study in the database")
    except InvalidInput as error:  # it was read once: nobody who asks for it now is at fault
        raise SchemaMismatch(
            f"This vseg cannot read study {name!r} of its database ({str(error).rstrip('.')}); use the version that "
            "wrote it, or a newer one."
        ) from error


def _of(name: str) -> Any:
    return select(studies).where(studies.c.name == name)


def _no_study(connection: Connection, name: str) -> NotFound:
    known = connection.scalars(select(studies.c.name).order_by(studies.c.name).limit(10)).all()
    return NotFound(f"There is no study {name!r} in this database; it has: {', '.join(known) or 'none yet'}.")


def _digest(study: Study, shown: "Mapping[str, Shown]") -> str:
    lines = [study.model_dump_json(), *(f"{name} {shown[name].sha256}" for name in sorted(shown))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _store_images(connection: Connection, study: int, shown: "Mapping[str, Shown]") -> None:
    for name, each in shown.items():
        connection.execute(
            insert(images).values(
                study=study,
                name=name,
                sha256=each.sha256,
                width_px=each.width_px,
                height_px=each.height_px,
                png=each.png,
                truth=None if each.truth is None else _packed(each.truth),
            )
        )


def _check_unchanged(connection: Connection, old: Row, study: Study, shown: "Mapping[str, Shown]") -> None:
    """Raise `Conflict` with what differs between a frozen study and its file."""
    before, after = parse_stored_study(study.name, old.text).model_dump(), study.model_dump()
    differ = [key for key in after if before.get(key) != after[key]]
    stored = connection.execute(select(images.c.name, images.c.sha256).where(images.c.study == old.id))
    digests = {each.name: each.sha256 for each in stored}
    files = [each.name for each in study.images if each.file is not None and each.name in shown]
    differ += [f"the picture of image {name}" for name in files if digests.get(name) != shown[name].sha256]
    if differ:
        raise Conflict(
            f"Study {study.name!r} has sessions, so it is frozen, but the file now differs in: {', '.join(differ)}. "
            "Undo that, or give the changed study another name.",
            "frozen",
        )


def _packed(maps: Maps) -> bytes:
    arrays: dict[str, Any] = {"probabilities": maps.probabilities}
    if not isinstance(maps.layout, Grid):
        arrays["positions"] = maps.layout.positions
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _unpacked(stored: bytes) -> Maps:
    with np.load(io.BytesIO(stored), allow_pickle=False) as arrays:
        p = arrays["probabilities"]
        if "positions" in arrays.files:
            return Maps(Scatter(arrays["positions"]), p)
    return Maps(Grid(round(len(p) ** 0.5)), p)
