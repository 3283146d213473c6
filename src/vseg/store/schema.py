"""The database tables. Changes need a migration in vseg/store/migrations/versions too.

studies       a study file and its status; frozen when the first session begins
images        the images of a study as PNG, with their digests
participants  a participant of one study, by a random name
identities    Prolific IDs of participants, in a separate table so that they can be left out or erased
links         personal links, each for one participant
sessions      a participant's session, the hash of its token, and its trials
assignments   the images, and the unit (share of the pairs) of each, that a session was assigned
responses     one row per answered trial; the columns are defined in vseg.data.columns
events        everything else that a session reports: consent, calibration, contours, interruptions
batches       pairs that were chosen together for a session of an adaptive study
takings       what a batch was based on: how many records of which sessions
choices       the pair that a batch chose for an item, which replaces the one in the session's trials
stops         where an adaptive study stopped asking about an image, because its maps were known well enough
researchers   names and password hashes
tokens        personal tokens for scripts, by their hashes
sign_ins      links that log a researcher in once, for a short time
logins        browsers in which a researcher is logged in, by the hashes of their cookies
settings      settings of this database: the hash of the one-time token, and deletions whose traces remain

Times are milliseconds since 1970-01-01 UTC. A column has the same name on the wire and in an export.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    true,
)
from sqlalchemy.types import TypeEngine

from vseg.data.columns import RESPONSES, Column as ResponseColumn

MAX_INTEGER = 2**31 - 1
LAST_RESPONSE_COLUMNS = ("flags", "received_at_ms", "chosen")
"""The columns at the end of the table `responses`, as in the migrations; the others have the order of an export.

