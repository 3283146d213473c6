"""A small study in a database and sessions in it, without a server: `begin_session(db, register_study(db))`."""

import hashlib
import io
from collections.abc import Sequence
from typing import Any

from PIL import Image

from vseg import store
from vseg.store.sessions import Identity, StartedSession
from vseg.store.studies import StudyRow
from vseg.study.pictures import Picture
from vseg.study.schema import parse_study
from vseg.study.trials import Trials, Unit

NOW = 1_800_000_000_000
MINUTE = 60_000

SMALL = """
name = "{name}"
segments = 2
participants = {participants}
layout = {{grid = 3}}
practice = {{trials = 0}}
catch = {{per_block = 0}}
{more}
"""


def make_study_text(images="ab", participants=4, name="small", more="", conditions=None) -> str:
    """Return a study file with one image per letter."""
    tables = "".join(
        f'[[images]]\nname = "{letter}"\ntexture = "low"\n'
        + (f'condition = "{conditions[letter]}"\n' if conditions and letter in conditions else "")
        for letter in images
    )
    return SMALL.format(name=name, participants=participants, more=more) + tables


def make_images(images="ab", shade=0) -> dict[str, Picture]:
    """Return images of one colour; the database does not look at them."""
    found = {}
    for position, letter in enumerate(images):
        file = io.BytesIO()
        Image.new("L", (12, 12), shade + position).save(file, "PNG")
        png = file.getvalue()
        found[letter] = Picture(letter, png, hashlib.sha256(png).hexdigest(), 12, 12, None)
    return found


def register_study(db: store.Database, images="ab", **options: Any) -> StudyRow:
    """Register a small study and return its row."""
    text = make_study_text(images, **options)
    return store.studies.register(db, text, parse_study(text), make_images(images))


def draw_trials(units: Sequence[Unit]) -> Trials:
    """Return two trials per unit; their pair shows which unit it is."""
    count = 2 * len(units)
    return Trials(
        image=[unit.image for unit in units for _ in range(2)],
        block=[0] * count,
        trial=[0, 1] * len(units),
        i=[unit.unit % 8 for unit in units for _ in range(2)],
        j=[8] * count,
        x1=[1.0] * count, y1=[1.0] * count, x2=[9.0] * count, y2=[9.0] * count,
        practice=[False] * count,
        catch=[False] * count,
        answer=[None] * count,
    )  # fmt: skip


def begin_session(
    db: store.Database, study: StudyRow, pid: str | None = None, *, link=None, entry=None, now_ms=NOW
) -> StartedSession:
    identity = None if pid is None else Identity(pid, "a-study", "a-session")
    return store.sessions.begin(
        db, study, draw_trials, identity=identity, link=link, entry=entry, now_ms=now_ms
    )


def response(seq: int, item: int = 0, **other: Any) -> dict[str, Any]:
    """Return a response as the server passes it to the store."""
    row = {
        "seq": seq, "item": item, "image": "a", "block": 0, "trial": item, "i": 0, "j": 8, "practice": False,
        "catch": False, "same": True, "rt_ms": 412.5, "key": "f", "shown_at_ms": NOW, "cue_onset_ms": 10.0,
        "cue_asked_ms": 300.0, "cue_ms": 300.1, "cue_frames": 18, "image_onset_ms": 310.1, "image_asked_ms": 300.0,
        "image_ms": 299.9, "image_frames": 18, "response_onset_ms": 610.0, "frames_dropped": 0,
        "longest_gap_ms": 16.8, "refresh_hz": 60.0, "visible": True, "focused": True, "full_screen": True, "flags": "",
        "chosen": False,
    }  # fmt: skip
    return row | other


def event(seq: int, kind: str = "consent", **data: Any) -> dict[str, Any]:
    return {"seq": seq, "kind": kind, "at_ms": NOW, "data": data}


def answer_all(db: store.Database, begun: StartedSession, *, now_ms: int | None = None) -> int:
    """Answer every trial of a session; return the number of records."""
    trials = begun.session.trials
    rows = [
        response(item, item, image=trials.image[item], i=trials.i[item], j=trials.j[item])
        for item in range(len(trials))
    ]
    store.responses.append(db, begun.session.id, rows, [], now_ms=now_ms).result()
    return len(rows)


def complete_session(db: store.Database, begun: StartedSession, *, now_ms: int | None = None) -> None:
    """Answer every trial of a session and complete it."""
    assert store.sessions.complete(db, begun.session, answer_all(db, begun, now_ms=now_ms)) == []
