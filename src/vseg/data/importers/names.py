"""The names of participants, sessions and images in the imported dataset, and the picture files of the images."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from vseg.data.importers.mapping import ColumnMapping, as_text
from vseg.data.importers.rows import Row
from vseg.data.importers.trials import ImportedTrial, read_name, short_name
from vseg.errors import InvalidInput, NotFound
from vseg.study.sections import PRACTICE_IMAGE

LONGEST_IMAGE_NAME = 63
LONGEST_WORD = 40
IDENTITY_COLUMN = re.compile(r"prolific|worker|mturk|sona|e-?mail", re.IGNORECASE)
IDENTITY = re.compile(r"[0-9a-f]{24}|.+@.+\..+", re.IGNORECASE)  # a Prolific ID or an e-mail address
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")


def name_images(texts: Iterable[str]) -> dict[str, str]:
    """Return a short, distinct name for each image, as a study file requires: lower-case letters, digits, hyphens.

    Examples
    --------
    >>> name_images(["img/Cat_01.jpg", "other/cat-01.png", "practice"])
    {'img/Cat_01.jpg': 'cat-01', 'other/cat-01.png': 'cat-01-2', 'practice': 'practice-2'}
    """

    def short(text: str) -> str:
        plain = unicodedata.normalize("NFKD", short_name(text)).encode("ascii", "ignore").decode().lower()
        return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[: LONGEST_IMAGE_NAME - 6].strip("-") or "image"

    return _make_distinct(texts, short, "-", {PRACTICE_IMAGE})


def make_file_words(names: Iterable[str]) -> dict[str, str]:
    """Return a distinct word for each name, for file names, in which Psych-DS allows only letters and digits.

    Examples
    --------
    >>> make_file_words(["ann-1", "ann1", "Ann1", "é!"])
    {'ann-1': 'ann1', 'ann1': 'ann1x2', 'Ann1': 'Ann1x3', 'é!': 'e'}
    """

    def word(name: str) -> str:
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        return "".join(filter(str.isalnum, plain))[:LONGEST_WORD] or "unnamed"

    return _make_distinct(names, word, "x", set())


def _make_distinct(
    texts: Iterable[str], shorten: Callable[[str], str], separator: str, taken: set[str]
) -> dict[str, str]:
    """Shorten each text; number those that become equal, ignoring case."""
    names: dict[str, str] = {}
    taken = set(taken)
    for text in dict.fromkeys(texts):
        plain = name = shorten(text)
        number = 1
        while name.casefold() in taken:
            number += 1
            name = f"{plain}{separator}{number}"
        taken.add(name.casefold())
        names[text] = name
    return names


def name_participants(
    trials: Sequence[ImportedTrial], mapping: ColumnMapping | None, rows: Sequence[Row]
) -> tuple[list[str], dict[str, str], list[str]]:
    """Return each trial's participant, the original identities by new name, and remarks for the user.

    Without a column of participants, each run is a participant. Names that identify participants elsewhere, such as
    Prolific IDs, are replaced.
    """
    if mapping is None:
        order = dict.fromkeys(trial.row.run for trial in trials)
        runs = {run: f"p{number:03d}" for number, run in enumerate(order, 1)}
        return [runs[trial.row.run] for trial in trials], {}, [_describe_runs(len(runs))]
    names = _read_participants(trials, mapping, rows)
    if not (IDENTITY_COLUMN.search(mapping.column) or any(map(IDENTITY.fullmatch, set(names)))):
        return names, {}, []
    new = {name: f"p{number:03d}" for number, name in enumerate(dict.fromkeys(names), 1)}
    remark = (
        f"Participants are renamed p001 to p{len(new):03d}, since {mapping.column or 'the name'} identifies them "
        "elsewhere; their identities are written only on request."
    )
    return [new[name] for name in names], {name: old for old, name in new.items()}, [remark]


def _read_participants(
    trials: Sequence[ImportedTrial], mapping: ColumnMapping, rows: Sequence[Row]
) -> list[str]:
    """Return each trial's participant; if its cell is empty, the only name in other rows of the same run."""
    names_in_run: dict[int, dict[str, Row]] = {}
    if any(trial.participant is None for trial in trials):
        for row in rows:
            if name := as_text(mapping.value(row)):
                names_in_run.setdefault(row.run, {})[name] = row
    names = []
    for trial in trials:
        name = trial.participant
        if name is None:
            if len(names_in_run.get(trial.row.run, ())) != 1:
                raise InvalidInput(
                    f"{trial.row.source}: {mapping.column} is empty; expected the participant's name."
                )
            ((text, row),) = names_in_run[trial.row.run].items()
            name = read_name(row, mapping, text)
        names.append(name)
    return names


def _describe_runs(count: int) -> str:
    reading = (
        "All rows are read as one participant's"
        if count == 1
        else f"Each of the {count} runs is read as one participant"
    )
    return f"{reading}: no column names the participant; map one as in participant=COLUMN if there is one."


def name_sessions(trials: Sequence[ImportedTrial], participants: Sequence[str]) -> list[str]:
    """Return each trial's session: the mapped one, or one for each participant in each run.

    Prolific's session IDs identify participants, so they are replaced.
    """
    keys = [
        (participant, trial.session or "", -1 if trial.session else trial.row.run)
        for trial, participant in zip(trials, participants, strict=True)
    ]
    names = {
        key: f"s{number:03d}" if not key[1] or IDENTITY.fullmatch(key[1]) else key[1]
        for number, key in enumerate(dict.fromkeys(keys), 1)
    }
    return [names[key] for key in keys]


def find_pictures(folder: str | Path, images: Iterable[str]) -> dict[str, Path]:
    """Return the picture file of each image: with the same path or file name, or the same name without suffix."""
    folder = Path(folder)
    if not folder.is_dir():
        raise NotFound(f"No folder {folder}; expected the folder of the pictures that were shown.")
    files = sorted(
        path for path in folder.rglob("*") if path.suffix.lower() in PICTURE_SUFFIXES and path.is_file()
    )
    by_name = {path.name.casefold(): path for path in reversed(files)}
    by_stem = {path.stem.casefold(): path for path in reversed(files)}
    found: dict[str, Path] = {}
    for image in images:
        path = (
            _find_by_path(image, folder, files)
            or by_name.get(_file_name(image))
            or by_stem.get(short_name(image).casefold())
        )
        if path is None:
            some = ", ".join(file.name for file in files[:10]) or "no pictures"
            raise NotFound(f"{folder} has no picture for the image {image!r}; found {some}.")
        found[image] = path
    return found


def _file_name(image: str) -> str:
    return re.sub(r"[?#].*$", "", image).replace("\\", "/").rstrip("/").rpartition("/")[2].casefold()


def _find_by_path(image: str, folder: Path, files: Sequence[Path]) -> Path | None:
    """Return the file whose path within the folder is the end of the image's address; the longest such path."""
    address = f"/{re.sub(r'[?#].*$', '', image)}"
    matching = [path for path in files if address.endswith(f"/{path.relative_to(folder).as_posix()}")]
    return max(matching, key=lambda path: len(path.parts), default=None)


def read_picture_sizes(pictures: Mapping[str, Path]) -> dict[str, tuple[float, float]]:
    """Return the width and height in pixels of each picture, upright."""
    from vseg.stimuli import read_image

    sizes = {}
    for image, path in pictures.items():
        height, width = read_image(path).shape[:2]
        sizes[image] = (float(width), float(height))
    return sizes
