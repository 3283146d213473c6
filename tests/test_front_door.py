"""What a newcomer meets first: the five lines, the examples, quick imports and a quick command line."""

import doctest
import importlib
import pkgutil
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import vseg

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
HEAVY = {"numpy", "scipy", "numba", "matplotlib", "torch", "sklearn", "skimage", "PIL", "pyarrow"}


def test_the_five_lines(tmp_path):
    truth = vseg.stimuli.random_maps(vseg.Grid(16), segments=3, seed=0)
    pairs = vseg.designs.scattered(truth.layout, segments=3, seed=1)
    responses = vseg.simulate(truth, pairs, blocks=10, seed=2)
    result = vseg.reconstruct(responses, segments=3, seed=3)
    vseg.figures.maps(truth, result.maps).savefig(tmp_path / "maps.png")
    assert vseg.metrics.label_accuracy(result.maps, truth) > 0.9
    assert (tmp_path / "maps.png").read_bytes().startswith(b"\x89PNG")


def test_the_five_lines_stand_in_the_example_and_in_the_package():
    example = next(path for path in EXAMPLES if path.stem == "five_lines").read_text(encoding="utf-8")
    lines = [line for line in example.splitlines() if line and not line.startswith(('"""', "import"))]
    assert len(lines) == 5
    assert all(line in (vseg.__doc__ or "") for line in lines)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize("command", ["--help", "--version", "fit --help", "simulate --help", "demo --help"])
def test_help_loads_nothing_heavy(command):
    """`vseg --help` must answer at once, so it may not load what only the commands need."""
    program = (
        "import sys\nfrom vseg.cli import main\ntry:\n    main()\n"
        "finally:\n    print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *command.split()],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    assert not HEAVY & set(done.stderr.split())


@pytest.mark.parametrize(
    ("statement", "loaded"),
    [
        ("import vseg", set()),
        ("from vseg import Grid, Scatter, Pairs, Responses, Maps; Grid(3).neighbours", {"numpy"}),
    ],
)
def test_importing_loads_only_what_is_needed(statement, loaded):
    """vseg itself loads nothing, and the data types need numpy alone."""
    program = f"{statement}\nimport sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (HEAVY | {"typer"}) & set(done.stdout.split()) == loaded


def test_figures_leave_pyplot_alone():
    program = (
        "import sys, io; from vseg import Grid, Maps, figures\n"
        "figures.maps(Maps(Grid(3), [[0.5, 0.5]] * 9)).savefig(io.BytesIO())\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="No vseg attribute nothing"):
        vseg.nothing  # noqa: B018


def test_names_lead_to_their_home():
    from vseg.data.layout import Grid

    assert vseg.Grid is Grid
    assert {"Grid", "figures"} <= set(dir(vseg))


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


def test_the_installed_command_is_there():
    command = Path(sys.executable).with_name("vseg")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"vseg {vseg.__version__}\n"


def test_every_benchmark_can_be_imported():
    pytest.importorskip("torch", reason="benchmarks compare with the paper's algorithm in PyTorch")
    folder = Path(__file__).parent.parent / "benchmarks"
    modules = ["run", *sorted(path.stem for path in folder.glob("*.py") if path.stem != "run")]
    subprocess.run([sys.executable, "-c", f"import {', '.join(modules)}"], cwd=folder, check=True)
