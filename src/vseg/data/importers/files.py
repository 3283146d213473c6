"""What to read: files, folders of them, and zip archives, JATOS's own among them.

Nothing of an archive is unpacked onto the disk: its texts are read, within limits, and names in it are only names.
"""

import hashlib
import json
import lzma
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from vseg.data.importers.rows import TextFile
from vseg.errors import InvalidInput, NotFound

READ = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".txt")
ARCHIVES = (".zip", ".jrzip")
METADATA = "metadata.json"
RESULT = re.compile(r"(?:^|/)study_result_(\d+)/comp-result_(\d+)/data\.txt$")
LARGEST_FILE = 2 * 2**30
MOST_MEMBERS = 100_000
LARGEST_UNPACKED = 2 * 2**30
BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, EOFError, OSError, ValueError)


@dataclass(frozen=True)
class SourceFile:
    """A file that was imported, for the record."""

    name: str
    sha256: str
    size_bytes: int


def find_files(paths: Sequence[str | Path]) -> list[Path]:
    """The files behind what was named: a folder stands for those in it that can be read."""
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(one for one in path.rglob("*") if one.suffix.lower() in (*READ, *ARCHIVES))
            inside = [
                one for one in inside if one.is_file() and not one.is_symlink() and one.name != METADATA
            ]
            if not inside:
                raise NotFound(f"{path} is a folder without {', '.join((*READ, *ARCHIVES))} files.")
            files += inside
        elif path.is_file():
            files.append(path)
        else:
            raise NotFound(f"No file {path}; expected jsPsych's JSON or CSV, or a JATOS archive.")
    if not files:
        raise InvalidInput("There is nothing to import; name at least one file.")
    return files


def read_file(path: Path) -> tuple[SourceFile, Iterator[TextFile]]:
    """The file for the record, and its texts."""
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise InvalidInput(f"{path} has {size} bytes; at most {LARGEST_FILE} are read: import it in parts.")
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    source = SourceFile(path.name, digest, size)
    if zipfile.is_zipfile(path) and path.suffix.lower() not in READ:
        return source, _archived(path)
    name = str(path)
    result = RESULT.search(path.as_posix())
    return source, iter(
        [TextFile(name, _decoded(name, path.read_bytes()), f"{path.parents[1]}" if result else "")]
    )


@lru_cache(maxsize=1024)
def short_source_name(name: str) -> str:
    """The name of a file or of a text in an archive, without the folders of the machine it was imported on.

    Examples
    --------
    >>> short("/home/ann/data.json"), short("in/a.zip: b/c.csv"), short("in/study_result_1/comp-result_2/data.txt")
    ('data.json', 'a.zip: b/c.csv', 'study_result_1/comp-result_2/data.txt')
    """
    path, colon, member = name.partition(": ")
    result = RESULT.search(Path(path).as_posix())
    return f"{result[0].lstrip('/') if result else Path(path).name}{colon}{member}"


def _decoded(name: str, content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    else:
        encoding = "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        what = "a zip archive, perhaps an Excel workbook" if content[:2] == b"PK" else "not UTF-8 text"
        raise InvalidInput(f"{name} is {what}; save it as CSV (UTF-8) or as JSON.") from error


# ── archives ──


def _archived(path: Path) -> Iterator[TextFile]:
    """The texts of a zip archive; in one of JATOS, the components of a study result are one run."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = _checked(path, archive)
            if "[Content_Types].xml" in members:
                raise InvalidInput(f"{path} is an Excel workbook or the like; save its sheet as CSV (UTF-8).")
            unpack = _unpacker(path, archive)
            about = _metadata(path, members, unpack)
            results = [name for name in members if RESULT.search(name)]
            texts = results or [name for name in members if _is_text(name)]
            if not texts:
                raise InvalidInput(
                    f"{path} holds no results; expected study_result_…/comp-result_…/data.txt as JATOS "
                    f"exports them, or {', '.join(READ)} files."
                )
            for name in sorted(texts, key=_in_order):
                text = _decoded(f"{path}: {name}", unpack(members[name]))
                if text.strip():
                    yield TextFile(f"{path}: {name}", text, *_run_of(path, name, about))
    except BROKEN as error:
        if isinstance(error, InvalidInput) or (isinstance(error, OSError) and error.filename):
            raise
        raise InvalidInput(f"{path} cannot be read as a zip archive ({error}); export it again.") from error


def _is_text(name: str) -> bool:
    parts = PurePosixPath(name)
    hidden = any(part.startswith((".", "__MACOSX")) for part in parts.parts)
    return parts.suffix.lower() in READ and parts.name != METADATA and not hidden


def _in_order(name: str) -> list[tuple[int, str]]:
    """study_result_9 before study_result_10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d{1,18})", name)]


