"""The checksum of a backup: eight bytes in its header that reveal any later change, even of a single bit.

SQLite checks the structure of its pages, not their content. Its header has two fields of four bytes for applications.
In a backup they hold the first bytes of a SHA-256 of everything else. When vseg opens such a file for writing, it
clears the checksum first (`clear_checksum`); from then on the file is an ordinary database. There the second field is
0, and the first holds a number that grows with every transaction (`write_stamp`), so that two states of the file
differ in it (see file_watch.py).
"""

import hashlib
import sqlite3
import time
from pathlib import Path

from sqlalchemy import Connection

FIELDS = (slice(60, 64), slice(68, 72))  # user_version and application_id in the header of SQLite
STAMPS_SINCE_S = 1_577_836_800  # 2020-01-01
HEADER_BYTES = 100
CHUNK_BYTES = 2**20


def write_checksum(file: Path) -> None:
    """Write the checksum into a SQLite file that nobody has open."""
    digest = _compute_digest(file)
    with open(file, "r+b") as opened:
        for number, field in enumerate(FIELDS):
            opened.seek(field.start)
            opened.write(digest[4 * number : 4 * number + 4])


def is_intact(file: Path) -> bool:
    """Return whether a file matches its checksum; also True if it has none or is no SQLite file."""
    with open(file, "rb") as opened:
        header = opened.read(HEADER_BYTES)
    checksum = b"".join(header[field] for field in FIELDS)
    is_sqlite = header.startswith(b"SQLite format 3\0")
    return not is_sqlite or not is_present(header) or checksum == _compute_digest(file)


def is_present(header: bytes) -> bool:
    """Return whether the header of a SQLite file has a checksum."""
    return any(header[FIELDS[1]])


def clear_checksum(connection: sqlite3.Connection) -> None:
    """Remove the checksum from a file that is about to be changed."""
    if connection.execute("PRAGMA application_id").fetchone() != (0,):
        connection.execute("PRAGMA user_version = 0")
        connection.execute("PRAGMA application_id = 0")


def write_stamp(connection: Connection) -> int:
    """Write the next stamp of a database that is being changed, before the commit, and return it.

    It is the time where possible, so that copies of a database that are both changed have different stamps.
    """
    previous = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    stamp = min(max(previous + 1, int(time.time()) - STAMPS_SINCE_S), 2**31 - 1)
    connection.exec_driver_sql(f"PRAGMA user_version = {stamp}")
    return stamp


def read_stamp(header: bytes) -> int:
    """Return the stamp in the header of a SQLite file."""
    return int.from_bytes(header[FIELDS[0]], "big")


def _compute_digest(file: Path) -> bytes:
    """Return eight bytes, the last four never 0, computed from everything but the checksum itself."""
    digest = hashlib.sha256()
    with open(file, "rb") as opened:
        header = bytearray(opened.read(HEADER_BYTES))
        for field in FIELDS:
            header[field] = bytes(len(header[field]))
        digest.update(header)
        while chunk := opened.read(CHUNK_BYTES):
            digest.update(chunk)
    found = digest.digest()[:8]
    return found if any(found[4:]) else found[:4] + b"\1" * 4
