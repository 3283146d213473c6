"""Find and read the files to import: single files, folders, and zip archives such as JATOS exports.

Archives are read in memory, within limits; nothing is unpacked to disk, and names in them are not used as paths.
"""

import hashlib
import json
import lzma
import re
import stat
import textwrap
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from vseg.data.importers.rows import TextFile
from vseg.errors import InvalidInput, NotFound

TEXT_SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt")
ARCHIVE_SUFFIXES = (".zip", ".jrzip")
METADATA = "metadata.json"  # of a JATOS archive
JATOS_RESULT = re.compile(r"(?:^|/)study_result_(\d+)/comp-result_(\d+)/data\.txt$")
LARGEST_FILE = 2 * 2**30  # bytes
MOST_MEMBERS = 100_000
LARGEST_UNPACKED = 2 * 2**30  # bytes
MAX_REASON = 200  # characters of the reason why an archive is unreadable
ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    NotImplementedError,
    EOFError,
    OSError,
    ValueError,
)


@dataclass(frozen=True)
class SourceFile:
    """A file that was imported, as software.json records it."""

    name: str
    sha256: str
    size_bytes: int


def find_files(paths: Sequence[str | Path]) -> list[Path]:
    """Return the files to import; a folder stands for all the files in it that can be read."""
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(
                file for file in path.rglob("*") if file.suffix.lower() in (*TEXT_SUFFIXES, *ARCHIVE_SUFFIXES)
            )
            inside = [
                file for file in inside if file.is_file() and not file.is_symlink() and file.name != METADATA
            ]
            if not inside:
                raise NotFound(
                    f"{path} is a folder without {', '.join((*TEXT_SUFFIXES, *ARCHIVE_SUFFIXES))} files."
                )
            files += inside
        elif path.is_file():
            files.append(path)
        else:
            raise NotFound(f"No file {path}; expected jsPsych's JSON or CSV, or a JATOS archive.")
    if not files:
        raise InvalidInput("No files to import; expected at least one path.")
    return files


def read_file(path: Path) -> tuple[SourceFile, Iterator[TextFile]]:
    """Return the record of a file, and its texts: one, or those of an archive."""
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise InvalidInput(f"{path} has {size} bytes; at most {LARGEST_FILE} are read: import it in parts.")
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    source = SourceFile(path.name, digest, size)
    if zipfile.is_zipfile(path) and path.suffix.lower() not in TEXT_SUFFIXES:
        return source, _read_archive(path)
    name = str(path)
    run = str(path.parents[1]) if JATOS_RESULT.search(path.as_posix()) else ""
    return source, iter([TextFile(name, _decode(name, path.read_bytes()), run)])


@lru_cache(maxsize=1024)
def short_source_name(name: str) -> str:
    """Return the name of a file, or of a text in an archive, without the folders of the importing computer.

    Examples
    --------
    >>> short_source_name("/home/ann/data.json"), short_source_name("in/a.zip: b/c.csv")
    ('data.json', 'a.zip: b/c.csv')
    >>> short_source_name("in/study_result_1/comp-result_2/data.txt")
    'study_result_1/comp-result_2/data.txt'
    """
    path, colon, member = name.partition(": ")
    result = JATOS_RESULT.search(Path(path).as_posix())
    return f"{result[0].lstrip('/') if result else Path(path).name}{colon}{member}"


def _decode(name: str, content: bytes) -> str:
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        kind = "a zip archive, perhaps an Excel workbook" if content[:2] == b"PK" else "not UTF-8 text"
        raise InvalidInput(f"{name} is {kind}; save it as CSV (UTF-8) or as JSON.") from error


# ── archives ──


