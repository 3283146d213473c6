"""Load a function from a user's Python file, given as FILE.py or FILE.py:NAME."""

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from vseg.errors import InvalidInput, NotFound

PACKAGE = Path(__file__).parents[1]
DEFAULT_FUNCTION = "model"


def load_function(source: str) -> Callable[..., Any]:
    """Run FILE.py and return its function NAME, or the one called `model` if no name is given.

    Examples
    --------
    >>> threshold = load_function("mine.py:threshold")  # doctest: +SKIP
    """
    path, name = _split_source(source)
    module = _run_file(path)
    function = getattr(module, name, None)
    if not callable(function):
        names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        available = f"it has {', '.join(names)}" if names else "it defines none"
        raise InvalidInput(f"{path} has no function {name}; {available}. Name one as {path}:NAME.")
    return function


def describe_error(error: BaseException) -> str:
    """Describe what a user's function raised and where: 'ValueError: too hot (mine.py, line 12)'.

    The line is the last one in the user's own files; errors in vseg or a library are located where they were called.
    """
    message = f"{type(error).__name__}: {error}".rstrip(". :")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_users_file(Path(frame.filename))]
    return f"{message} ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else message


def _is_users_file(file: Path) -> bool:
    return file.is_file() and not file.is_relative_to(PACKAGE) and "site-packages" not in file.parts


def _split_source(source: str) -> tuple[Path, str]:
    stem, extension, name = source.rpartition(".py")
    if not extension or (name and not (name.startswith(":") and name[1:].isidentifier())):
        raise InvalidInput(f"Expected FILE.py or FILE.py:NAME, got {source!r}.")
    path = Path(f"{stem}.py")
    if not path.is_file():
        raise NotFound(f"There is no file {path}; expected a Python file with a function in it.")
    return path, name[1:] or DEFAULT_FUNCTION


def _run_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None  # a .py file always has one
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # so that it can import its neighbours
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidInput(f"{path} could not be run: {describe_error(error)}.") from error
    finally:
        sys.path.pop(0)
    return module
