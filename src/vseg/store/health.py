"""Whether a database answers."""

from sqlalchemy import select

from vseg.store.database import Database
from vseg.store.schema import images, researchers, responses, sessions, studies

NEEDED = (studies, images, sessions, responses, researchers)


def check(db: Database) -> None:
    """Read the newest row of each table that people need; `VsegError` where that fails.

    A mere SELECT 1 never touches a file of SQLite's, and one table says nothing of damage in another.
    """
    with db.reading() as connection:
        for table in NEEDED:
            shown = [column for column in table.c if column.name not in ("png", "truth", "trials", "text")]
            newest = [column.desc() for column in table.primary_key]
            connection.execute(select(*shown).order_by(*newest).limit(1)).all()