def _read_archive(path: Path) -> Iterator[TextFile]:
    """Yield the texts of a zip archive; in a JATOS archive, the components of a study result are one run."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = _check_members(path, archive)
            if "[Content_Types].xml" in members:
                raise InvalidInput(
                    f"{path} is an Office document such as an Excel workbook; save its sheet as CSV (UTF-8)."
                )
            unpack = _make_unpacker(path, archive)
            metadata = _read_metadata(members, unpack)
            results = [name for name in members if JATOS_RESULT.search(name)]
            texts = results or [name for name in members if _is_text(name)]
            if not texts:
                raise InvalidInput(
                    f"{path} holds no results; expected study_result_…/comp-result_…/data.txt as in a JATOS "
                    f"export, or {', '.join(TEXT_SUFFIXES)} files."
                )
            for name in sorted(texts, key=_natural_key):
                text = _decode(f"{path}: {name}", unpack(members[name]))
                if text.strip():
                    yield TextFile(f"{path}: {name}", text, *_find_run(path, name, metadata))
    except ARCHIVE_ERRORS as error:
        if isinstance(error, InvalidInput) or (isinstance(error, OSError) and error.filename):
            raise
        reason = textwrap.shorten(str(error), MAX_REASON)  # zipfile quotes bytes of the archive
        raise InvalidInput(f"{path} cannot be read as a zip archive ({reason}); export it again.") from error


def _is_text(name: str) -> bool:
    parts = PurePosixPath(name)
    hidden = any(part.startswith((".", "__MACOSX")) for part in parts.parts)
    return parts.suffix.lower() in TEXT_SUFFIXES and parts.name != METADATA and not hidden


def _natural_key(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts study_result_9 before study_result_10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d{1,18})", name)]


def _check_members(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the members that are files; raise an error if any member is unsafe or the archive is too large."""
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise InvalidInput(f"{path} holds {len(members)} files; at most {MOST_MEMBERS} are read.")
    for member in members:
        name = member.filename.replace("\\", "/")
        if name.startswith("/") or ".." in name.split("/") or re.match(r"[A-Za-z]:", name):
            raise InvalidInput(f"{path} holds {name!r}, a path outside the archive; nothing is imported.")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise InvalidInput(f"{path} holds {name!r}, a link; nothing is imported.")
        if member.flag_bits & 1:
            raise InvalidInput(f"{path} is encrypted; unpack it and import the folder.")
    total = sum(member.file_size for member in members)
    if total > LARGEST_UNPACKED:
        raise _too_large_error(path)
    return {member.filename: member for member in members if not member.is_dir()}


def _too_large_error(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{path} would unpack to more than {LARGEST_UNPACKED // 2**20} MiB; export fewer results at a time."
    )


def _make_unpacker(path: Path, archive: zipfile.ZipFile) -> Callable[[zipfile.ZipInfo], bytes]:
    """Return a function that reads members up to a total limit, whatever sizes the archive declares."""
    left = LARGEST_UNPACKED

    def unpack(member: zipfile.ZipInfo) -> bytes:
        nonlocal left
        with archive.open(member) as file:
            content = file.read(left + 1)
        left -= len(content)
        if left < 0:
            raise _too_large_error(path)
        return content

    return unpack


def _read_metadata(
    members: Mapping[str, zipfile.ZipInfo], unpack: Callable[[zipfile.ZipInfo], bytes]
) -> dict[str, dict[str, Any]]:
    """Return what JATOS recorded about each study result, by its number: the worker and the link's parameters."""
    member = next((member for name, member in members.items() if name.split("/")[-1] == METADATA), None)
    if member is None:
        return {}
    try:
        content = json.loads(unpack(member))
    except (ValueError, RecursionError):
        return {}
    cells_by_result: dict[str, dict[str, Any]] = {}
    studies = content.get("data") if isinstance(content, dict) else None
    for study in studies if isinstance(studies, list) else []:
        results = study.get("studyResults") if isinstance(study, dict) else None
        for result in results if isinstance(results, list) else []:
            if isinstance(result, dict) and isinstance(result.get("id"), int):
                cells_by_result[str(result["id"])] = _result_cells(result)
    return cells_by_result


def _result_cells(result: dict[str, Any]) -> dict[str, Any]:
    parameters = result.get("urlQueryParameters")
    cells = {f"jatos_{key}": result.get(key) for key in ("workerId", "studyCode", "studyState")}
    cells |= parameters if isinstance(parameters, dict) else {}
    return {str(key): value for key, value in cells.items() if isinstance(value, str | int | float)}


def _find_run(
    path: Path, name: str, metadata: Mapping[str, dict[str, Any]]
) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Return the run of a component's result, and the cells to add to each of its rows."""
    if not (result := JATOS_RESULT.search(name)):
        return "", ()
    study_result = result[1]
    cells = {"jatos_study_result": study_result, "jatos_component_result": result[2]}
    return f"{path}:{study_result}", tuple((cells | metadata.get(study_result, {})).items())
