"""The database: SQLite by default, PostgreSQL by URL, the same code for both.

>>> with store.open("sqlite:///vseg.db") as db:  # doctest: +SKIP
...     study = store.studies.get_study(db, "two-textures")
...     responses = store.responses.load_responses(db, study)

One file a noun: studies, sessions, responses, choices, researchers, tokens; and what is done to all of it: backup,
erasing, health. All functions take the `Database` first, may be called from any thread, and return our own types.
`responses.append` is the hot way in; see writer.py.
"""

from importlib.util import find_spec

from vseg.errors import MissingExtra

if not all(map(find_spec, ("alembic", "psycopg", "sqlalchemy"))):
    raise MissingExtra('Collecting responses needs a few more packages: pip install "vseg[server]".')

from vseg.store import (
    backup,
    choices,
    health,
    researchers,
    responses,
    sessions,
    studies,
    tokens,
    vacuum,
)
from vseg.store.database import Database, open

__all__ = [
    "Database",
    "backup",
    "choices",
    "health",
    "open",
    "researchers",
    "responses",
    "sessions",
    "studies",
    "tokens",
    "vacuum",
]  # fmt: skip
