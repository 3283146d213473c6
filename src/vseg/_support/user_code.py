"""A function of the user's own, named as FILE.py or FILE.py:NAME."""

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vseg.errors import InvalidInput, NotFound

DEFAULT = "model"


def named(source: str) -> Callable[..., Any]:
    """The function NAME of FILE.py, by default the one called `model`; the file is run.

    Examples
    --------
    >>> threshold = named("mine.py:threshold")  # doctest: +SKIP
    """
    path, name = _parts(source)
    module = _run(path)
    found = getattr(module, name, None)
    if not callable(found):
        there = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
        known = f"it has {', '.join(there)}" if there else "it defines none"
        raise InvalidInput(f"{path} has no function {name}; {known}. Name one as {path}:NAME.")
    return found


def raised(error: BaseException) -> str:
    """What a user's function raised and where: 'ValueError: too hot (mine.py, line 12)'.

    The line is the last one of a file of theirs; errors of vseg and of libraries are told where they were called.
    """
    said = f"{type(error).__name__}: {error}".rstrip(". :")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _not_theirs(Path(frame.filename))]
    return f"{said} ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else said


def _not_theirs(file: Path) -> bool:
    return file.is_relative_to(Path(__file__).parents[1]) or "site-packages" in file.parts or not file.is_file()


def _parts(source: str) -> tuple[Path, str]:
    file, dot_py, name = source.rpartition(".py")
    if not dot_py or (name and not (name.startswith(":") and name[1:].isidentifier())):
        raise InvalidInput(f"Expected FILE.py or FILE.py:NAME, got {source!r}.")
    path = Path(f"{file}.py")
    if not path.is_file():
        raise NotFound(f"There is no file {path}; expected a Python file with a function in it.")
    return path, name[1:] or DEFAULT


def _run(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None  # a .py file always has one
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # so that it can import its neighbours
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidInput(f"{path} could not be run: {raised(error)}.") from error
    finally:
        sys.path.pop(0)
    return module
