"""What participants, sessions and images are called in the folder, and which picture an image is."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from vseg.data.importers.mapping import ColumnMapping, as_text
from vseg.data.importers.rows import Row
from vseg.data.importers.trials import ImportedTrial, read_name, short_name
from vseg.errors import InvalidInput, NotFound

PRACTICE = "practice"  # the name of vseg's own picture for practice
LONGEST_IMAGE = 63
LONGEST_WORD = 40
ELSEWHERE = re.compile(r"prolific|worker|mturk|sona|e-?mail", re.IGNORECASE)
AN_IDENTITY = re.compile(r"[0-9a-f]{24}|.+@.+\..+", re.IGNORECASE)  # Prolific's, or an address
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")


def name_images(texts: Iterable[str]) -> dict[str, str]:
    """A short name for each image: lower-case letters, digits and hyphens, as study files have them.

    Examples
    --------
    >>> image_names(["img/Cat_01.jpg", "other/cat-01.png", "practice"])
    {'img/Cat_01.jpg': 'cat-01', 'other/cat-01.png': 'cat-01-2', 'practice': 'practice-2'}
    """

    def short(text: str) -> str:
        plain = unicodedata.normalize("NFKD", short_name(text)).encode("ascii", "ignore").decode().lower()
        return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[: LONGEST_IMAGE - 6].strip("-") or "image"

    return _distinct(texts, short, "-", {PRACTICE})


def make_file_words(names: Iterable[str]) -> dict[str, str]:
    """For the names of files, where Psych-DS allows letters and digits alone.

    Examples
    --------
    >>> words(["ann-1", "ann1", "Ann1", "é!"])
    {'ann-1': 'ann1', 'ann1': 'ann1x2', 'Ann1': 'Ann1x3', 'é!': 'e'}
    """

    def word(name: str) -> str:
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        return "".join(filter(str.isalnum, plain))[:LONGEST_WORD] or "unnamed"

    return _distinct(names, word, "x", set())


def _distinct(
    texts: Iterable[str], short: Callable[[str], str], joint: str, taken: set[str]
) -> dict[str, str]:
    """A name each; names alike but for their case are numbered."""
    names: dict[str, str] = {}
    taken = set(taken)
    for text in dict.fromkeys(texts):
        plain = name = short(text)
        number = 1
        while name.casefold() in taken:
            number += 1
            name = f"{plain}{joint}{number}"
        taken.add(name.casefold())
        names[text] = name
    return names


def name_participants(
    trials: Sequence[ImportedTrial], field: ColumnMapping | None, rows: Sequence[Row]
) -> tuple[list[str], dict[str, str], list[str]]:
    """Each trial's participant, whom the new names stand for, and what there is to say of it.

    Without a column each run is a participant. Names by which people are known elsewhere are replaced.
    """
    if field is None:
        order = dict.fromkeys(trial.row.run for trial in trials)
        runs = {run: f"p{number:03d}" for number, run in enumerate(order, 1)}
        return [runs[trial.row.run] for trial in trials], {}, [_about_runs(len(runs))]
    found = _named(trials, field, rows)
    if not (ELSEWHERE.search(field.column) or any(map(AN_IDENTITY.fullmatch, set(found)))):
        return found, {}, []
    new = {name: f"p{number:03d}" for number, name in enumerate(dict.fromkeys(found), 1)}
    remark = (
        f"Participants are called p001 to p{len(new):03d}, since {field.column or 'the name'} says who they are "
        "elsewhere; --identities writes down who is who."
    )
    return [new[name] for name in found], {name: old for old, name in new.items()}, [remark]


def _named(trials: Sequence[ImportedTrial], field: ColumnMapping, rows: Sequence[Row]) -> list[str]:
    """As the column says; where it is empty, the one name that the run has elsewhere."""
    of_run: dict[int, dict[str, Row]] = {}
    if any(trial.participant is None for trial in trials):
        for row in rows:
            if name := as_text(field.value(row)):
                of_run.setdefault(row.run, {})[name] = row
    found = []
    for trial in trials:
        name = trial.participant
        if name is None:
            if len(of_run.get(trial.row.run, ())) != 1:
                raise InvalidInput(
                    f"{trial.row.where}: {field.column} is empty; expected the participant's name."
                )
            ((text, row),) = of_run[trial.row.run].items()
            name = read_name(row, field, text)
        found.append(name)
    return found


def _about_runs(count: int) -> str:
    whole = (
        "All rows are taken as one participant's"
        if count == 1
        else f"Each of the {count} runs is a participant"
    )
    return f"{whole}: no column was found that names one; say which with --map participant=COLUMN."


def name_sessions(trials: Sequence[ImportedTrial], people: Sequence[str]) -> list[str]:
    """Each trial's session: as it is named, or one for each person in each run.

    Prolific's own number of a session leads to a person, so it is replaced.
    """
    keys = [
        (who, trial.session or "", -1 if trial.session else trial.row.run)
        for trial, who in zip(trials, people, strict=True)
    ]
    named = {
        key: f"s{number:03d}" if not key[1] or AN_IDENTITY.fullmatch(key[1]) else key[1]
        for number, key in enumerate(dict.fromkeys(keys), 1)
    }
    return [named[key] for key in keys]


def find_pictures(folder: str | Path, images: Iterable[str]) -> dict[str, Path]:
    """The picture of each image in a folder: that of the same file name, else of the same name without ending."""
    folder = Path(folder)
    if not folder.is_dir():
        raise NotFound(f"No folder {folder}; --images is the folder of the pictures that were shown.")
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in PICTURES and path.is_file())
    by_name = {path.name.casefold(): path for path in reversed(files)}
    by_stem = {path.stem.casefold(): path for path in reversed(files)}
    found: dict[str, Path] = {}
    for image in images:
        path = (
            _whole(image, folder, files)
            or by_name.get(_last(image))
            or by_stem.get(short_name(image).casefold())
        )
        if path is None:
            some = ", ".join(one.name for one in files[:10]) or "no pictures"
            raise NotFound(f"{folder} has no picture for the image {image!r}; found {some}.")
        found[image] = path
    return found


def _last(image: str) -> str:
    return re.sub(r"[?#].*$", "", image).replace("\\", "/").rstrip("/").rpartition("/")[2].casefold()


def _whole(image: str, folder: Path, files: Sequence[Path]) -> Path | None:
    """The file whose path within the folder ends the image's address, the longest such path."""
    address = f"/{re.sub(r'[?#].*$', '', image)}"
    ending = [path for path in files if address.endswith(f"/{path.relative_to(folder).as_posix()}")]
    return max(ending, key=lambda path: len(path.parts), default=None)


def read_picture_sizes(found: Mapping[str, Path]) -> dict[str, tuple[float, float]]:
    """Width and height of each picture, upright."""
    from vseg.stimuli import read_image

    sizes = {}
    for image, path in found.items():
        height, width = read_image(path).shape[:2]
        sizes[image] = (float(width), float(height))
    return sizes
