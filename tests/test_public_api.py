"""The public API: its names, and the docstrings of its functions."""

import inspect
import tomllib
from pathlib import Path

import pytest
from numpydoc.validate import validate

import vseg

PUBLIC = {
    "Grid", "Maps", "Pairs", "Responses", "Scatter", "adaptive", "bootstrap", "choose_segments", "compare",
    "compare_groups", "designs", "errors", "features", "figures", "fit_dataset", "load", "metrics", "models",
    "plan_study", "posterior", "posteriors", "reconstruct", "reconstruct_each", "score_models", "simulate", "stimuli",
    "sweep",
}  # fmt: skip
CHECKS = {
    "GL08": "there is a docstring",
    "PR01": "every parameter is described",
    "PR02": "no unknown parameter is described",
    "PR03": "in their order",
    "PR07": "no description of a parameter is empty",
    "RT01": "there is a section Returns",
    "RT03": "the return value is described",
    "SS03": "the summary ends with a full stop",
    "SS05": "the summary is in the imperative",
    "SS06": "the summary is one line",
}
# The summary of a short method says enough. Sections that it has are complete.
METHOD_CHECKS = CHECKS.keys() - {"PR01", "RT01"}


def public_members() -> dict[str, object]:
    """Return the functions and classes of the public API, those of its public modules included, by name."""
    members = {}
    for name in sorted(PUBLIC):
        member = getattr(vseg, name)
        if inspect.ismodule(member):
            members |= {f"{name}.{each}": getattr(member, each) for each in member.__all__}
        else:
            members[name] = member
    return members


def public_functions() -> dict[str, object]:
    """Return the functions of the public API by name."""
    return {name: each for name, each in public_members().items() if inspect.isfunction(each)}


def public_methods() -> dict[str, object]:
    """Return the public methods that public classes define, by the name of the class and the method."""
    methods = {}
    for name, member in public_members().items():
        if not inspect.isclass(member):
            continue
        for attribute in dir(member):
            value = inspect.getattr_static(member, attribute)
            function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            is_own = (getattr(function, "__module__", None) or "").startswith("vseg.")
            if inspect.isfunction(function) and is_own and not attribute.startswith("_"):
                methods[f"{name}.{attribute}"] = function
    return methods


def find_problems(function, checks) -> list[str]:
    problems = validate(f"{function.__module__}.{function.__qualname__}")["errors"]
    return [f"{code}: {message}" for code, message in problems if code in checks]


def test_the_public_names():
    assert set(dir(vseg)) == PUBLIC


def test_the_stub_is_part_of_the_package():
    """Editors and type checkers read __init__.pyi; lazy_loader reads it at run time."""
    folder = Path(vseg.__file__).parent
    assert (folder / "__init__.pyi").is_file()
    assert (folder / "py.typed").is_file()
    project = tomllib.loads((folder.parents[1] / "pyproject.toml").read_text("utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/vseg"]


@pytest.mark.parametrize("name", sorted(each for each in PUBLIC if inspect.ismodule(getattr(vseg, each))))
def test_public_modules_list_their_names(name):
    module = getattr(vseg, name)
    assert sorted(module.__all__) == sorted(set(module.__all__))
    assert all(hasattr(module, each) for each in module.__all__)


@pytest.mark.parametrize("name", sorted(public_functions()))
def test_docstrings_of_functions_are_complete(name):
    assert find_problems(public_functions()[name], CHECKS) == []


@pytest.mark.parametrize("name", sorted(public_methods()))
def test_docstrings_of_methods_are_complete(name):
    method = public_methods()[name]
    has_parameters = "Parameters\n" in (method.__doc__ or "")
    assert find_problems(method, METHOD_CHECKS | ({"PR01"} if has_parameters else set())) == []
