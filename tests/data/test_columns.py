"""A column of a response is defined once, in vseg.data.columns; everything else follows from it or agrees with it."""

import re
from pathlib import Path

import pytest
from sqlalchemy import inspect

import vseg
from vseg import store
from vseg.data.columns import CHOICES, EVENT_KINDS, EVENTS, FLAGS, RESPONSES, SESSIONS
from vseg.server.record_validation import POSTED_RECORDS
from vseg.store import migrate, schema

FRONTEND = Path(__file__).parents[2] / "frontend" / "src"
BOTS = Path(vseg.__file__).parent / "bots"
POSTED = [column for column in RESPONSES if column.is_posted]
STORED = [column for column in RESPONSES if column.is_stored]
TYPESCRIPT_TYPES = {"text": "string", "integer": "number", "number": "number", "boolean": "boolean"}


@pytest.fixture(scope="module")
def typescript() -> str:
    """The source of all modules of the participant's page."""
    return "\n".join(path.read_text("utf-8") for path in sorted(FRONTEND.rglob("*.ts")))


def test_typescript_declares_every_posted_column(typescript):
    (declaration,) = re.findall(r"export interface Response \{\n(.*?)\n\}", typescript, re.DOTALL)
    declared = dict(re.findall(r"^\s+(\w+)\??: (.+);$", declaration, re.MULTILINE))
    assert declared.pop("kind") == '"response"'
    # The number of a record is added to responses and events alike when they are queued.
    assert re.search(r"& \{ seq: number \}", typescript), "A numbered record has no field `seq: number`."
    for column in POSTED:
        if column.name == "seq":
            continue
        expected = TYPESCRIPT_TYPES[column.type] + " | null" * column.nullable
        assert column.name in declared, (
            f"Add `{column.name}: {expected};` to the interface Response in frontend/src, and let the page measure it."
        )
        assert declared[column.name] == expected, (
            f"The interface Response in frontend/src has `{column.name}: {declared[column.name]}`, but "
            f"vseg/data/columns.py says {expected}."
        )
    unknown = set(declared) - {column.name for column in POSTED}
    assert not unknown, f"Add a row with origin='page' to RESPONSES in vseg/data/columns.py for: {unknown}."


def test_typescript_declares_every_kind_of_event(typescript):
    (declaration,) = re.findall(r"export type EventKind =\s*(.*?);", typescript, re.DOTALL)
    assert set(re.findall(r'"(\w+)"', declaration)) == set(EVENT_KINDS), (
        "EventKind in frontend/src and EVENT_KINDS in vseg/data/columns.py should have the same kinds."
    )


@pytest.mark.parametrize("flag", FLAGS)
def test_the_page_can_set_every_flag(typescript, flag):
    assert f'"{flag}"' in typescript, f"No module in frontend/src sets the flag {flag!r} of columns.FLAGS."


def test_simulated_participants_post_every_column():
    source = "\n".join(path.read_text("utf-8") for path in BOTS.glob("*.py"))
    missing = [
        column.name for column in POSTED if f'"{column.name}"' not in source and column.default is None
    ]
    assert not missing, f"The records of simulated participants (vseg/bots) lack: {missing}."


def test_the_check_of_posted_records_has_every_posted_column():
    fields = POSTED_RECORDS.json_schema()["$defs"]["PostedResponse"]
    assert set(fields["properties"]) == {"kind", *(column.name for column in POSTED)}
    optional = {column.name for column in POSTED if column.default is not None}
    assert set(fields["properties"]) - set(fields["required"]) == optional


def test_posted_numbers_have_a_maximum_and_stored_text_a_length():
    for column in POSTED:
        if column.type in ("integer", "number"):
            assert column.maximum is not None, f"Give the column {column.name} a maximum."
    for column in STORED:
        if column.type == "text":
            assert column.max_length is not None, f"Give the column {column.name} a max_length."


def test_migrations_create_every_stored_column(database_url):
    with store.open(database_url) as db, db.reading() as connection:
        created = {column["name"]: column for column in inspect(connection).get_columns("responses")}
    for column in STORED:
        assert column.name in created, (
            f"Add a migration after {migrate.HEAD} in vseg/store/migrations/versions that adds the column "
            f"{column.name} to the table responses."
        )
        assert created[column.name]["nullable"] == column.nullable, (
            f"The migrations and vseg/data/columns.py disagree on whether {column.name} is nullable."
        )
    unknown = set(created) - {column.name for column in STORED} - {"session"}
    assert not unknown, f"Add rows to RESPONSES in vseg/data/columns.py for: {unknown}."


def test_the_database_table_has_the_stored_columns():
    last = schema.LAST_RESPONSE_COLUMNS  # tests/store/test_database.py compares the order with the migrations
    first = [column.name for column in STORED if column.name not in last]
    assert [column.name for column in schema.responses.c] == ["session", *first, *last]
    assert len(STORED) == len(first) + len(last)
    events = {column.name for column in schema.events.c}
    assert events == {column.name for column in EVENTS} - {"participant"}


@pytest.mark.parametrize(
    "table", [RESPONSES, EVENTS, CHOICES, SESSIONS], ids=["responses", "events", "choices", "sessions"]
)
def test_names_are_unique_in_a_table(table):
    names = [column.name for column in table]
    assert len(set(names)) == len(names)
