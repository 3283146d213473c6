"""The database: SQLite by default, PostgreSQL by URL, with the same code for both.

>>> with store.open("sqlite:///vseg.db") as db:  # doctest: +SKIP
...     study = store.studies.get_study(db, "two-textures")
...     responses = store.responses.load_responses(db, study)

One module per noun; all functions take the `Database` first and may be called from any thread.

studies, sessions, responses, choices   the data of an experiment
researchers, tokens                     who may log in
backup, vacuum                          copies of the database; removing traces of deleted rows
changes, snapshot                       reading a study: what is new, or all of it at one moment
database, schema, migrate               connections, tables and their versions
writer, conflicts                       `responses.append` queues records; a thread stores them in batches
"""

from importlib.util import find_spec

from vseg.errors import MissingExtra

if not all(map(find_spec, ("alembic", "psycopg", "sqlalchemy"))):
    raise MissingExtra('Collecting responses needs more packages: pip install "vseg[server]".')

from vseg.store import backup, choices, researchers, responses, sessions, studies, tokens, vacuum
from vseg.store.database import Database, open

__all__ = [
    "Database",
    "backup",
    "choices",
    "open",
    "researchers",
    "responses",
    "sessions",
    "studies",
    "tokens",
    "vacuum",
]
