"""Studies: a study file with its images, frozen when the first session begins."""

import hashlib
import io
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sqlalchemy import Connection, Row, Select, delete, insert, select, update

from vseg.data.layout import Grid, Scatter
from vseg.data.maps import Maps
from vseg.errors import Conflict, InvalidInput, NotFound, SchemaMismatch
from vseg.store.database import Database, now_ms
from vseg.store.researchers import set_setting
from vseg.store.schema import images, studies
from vseg.study.schema import Study, parse_study

if TYPE_CHECKING:
    from vseg.study.pictures import Picture


log = logging.getLogger("vseg.store")


StudyStatus = Literal["open", "paused", "closed"]
ADMITTED_SINCE = "admitted_since_ms:"  # the setting of a study; its id follows


@dataclass(frozen=True)
class ImageRow:
    """One image of a study; `get_image(db, study.id, sha256)` returns its PNG."""

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
    status: StudyStatus
    created_at_ms: int
    frozen_at_ms: int | None
    images: dict[str, ImageRow]
    _db: Database = field(repr=False, compare=False)

    def truth(self, image: str) -> Maps | None:
        """Return the maps from which an image was generated, or None if vseg did not generate it."""
        query = select(images.c.truth).where(images.c.study == self.id, images.c.name == image)
        with self._db.reading() as connection:
            stored = connection.scalar(query)
        return None if stored is None else _load_maps(stored)


def check_name_is_free(db: Database, name: str) -> None:
    """Raise `Conflict` if there is a study of this name, before its images are drawn; `register` decides."""
    with db.reading() as connection:
        if connection.execute(_select_study(name)).one_or_none() is not None:
            raise _name_taken_error(name)


def register(
    db: Database, text: str, study: Study, pictures: "Mapping[str, Picture]", *, must_be_new: bool = False
) -> StudyRow:
    """Store a study and its images, or replace those of a study without sessions; return the stored study.

    With `must_be_new`, nothing is replaced: `Conflict` is raised if there is already a study of this name, also if it
    was created by another process at the same time.

    If the study already has sessions, `Conflict` is raised unless it is unchanged. Generated images are then taken from
    the database, so that a new version that draws them slightly differently does not change a running study.
    """
    digest = _compute_digest(study, pictures)
    with db.writing() as connection:
        old = connection.execute(_select_study(study.name).with_for_update()).one_or_none()
        if old is None:
            row = {
                "name": study.name,
                "text": text,
                "digest": digest,
                "status": "open",
                "created_at_ms": now_ms(),
            }
            study_id = connection.scalar(db.insert_or_ignore(studies).values(row).returning(studies.c.id))
            if study_id is not None:
                _store_images(connection, study_id, pictures)
                return _load_row(db, connection, study.name)
            # Another worker, started at the same time, has stored the study first.
            old = connection.execute(_select_study(study.name).with_for_update()).one()
        if must_be_new:
            raise _name_taken_error(study.name)
        if old.frozen_at_ms is not None:
            _check_unchanged(connection, old, study, pictures)
        elif old.digest != digest or old.text != text:
            change = update(studies).where(studies.c.id == old.id).values(text=text, digest=digest)
            connection.execute(change)
            connection.execute(delete(images).where(images.c.study == old.id))
            _store_images(connection, old.id, pictures)
        return _load_row(db, connection, study.name)


def get_study(db: Database, name: str) -> StudyRow:
    """Return the study of this name; `NotFound` if there is none."""
    with db.reading() as connection:
        return _load_row(db, connection, name)


def get_studies(db: Database, ids: Collection[int]) -> dict[int, StudyRow]:
    """Return the studies with these ids, by id; unknown ids are omitted."""
    with db.reading() as connection:
        names = connection.scalars(select(studies.c.name).where(studies.c.id.in_(ids))).all()
        rows = [_load_row(db, connection, name) for name in names]
    return {row.id: row for row in rows}


def list_studies(db: Database) -> list[StudyRow]:
    """Return all studies, sorted by name; those that this version of vseg cannot read are logged and skipped."""
    rows = []
    with db.reading() as connection:
        for name in connection.scalars(select(studies.c.name).order_by(studies.c.name)).all():
            try:
                rows.append(_load_row(db, connection, name))
            except SchemaMismatch as error:
                log.warning("Skipped a study: %s", error)
    return rows


def get_image(db: Database, study: int, sha256: str) -> bytes:
    """Return the PNG of an image of a study; `NotFound` if the study has no such image."""
    query = select(images.c.png).where(images.c.study == study, images.c.sha256 == sha256).limit(1)
    with db.reading() as connection:
        png = connection.scalar(query)
    if png is None:
        raise NotFound("This study has no such image; load the page again.")
    return bytes(png)


def pause(db: Database, name: str) -> None:
    """Accept no new participants for now; sessions that have begun continue. `Conflict` if the study is closed."""
    _set_status(db, name, "paused", unless="closed")