def _checked(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members that are files, after a look at all of them."""
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise InvalidInput(f"{path} holds {len(members)} files; at most {MOST_MEMBERS} are read.")
    for member in members:
        name = member.filename.replace("\\", "/")
        if name.startswith("/") or ".." in name.split("/") or re.match(r"[A-Za-z]:", name):
            raise InvalidInput(f"{path} holds {name!r}, a path that leads out of it; nothing is imported.")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise InvalidInput(f"{path} holds {name!r}, which is a link; nothing is imported.")
        if member.flag_bits & 1:
            raise InvalidInput(f"{path} is encrypted; unpack it and import the folder.")
    total = sum(member.file_size for member in members)
    if total > LARGEST_UNPACKED:
        raise _too_large(path)
    return {member.filename: member for member in members if not member.is_dir()}


def _too_large(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{path} would unpack to more than {LARGEST_UNPACKED // 2**20} MiB; export fewer results at a time."
    )


def _unpacker(path: Path, archive: zipfile.ZipFile) -> Callable[[zipfile.ZipInfo], bytes]:
    """Reads members, all of them together within the limit whatever the archive says of their sizes."""
    left = LARGEST_UNPACKED

    def unpack(member: zipfile.ZipInfo) -> bytes:
        nonlocal left
        with archive.open(member) as file:
            content = file.read(left + 1)
        left -= len(content)
        if left < 0:
            raise _too_large(path)
        return content

    return unpack


def _metadata(
    path: Path, members: Mapping[str, zipfile.ZipInfo], unpack: Callable[[zipfile.ZipInfo], bytes]
) -> dict[str, dict[str, Any]]:
    """What JATOS says of each study result, by its number: its worker, and what stood in the link."""
    member = next((member for name, member in members.items() if name.split("/")[-1] == METADATA), None)
    if member is None:
        return {}
    try:
        content = json.loads(unpack(member))
    except (ValueError, RecursionError):
        return {}
    about: dict[str, dict[str, Any]] = {}
    studies = content.get("data") if isinstance(content, dict) else None
    for study in studies if isinstance(studies, list) else []:
        results = study.get("studyResults") if isinstance(study, dict) else None
        for result in results if isinstance(results, list) else []:
            if isinstance(result, dict) and isinstance(result.get("id"), int):
                about[str(result["id"])] = _about(result)
    return about


def _about(result: dict[str, Any]) -> dict[str, Any]:
    link = result.get("urlQueryParameters")
    said = {f"jatos_{key}": result.get(key) for key in ("workerId", "studyCode", "studyState")}
    said |= link if isinstance(link, dict) else {}
    return {str(key): value for key, value in said.items() if isinstance(value, str | int | float)}


def _run_of(
    path: Path, name: str, about: dict[str, dict[str, Any]]
) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """The run of a component's result, and the cells that each of its rows gets."""
    if not (result := RESULT.search(name)):
        return "", ()
    study_result = result[1]
    known = {"jatos_study_result": study_result, "jatos_component_result": result[2]}
    return f"{path}:{study_result}", tuple((known | about.get(study_result, {})).items())
