"""A backup's seal: eight bytes in its header by which a single bit that has changed since is noticed.

SQLite checks how its pages hang together, not what is in them. It leaves two fields of four bytes to the application,
which in a database that is in use are 0. In a backup they hold the beginning of a SHA-256 of all the rest. Whoever
writes to such a file with vseg breaks the seal first (`broken`): it is then as good as any database that is in use.
"""

import hashlib
import sqlite3
from pathlib import Path

FIELDS = (slice(60, 64), slice(68, 72))  # of user_version and application_id in SQLite's header
READ_FIELDS = ("PRAGMA user_version", "PRAGMA application_id")
CLEAR_FIELDS = ("PRAGMA user_version = 0", "PRAGMA application_id = 0")
HEADER_BYTES = 100
CHUNK_BYTES = 2**20


def write_checksum(file: Path) -> None:
    """Seal a SQLite file that nobody has open."""
    digest = _digest(file)
    with open(file, "r+b") as opened:
        for number, place in enumerate(FIELDS):
            opened.seek(place.start)
            opened.write(digest[4 * number : 4 * number + 4])


def is_intact(file: Path) -> bool:
    """Whether a file is as it was when it was sealed, or has no seal; as what is no SQLite file has none."""
    with open(file, "rb") as opened:
        header = opened.read(HEADER_BYTES)
    sealed = b"".join(header[place] for place in FIELDS)
    return not header.startswith(b"SQLite format 3\0") or not any(sealed) or sealed == _digest(file)


def clear_checksum(connection: sqlite3.Connection) -> None:
    """Take the seal off a file that is going to be changed."""
    for asked, breaking in zip(READ_FIELDS, CLEAR_FIELDS, strict=True):
        if connection.execute(asked).fetchone() != (0,):
            connection.execute(breaking)


def _digest(file: Path) -> bytes:
    """Eight bytes that follow from all but themselves, and are never all 0."""
    found = hashlib.sha256()
    with open(file, "rb") as opened:
        header = bytearray(opened.read(HEADER_BYTES))
        for place in FIELDS:
            header[place] = bytes(len(header[place]))
        found.update(header)
        while part := opened.read(CHUNK_BYTES):
            found.update(part)
    return found.digest()[:8] if any(found.digest()[:8]) else b"\1" * 8