A migration appends its column to the table, so its name is appended here.
"""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _study() -> Column[int]:
    return Column("study", ForeignKey("studies.id", ondelete="CASCADE"), nullable=False)


def _session() -> Column[int]:
    return Column("session", ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False)


def _list_response_columns() -> list[Column[Any]]:
    """Return the columns of the table `responses`, except `session`, in the order that the migrations produce."""
    columns = {column.name: column for column in RESPONSES if column.is_stored}
    first = [name for name in columns if name not in LAST_RESPONSE_COLUMNS]
    return [_response_column(columns[name]) for name in (*first, *LAST_RESPONSE_COLUMNS)]


def _response_column(column: ResponseColumn) -> Column[Any]:
    """Return the column of the table `responses` for one in `vseg.data.columns.RESPONSES`."""
    kind: TypeEngine[Any]
    match column.type:
        case "boolean":
            kind = Boolean()
        case "integer":
            kind = BigInteger() if (column.maximum or 0) > MAX_INTEGER else Integer()
        case "number":
            kind = Float(53)
        case "text":
            kind = String(column.max_length)
    default = None if column.default is None else true() if column.default else false()
    return Column(column.name, kind, nullable=column.nullable, server_default=default)


studies = Table(
    "studies", metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(63), nullable=False, unique=True),
    Column("text", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("status", String(16), nullable=False),  # open, paused, closed
    Column("created_at_ms", BigInteger, nullable=False),
    Column("frozen_at_ms", BigInteger),
)  # fmt: skip

images = Table(
    "images", metadata,
    _study(),
    Column("name", String(63), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("width_px", Integer, nullable=False),
    Column("height_px", Integer, nullable=False),
    Column("png", LargeBinary, nullable=False),
    Column("truth", LargeBinary),  # maps as .npz, if vseg generated the image
    PrimaryKeyConstraint("study", "name"),
)  # fmt: skip

participants = Table(
    "participants", metadata,
    Column("id", Integer, primary_key=True),
    _study(),
    Column("name", String(32), nullable=False, unique=True),
    Column("created_at_ms", BigInteger, nullable=False),
)  # fmt: skip

identities = Table(
    "identities", metadata,
    Column("participant", ForeignKey("participants.id", ondelete="CASCADE"), primary_key=True),
    _study(),
    Column("prolific_pid", String(64), nullable=False),
    Column("prolific_study", String(64), nullable=False),
    Column("prolific_session", String(64), nullable=False),
    UniqueConstraint("study", "prolific_pid"),
)  # fmt: skip

links = Table(
    "links", metadata,
    Column("id", Integer, primary_key=True),
    _study(),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("participant", ForeignKey("participants.id", ondelete="SET NULL")),
    Column("created_at_ms", BigInteger, nullable=False),
)  # fmt: skip

sessions = Table(
    "sessions", metadata,
    Column("id", Integer, primary_key=True),
    _study(),
    Column("participant", ForeignKey("participants.id", ondelete="CASCADE"), nullable=False),
    Column("name", String(32), nullable=False, unique=True),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("entry_hash", String(64)),  # hash of the secret of an anonymous participant's page
    Column("status", String(16), nullable=False),  # active, completed, left, withdrawn, ended
    Column("software", Text, nullable=False),  # versions that drew the trials, as JSON
    Column("started_at_ms", BigInteger, nullable=False),
    Column("finished_at_ms", BigInteger),
    # vseg.study.trials.Trials as JSON. The last column, since SQLite reads past it to reach the columns after it.
    Column("trials", Text),
    UniqueConstraint("study", "entry_hash"),
    Index(None, "study", "status"),
    Index(None, "participant"),
)  # fmt: skip

assignments = Table(
    "assignments", metadata,
    _session(),
    _study(),
    Column("position", Integer, nullable=False),
    Column("image", String(63), nullable=False),
    Column("unit", Integer, nullable=False),
    PrimaryKeyConstraint("session", "position"),
    Index(None, "study", "image", "unit"),
)  # fmt: skip

responses = Table(
    "responses", metadata,
    _session(),
    *_list_response_columns(),
    PrimaryKeyConstraint("session", "seq"),
)  # fmt: skip

events = Table(
    "events", metadata,
    _session(),
    Column("seq", Integer, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("data", Text, nullable=False),  # JSON
    Column("received_at_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("session", "seq"),
)  # fmt: skip

batches = Table(
    "batches", metadata,
    Column("id", Integer, primary_key=True),
    _session(),
    Column("image", String(63), nullable=False),
    Column("rule", String(32), nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("answers", Integer, nullable=False),  # how many answers the choice was based on
    Column("expected_error", Float(53), nullable=False),
    Column("chosen_at_ms", BigInteger, nullable=False),
    Index(None, "session"),
)  # fmt: skip

takings = Table(
    "takings", metadata,
    Column("batch", ForeignKey("batches.id", ondelete="CASCADE"), nullable=False),
    _session(),
    Column("records", Integer, nullable=False),  # all records of that session with a number below this were known
    Column("ahead", Integer, nullable=False),  # choices for items below this were not answered yet; 0: none
    PrimaryKeyConstraint("batch", "session"),
    Index(None, "session"),
)  # fmt: skip

choices = Table(
    "choices", metadata,
    _session(),
    Column("item", Integer, nullable=False),
    Column("batch", ForeignKey("batches.id", ondelete="CASCADE"), nullable=False),
    Column("i", Integer, nullable=False),
    Column("j", Integer, nullable=False),
    PrimaryKeyConstraint("session", "item"),
    Index(None, "batch"),
)  # fmt: skip

stops = Table(
    "stops", metadata,
    _session(),
    Column("image", String(63), nullable=False),
    Column("item", Integer, nullable=False),  # the first item that is not asked
    Column("until", Integer, nullable=False),  # the first item after it that is asked
    Column("answers", Integer, nullable=False),
    Column("expected_error", Float(53), nullable=False),
    Column("stopped_at_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("session", "image"),
)  # fmt: skip

researchers = Table(
    "researchers", metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("password_hash", Text, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("signed_out_at_ms", BigInteger, nullable=False),  # 0: never; earlier logins are invalid
)  # fmt: skip

tokens = Table(
    "tokens", metadata,
    Column("id", Integer, primary_key=True),
    Column("researcher", ForeignKey("researchers.id", ondelete="CASCADE"), nullable=False),
    Column("label", String(64), nullable=False),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("last_used_at_ms", BigInteger),
    Index(None, "researcher"),
)  # fmt: skip

sign_ins = Table(
    "sign_ins", metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("researcher", ForeignKey("researchers.id", ondelete="CASCADE"), nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
)  # fmt: skip

logins = Table(
    "logins", metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("researcher", ForeignKey("researchers.id", ondelete="CASCADE"), nullable=False),
    Column("made_at_ms", BigInteger, nullable=False),
    Index(None, "researcher"),
)  # fmt: skip

settings = Table(
    "settings", metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)  # fmt: skip

RECORD_TABLES = (takings, choices, batches, stops, responses, events)
"""The tables with the records of a session and what was computed from them, in an order for deleting rows."""
PERSONAL_TABLES = (*RECORD_TABLES, assignments, sessions, identities, links, participants)
"""All tables with data about a participant, in an order for deleting rows."""
