"""The tables, once: the queries beside and the migrations speak of these.

studies      a study file and its state; frozen at its first session
images       what is shown, as PNG, by its digest
participants a person in one study, by a random name
identities   who that is on Prolific: a table of its own, so that it can be left out or erased
links        personal links, each for one person
sessions     one way through the experiment, its token's hash, and its trials as the server fixed them
assignments  which image, and which share of its pairs, a session was given
responses    a row a trial: what was asked, what was shown, what was answered
events       everything else a session reports: consent, calibration, contours, interruptions
batches      pairs that were chosen together for a session from answers, and what was expected then
takings      from which answers: how much of which sessions a batch knew
choices      the pair of an item that a batch put in the place of the one the trials have
stops        where the questions about an image ended early, since its maps were known well enough
researchers  names and password hashes
tokens       personal tokens for scripts, by their hashes
sign_ins     links that log a researcher in, once and soon
logins       browsers in which a researcher is logged in, by the hashes of their cookies
settings     of this database: the hash of the one-time token, and what is still to be swept

Times are milliseconds since 1970, UTC. A column has the name it has on the wire and in an export.
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

from vseg.data import columns
from vseg.data.columns import RESPONSES

MAX_INTEGER = 2**31 - 1

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


def _response_column(column: columns.Column) -> Column[Any]:
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
    Column("truth", LargeBinary),  # maps as .npz, where vseg generated the image
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
    Column("entry_hash", String(64)),  # of what the page of someone without a name of any kind came in with
    Column("status", String(16), nullable=False),  # active, completed, left, withdrawn, ended
    Column("software", Text, nullable=False),  # versions that drew the trials, as JSON
    Column("started_at_ms", BigInteger, nullable=False),
    Column("finished_at_ms", BigInteger),
    # plan.Trials as JSON, columns of equal length. Last, since SQLite has to pass over it to reach what lies behind.
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
    *(_response_column(column) for column in RESPONSES if column.is_stored),
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
    Column("answers", Integer, nullable=False),  # that the choice followed from
    Column("expected_error", Float(53), nullable=False),
    Column("chosen_at_ms", BigInteger, nullable=False),
    Index(None, "session"),
)  # fmt: skip

takings = Table(
    "takings", metadata,
    Column("batch", ForeignKey("batches.id", ondelete="CASCADE"), nullable=False),
    _session(),
    Column("records", Integer, nullable=False),  # of that session, all numbers below this
    Column("ahead", Integer, nullable=False),  # its choices below this item were known, to be answered soon; 0: none
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
    Column("item", Integer, nullable=False),  # the first that is not asked
    Column("until", Integer, nullable=False),  # the first behind that is
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
    Column("signed_out_at_ms", BigInteger, nullable=False),  # 0: never; logins of before are over
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
"""What a session sent and what followed from it, in an order in which it can be deleted."""
PERSONAL_TABLES = (*RECORD_TABLES, assignments, sessions, identities, links, participants)
"""All that is about one person, in such an order."""