def close(db: Database, name: str) -> None:
    """Accept no new participants; sessions that have begun can be finished."""
    _set_status(db, name, "closed")


def reopen(db: Database, name: str) -> None:
    """Undo `pause` or `close`, and lift the limits on new sessions: those begun before do not count any more."""
    _set_status(db, name, "open")
    with db.reading() as connection:
        study_id = connection.scalar(select(studies.c.id).where(studies.c.name == name))
    set_setting(db, f"{ADMITTED_SINCE}{study_id}", str(now_ms()))


def _set_status(db: Database, name: str, status: StudyStatus, unless: str = "") -> None:
    with db.writing() as connection:
        change = update(studies).where(studies.c.name == name, studies.c.status != unless)
        if connection.execute(change.values(status=status)).rowcount:
            return
        if connection.scalar(select(studies.c.status).where(studies.c.name == name)) is None:
            raise _unknown_study_error(connection, name)
        raise Conflict(f"Study {name!r} is {unless}; reopen it first.", unless)


def _load_row(db: Database, connection: Connection, name: str) -> StudyRow:
    stored = connection.execute(_select_study(name)).one_or_none()
    if stored is None:
        raise _unknown_study_error(connection, name)
    columns = (images.c.name, images.c.sha256, images.c.width_px, images.c.height_px)
    image_rows = connection.execute(
        select(*columns).where(images.c.study == stored.id).order_by(images.c.name)
    )
    return StudyRow(
        **stored._asdict(),
        study=parse_stored_study(name, stored.text),
        images={row.name: ImageRow(*row) for row in image_rows},
        _db=db,
    )


@lru_cache(maxsize=64)
def parse_stored_study(name: str, text: str) -> Study:
    """Parse the text of a stored study, cached; `SchemaMismatch` if this version of vseg cannot read it."""
    try:
        return parse_study(text, "the study in the database")
    except InvalidInput as error:  # it was valid when it was stored: not the fault of the current request
        first = str(error).splitlines()[0].rstrip(".")
        raise SchemaMismatch(
            f"This vseg cannot read study {name!r} in its database ({first}); use the version that wrote it or a newer "
            "one."
        ) from error


def _select_study(name: str) -> Select[Any]:
    return select(studies).where(studies.c.name == name)


def _name_taken_error(name: str) -> Conflict:
    return Conflict(f"There is already a study {name!r}; choose another name.", "exists")


def _unknown_study_error(connection: Connection, name: str) -> NotFound:
    names = connection.scalars(select(studies.c.name).order_by(studies.c.name).limit(10)).all()
    return NotFound(f"There is no study {name!r} in this database; it has: {', '.join(names) or 'none yet'}.")


def _compute_digest(study: Study, pictures: "Mapping[str, Picture]") -> str:
    lines = [study.model_dump_json(), *(f"{name} {pictures[name].sha256}" for name in sorted(pictures))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _store_images(connection: Connection, study_id: int, pictures: "Mapping[str, Picture]") -> None:
    for name, picture in pictures.items():
        connection.execute(
            insert(images).values(
                study=study_id,
                name=name,
                sha256=picture.sha256,
                width_px=picture.width_px,
                height_px=picture.height_px,
                png=picture.png,
                truth=None if picture.truth is None else _dump_maps(picture.truth),
            )
        )


def _check_unchanged(
    connection: Connection, old: Row, study: Study, pictures: "Mapping[str, Picture]"
) -> None:
    """Raise `Conflict` if a frozen study and its file differ; the message says in what."""
    before, after = parse_stored_study(study.name, old.text).model_dump(), study.model_dump()
    differences = [key for key in after if before.get(key) != after[key]]
    stored = connection.execute(select(images.c.name, images.c.sha256).where(images.c.study == old.id))
    digests = {row.name: row.sha256 for row in stored}
    files = [image.name for image in study.images if image.file is not None and image.name in pictures]
    differences += [
        f"the picture of image {name}" for name in files if digests.get(name) != pictures[name].sha256
    ]
    if differences:
        raise Conflict(
            f"Study {study.name!r} has sessions and is frozen, but its file has changed in: {', '.join(differences)}. "
            "Undo the changes, or give the changed study another name.",
            "frozen",
        )


def _dump_maps(maps: Maps) -> bytes:
    arrays: dict[str, Any] = {"probabilities": maps.probabilities}
    if not isinstance(maps.layout, Grid):
        arrays["positions"] = maps.layout.positions
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _load_maps(stored: bytes) -> Maps:
    with np.load(io.BytesIO(stored), allow_pickle=False) as arrays:
        p = arrays["probabilities"]
        if "positions" in arrays.files:
            return Maps(Scatter(arrays["positions"]), p)
    return Maps(Grid(round(len(p) ** 0.5)), p)
