"""The tree of errors, and what importing vseg costs."""

import doctest
import importlib
import pkgutil
import subprocess
import sys
import warnings

import pytest

import vseg
from vseg import errors


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("InvalidInput", ValueError),
        ("NotConverged", RuntimeError),
        ("NotFound", LookupError),
        ("Conflict", Exception),
        ("MissingExtra", ImportError),
        ("SchemaMismatch", Exception),
    ],
)
def test_each_error_is_a_vseg_error_and_its_builtin_kin(name, builtin):
    error = getattr(errors, name)("A sentence.")
    assert isinstance(error, errors.VsegError)
    assert isinstance(error, builtin)
    assert str(error) == "A sentence."


def test_tree_in_the_docstring_is_the_tree_in_the_code():
    names = {error.__name__ for error in errors.VsegError.__subclasses__()}
    drawn = {line.split()[1] for line in errors.__doc__.splitlines() if line[:1] in ("├", "└")}
    assert drawn == names


def test_not_converged_carries_what_it_had_reached():
    assert errors.NotConverged("It stopped early.", result=[1]).result == [1]
    assert errors.NotConverged("It stopped early.").result is None


HEAVY = ("numpy", "matplotlib", "scipy", "numba", "torch", "skimage", "sklearn", "pyarrow", "typer")


def loaded_by(statement: str) -> set[str]:
    """Which heavy packages a fresh interpreter holds after the statement."""
    script = f"{statement}\nimport sys\nprint(*(name for name in {HEAVY} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_vseg_loads_nothing_heavy():
    assert loaded_by("import vseg") == set()


def test_the_data_types_need_numpy_alone():
    assert loaded_by("from vseg import Grid, Scatter, Pairs, Responses, Maps; Grid(3).neighbours") == {
        "numpy"
    }


def test_figures_leave_pyplot_alone():
    script = (
        "import sys, io; from vseg import Grid, Maps, figures\n"
        "figures.maps(Maps(Grid(3), [[0.5, 0.5]] * 9)).savefig(io.BytesIO())\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'vseg' has no attribute 'nothing'"):
        vseg.nothing  # noqa: B018


def test_names_lead_to_their_home():
    assert vseg.Grid is vseg.layout.Grid
    assert {"Grid", "figures", "__version__"} <= set(dir(vseg))


def modules() -> list[str]:
    found = pkgutil.walk_packages(vseg.__path__, "vseg.")
    return ["vseg", *(module.name for module in found if not module.name.endswith("__main__"))]


@pytest.mark.parametrize("name", modules())
def test_docstring_examples_run(name, tmp_path, monkeypatch):
    """The examples of every module that is there; whatever they write goes to a folder of their own."""
    module = importlib.import_module(name)
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert doctest.testmod(module, report=True).failed == 0
