"""Text for readers and for file systems: counts with their noun, and safe folder names."""

import re
import unicodedata
from collections.abc import Iterable

LONGEST_FOLDER_NAME = 60
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # not allowed on Windows


def format_count(number: int, noun: str) -> str:
    """Return the number with its noun in singular or plural: "1 image", "2 images"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def safe_folder_names(names: Iterable[str]) -> dict[str, str]:
    """Return a distinct folder name for each of these names, which may be any text.

    Letters, digits, `.`, `-` and `_` are kept. Characters that could leave the folder, hide it, or be refused by a
    file system are replaced or removed; names that differ only in case are numbered.

    Examples
    --------
    >>> safe_folder_names(["Ann", "ann", "../etc", ""])
    {'Ann': 'Ann', 'ann': 'ann-2', '../etc': 'etc', '': 'unnamed'}
    """
    taken: set[str] = set()
    folders = {}
    for name in names:
        plain = unicodedata.normalize("NFKC", name)
        plain = "".join(c if c.isalnum() or c in ".-_" else "_" for c in plain)
        plain = plain.strip("._-")[:LONGEST_FOLDER_NAME].rstrip("._-") or "unnamed"
        if RESERVED.fullmatch(plain):
            plain = f"_{plain}"
        unique, number = plain, 1
        while unique.casefold() in taken:
            number += 1
            unique = f"{plain}-{number}"
        taken.add(unique.casefold())
        folders[name] = unique
    return folders
