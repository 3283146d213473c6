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
    "SS03": "the summary ends with a full stop",
    "SS05": "the summary is in the imperative",
    "SS06": "the summary is one line",
    "RT03": "the return value is described",
}


def public_functions() -> dict[str, object]:
    """Return the functions of the public API, those of its public modules included, by name."""
    found = {}
    for name in sorted(PUBLIC):
        member = getattr(vseg, name)
        if inspect.ismodule(member):
            inside = {f"{name}.{each}": getattr(member, each) for each in getattr(member, "__all__", ())}
            found |= {each: value for each, value in inside.items() if inspect.isfunction(value)}
        elif inspect.isfunction(member):
            found[name] = member
    return found


def test_the_public_names():
    assert set(dir(vseg)) == PUBLIC


def test_the_stub_is_part_of_the_package():
    """Editors and type checkers read __init__.pyi; lazy_loader reads it at run time."""
    folder = Path(vseg.__file__).parent
    assert (folder / "__init__.pyi").is_file()
    assert (folder / "py.typed").is_file()
    project = tomllib.loads((folder.parents[1] / "pyproject.toml").read_text("utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/vseg"]


@pytest.mark.parametrize("name", sorted(public_functions()))
def test_docstrings_are_complete(name):
    function = public_functions()[name]
    problems = validate(f"{function.__module__}.{function.__qualname__}")["errors"]
    assert [f"{code}: {said}" for code, said in problems if code in CHECKS] == []
