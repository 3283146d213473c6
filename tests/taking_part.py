"""A small study in a database, and people who take part in it: `from taking_part import study_of, begin, answer`."""

import hashlib
import io
from collections.abc import Sequence
from typing import Any

from PIL import Image

from vseg import store
from vseg.store.sessions import Identity, StartedSession
from vseg.store.studies import StudyRow
from vseg.study.pictures import Shown
from vseg.study.schema import parsed
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


def text_of(images="ab", participants=4, name="small", more="", conditions=None) -> str:
    """A study file with one image a letter."""
    tables = "".join(
        f'[[images]]\nname = "{letter}"\ntexture = "low"\n'
        + (f'condition = "{conditions[letter]}"\n' if conditions and letter in conditions else "")
        for letter in images
    )
    return SMALL.format(name=name, participants=participants, more=more) + tables


def shown_of(images="ab", shade=0) -> dict[str, Shown]:
    """One-coloured pictures: a database does not look at them."""
    found = {}
    for position, letter in enumerate(images):
        file = io.BytesIO()
        Image.new("L", (12, 12), shade + position).save(file, "PNG")
        png = file.getvalue()
        found[letter] = Shown(letter, png, hashlib.sha256(png).hexdigest(), 12, 12, None)
    return found


def study_of(db: store.Database, images="ab", **options: Any) -> StudyRow:
    """Registered."""
    text = text_of(images, **options)
    return store.studies.register(db, text, parsed(text), shown_of(images))


def draw(units: Sequence[Unit]) -> Trials:
    """Two trials a unit, whose pair shows which unit it was."""
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


def begin(
    db: store.Database, study: StudyRow, pid: str | None = None, *, link=None, entry=None, now_ms=NOW
) -> StartedSession:
    identity = None if pid is None else Identity(pid, "a-study", "a-session")
    return store.sessions.begin(db, study, draw, identity=identity, link=link, entry=entry, now_ms=now_ms)


def response(seq: int, item: int = 0, **other: Any) -> dict[str, Any]:
    """A record as the server hands it on."""
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


def answer(db: store.Database, begun: StartedSession, *, now_ms: int | None = None) -> int:
    """Answer every trial of a session; how many records that were."""
    trials = begun.session.trials
    rows = [
        response(item, item, image=trials.image[item], i=trials.i[item], j=trials.j[item])
        for item in range(len(trials))
    ]
    store.responses.append(db, begun.session.id, rows, [], now_ms=now_ms).result()
    return len(rows)


def finish(db: store.Database, begun: StartedSession, *, now_ms: int | None = None) -> None:
    """Answer everything and complete."""
    assert store.sessions.complete(db, begun.session, answer(db, begun, now_ms=now_ms)) == []
