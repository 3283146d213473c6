"""The checksum of a backup: eight bytes in its header that reveal any later change, even of a single bit.

SQLite checks the structure of its pages, not their content. Its header has two fields of four bytes for applications;
in a database in use both are 0, in a backup they hold the first bytes of a SHA-256 of everything else. When vseg
opens such a file for writing, it clears the checksum first (`clear_checksum`); from then on the file is an ordinary
database.
"""

import hashlib
import sqlite3
from pathlib import Path

FIELDS = (slice(60, 64), slice(68, 72))  # user_version and application_id in the header of SQLite
READ_FIELDS = ("PRAGMA user_version", "PRAGMA application_id")
CLEAR_FIELDS = ("PRAGMA user_version = 0", "PRAGMA application_id = 0")
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
    return not is_sqlite or not any(checksum) or checksum == _compute_digest(file)


def is_present(header: bytes) -> bool:
    """Return whether the header of a SQLite file has a checksum in both fields."""
    return all(any(header[field]) for field in FIELDS)


def clear_checksum(connection: sqlite3.Connection) -> None:
    """Remove the checksum from a file that is about to be changed."""
    for read, clear in zip(READ_FIELDS, CLEAR_FIELDS, strict=True):
        if connection.execute(read).fetchone() != (0,):
            connection.execute(clear)


def _compute_digest(file: Path) -> bytes:
    """Return eight bytes, never all 0, computed from everything but the checksum itself."""
    digest = hashlib.sha256()
    with open(file, "rb") as opened:
        header = bytearray(opened.read(HEADER_BYTES))
        for field in FIELDS:
            header[field] = bytes(len(header[field]))
        digest.update(header)
        while chunk := opened.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.digest()[:8] if any(digest.digest()[:8]) else b"\1" * 8
