"""Test the commands `vseg models` and `vseg bench`."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import files, vseg
from vseg.data.maps import Maps
from vseg.evaluation import datasets

HALVES = """import numpy as np


def model(image):
    return (np.arange(image.shape[1]) >= image.shape[1] // 2) * np.ones(image.shape[:2], int)


def tilted(image):
    return np.add.outer(np.arange(image.shape[0]), np.arange(image.shape[1])) > sum(image.shape[:2]) // 2


def broken(image):
    raise ValueError("no idea")
"""
# Counts its fits, and is interrupted in its third one until the file go_on exists.
INTERRUPTED = """from pathlib import Path

import numpy as np


class Coin:
    def same_probability(self, image, pairs):
        return np.full(len(pairs), 0.5)


def model(task, *, seed):
    fitted = len(Path("fits.txt").read_text()) if Path("fits.txt").exists() else 0
    if fitted == 2 and not Path("go_on").exists():
        raise KeyboardInterrupt
    Path("fits.txt").write_text("x" * (fitted + 1))
    return Coin()
"""
NETWORK = """import torch


def model(inputs, segments):
    return torch.nn.Sequential(torch.nn.Linear(inputs, 4), torch.nn.Tanh(), torch.nn.Linear(4, segments))
"""
# One function for each way in which a model may fail.
WRONG = """import numpy as np


def shape(image):
    return np.zeros((3, 3), int)


def nan(image):
    return np.full((*image.shape[:2], 2), np.nan)


def outside(image):
    return np.full((*image.shape[:2], 2), 1.5)


def raises(image):
    raise RuntimeError("no idea\\nat all")


def leaves(image):
    raise SystemExit


def hangs(image):
    while True:
        pass


def eats(image):
    held = []
    while True:
        held.append(np.ones(10**6))


def crashes(image):
    import signal

    signal.raise_signal(signal.SIGSEGV)


def nothing(task, *, seed):
    return None


def sized(features, pairs):
    return np.full(len(pairs), 0.5)


sized.features = dict.fromkeys(("coffee", "rocket"), np.zeros((10, 10, 2)))
"""
REASONS = {
    "shape": "gave an array of shape (3, 3)",
    "nan": "Probabilities are finite numbers",
    "outside": "Probabilities lie from 0 to 1",
    "raises": "RuntimeError: no idea at all",
    "leaves": "It called exit().",
    "eats": "it needed more memory than the 1500 MB",
    "crashes": "Its process crashed (SIGSEGV).",
    "nothing": "Expected a fitted model to have same_probability",
    "sized": "Features of shape (10, 10, 2) do not fit an image of 320 x 320 pixels",
}
SCORED = {"table.md", "table.csv", "scores.json", "forest.png", "calibration.png", "maps.png"}


@pytest.fixture(scope="session")
def sample_dataset(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "samples"
    folder.mkdir()
    datasets.write_sample_dataset(
        folder, images=("coffee", "rocket"), observers=2, blocks=2, grid=6, segments=2
    )
    return folder


@pytest.fixture
def data(sample_dataset, here) -> str:
    (here / "mine.py").write_text(HALVES)
    return str(sample_dataset)


def test_list_names_models_and_features(capsys):
    code, out, _ = vseg("models list", capsys)
    assert code == 0
    assert "logistic" in out
    assert "Features: rgb, lab" in out


def test_fit_writes_parameters_maps_and_figures(data, here, capsys):
    code, out, err = vseg(f"models fit {data} --model logistic --features lab --out fitted", capsys)
    assert (code, err) == (0, "")
    assert out == "fitted: logistic fitted to 2 participants.\n"
    assert files(here / "fitted") == {
        "parameters.json", "calibration.png", "maps.png",
        *(f"maps/observer-{n}/{image}.npz" for n in (1, 2) for image in ("coffee", "rocket")),
    }  # fmt: skip
    written = json.loads((here / "fitted/parameters.json").read_text())
    assert written["fits"]["observer-1"]["parameters"]
    assert -1 < written["fits"]["observer-1"]["bits_fitted"] < 0
    assert Maps.load(here / "fitted/maps/observer-1/coffee.npz").segments == 2


def test_fit_of_the_variance_model_shows_the_papers_variances_beside_ours(data, here, capsys):
    code, out, err = vseg(f"models fit {data} --model variance --image coffee --out fitted", capsys)
    assert (code, err) == (0, "")
    assert "difference is ω₁ - ω₂, which the answers identify" in out
    assert "paper_variances is σ₁² - σ₂² fitted as in the paper" in out
    written = json.loads((here / "fitted/parameters.json").read_text())
    for fit in written["fits"].values():
        own = fit["parameters"]
        bounds = zip(own["difference_low"], own["difference"], own["difference_high"], strict=True)
        assert all(low < value < high for low, value, high in bounds)
        for start in ("energies", "ones"):
            assert len(own["paper_variances"][start]["variance_difference"]) == 36


def test_fit_of_a_model_without_maps(data, here, capsys):
    code, _, err = vseg(f"models fit {data} --model base_rate --per all --out fitted", capsys)
    assert (code, err) == (0, "")
    assert files(here / "fitted") == {"parameters.json", "calibration.png"}


def test_fit_that_fails_leaves_nothing(data, here, capsys):
    code, _, err = vseg(f"models fit {data} --model variance --segments 3 --out fitted", capsys)
    assert code == 1
    assert err.startswith(
        "vseg: variance could not be fitted to observer-1: The variance model has 2 segments"
    )
    assert not (here / "fitted").exists()


def test_scores_are_the_same_for_any_number_of_workers(data, here, capsys):
    command = f"models score {data} --models base_rate,logistic,mine.py --folds 3 --per image --out"
    assert vseg(f"{command} one", capsys)[0] == 0
    code, out, err = vseg(f"{command} two --workers 2", capsys)
    assert (code, err) == (0, "")
    assert "| base_rate |" in out
    assert files(here / "one") == files(here / "two") == SCORED
    for name in ("scores.json", "table.csv", "table.md"):
        assert (here / "one" / name).read_bytes() == (here / "two" / name).read_bytes()


def test_a_model_that_fails_is_reported_and_the_others_are_scored(data, here, capsys):
    code, out, err = vseg(
        f"models score {data} --models base_rate,mine.py:broken,nowhere.py,variance --segments 3 --per all",
        capsys,
    )
    assert code == 0
    assert "scores: 1 model scored" in out
    assert [line.split(" was not scored")[0] for line in sorted(err.splitlines())] == [
        f"vseg: warning: {name}" for name in ("mine.py:broken", "nowhere.py", "variance")
    ]
    assert files(here / "scores") == SCORED - {"maps.png"}  # no scored model predicts maps


@pytest.mark.chaos  # long
def test_a_users_network_is_scored(data, here, capsys):
    pytest.importorskip("torch", reason="networks need PyTorch")
    (here / "net.py").write_text(NETWORK)
    code, out, err = vseg(f"models score {data} --models net.py --features lab --per all --folds 2", capsys)
    assert (code, err) == (0, "")
    assert "| net.py |" in out
    assert files(here / "scores") == SCORED


def test_every_failure_is_one_line_and_the_others_are_scored(data, here, capsys):
    (here / "wrong.py").write_text(WRONG)
    own = ",".join(f"wrong.py:{name}" for name in REASONS)
    code, out, err = vseg(
        f"models score {data} --models mine.py,{own} --per all --folds 2 --memory 1500", capsys
    )
    assert code == 0
    assert "scores: 1 model scored" in out
    reasons = dict(
        line.removeprefix("vseg: warning: ").split(" was not scored: ") for line in err.splitlines()
    )
    assert set(reasons) == {f"wrong.py:{name}" for name in REASONS}
    for name, reason in REASONS.items():
        assert reason in reasons[f"wrong.py:{name}"]


def test_models_that_hang_are_ended_and_the_others_are_scored(data, here, capsys):
    (here / "wrong.py").write_text(WRONG)
    (here / "endless.py").write_text("while True:\n    pass\n")
    code, out, err = vseg(
        f"models score {data} --models chance,wrong.py:hangs,endless.py --per all --folds 2 --minutes 0.03",
        capsys,
    )
    assert code == 0
    assert "scores: 1 model scored" in out
    ended = "was not scored: It was ended after 1.8 s, its time limit; raise the limit if it needs longer."
    assert err.splitlines() == [f"vseg: warning: {name} {ended}" for name in ("wrong.py:hangs", "endless.py")]


def test_a_fit_that_hangs_is_ended(data, here, capsys):
    (here / "wrong.py").write_text(WRONG)
    code, _, err = vseg(
        f"models fit {data} --model wrong.py:hangs --per all --minutes 0.02 --out fitted", capsys
    )
    assert (code, err) == (
        1,
        "vseg: wrong.py:hangs could not be fitted to all: It was ended after 1.2 s, its time limit; raise the "
        "limit if it needs longer.\n",
    )
    assert not (here / "fitted").exists()


def test_without_torch_the_others_are_scored(data, here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # makes the import fail
    code, out, err = vseg(
        f"models score {data} --models base_rate,multilayer,convolutional --per all", capsys
    )
    assert code == 0
    assert "scores: 1 model scored" in out
    needs = 'was not scored: Fitting a network needs PyTorch: pip install "vseg[torch]".'
    assert sorted(err.splitlines()) == [
        f"vseg: warning: {name} {needs}" for name in ("convolutional", "multilayer")
    ]


def test_a_killed_run_is_resumed(data, here, capsys):
    """Killed in its third fit, it continues there, and has the same scores as a run that was not killed."""
    killing = "__import__('os').kill(__import__('os').getppid(), 9), __import__('os')._exit(1)"
    (here / "cut.py").write_text(INTERRUPTED.replace("raise KeyboardInterrupt", killing))
    command = f"models score {data} --models cut.py --folds 4 --per all --out"
    killed = subprocess.run([sys.executable, "-m", "vseg", *f"{command} scores".split()], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (here / "fits.txt").read_text() == "x" * 2
    (here / "go_on").touch()
    assert vseg(f"{command} scores", capsys)[0] == 0
    assert (here / "fits.txt").read_text() == "x" * 5  # four folds, and one fit to all answers
    assert vseg(f"{command} others", capsys)[0] == 0
    assert (here / "scores/scores.json").read_bytes() == (here / "others/scores.json").read_bytes()


def test_an_interrupted_run_is_resumed_and_a_finished_one_is_not_replaced(data, here, capsys):
    (here / "cut.py").write_text(INTERRUPTED)
    command = f"models score {data} --models cut.py --folds 4 --per all --out scores"
    assert vseg(command, capsys)[0] == 130
    assert files(here / "scores")
    assert not (here / "scores/table.md").exists()
    (here / "go_on").touch()
    assert vseg(command, capsys)[0] == 0
    # Two fits before and two after the interruption, and one to all answers for maps.
    assert (here / "fits.txt").read_text() == "x" * 5
    assert not (here / "scores/unfinished").exists()
    code, _, err = vseg(command, capsys)
    assert (code, err) == (
        1, "vseg: scores holds the results of an earlier run; choose another --out, or use --force to replace them.\n",
    )  # fmt: skip
    assert vseg(f"{command} --force", capsys)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--models nothing", "There is no model 'nothing'"),
        ("--models ,", "at least one model"),
        ("--models chance,chance", "Expected each model once, got chance, chance"),
        ("--models mine.py:broken", "No model could be scored; mine.py:broken"),
        ("--models chance --folds 1", "--folds: expected 2 or more, got"),
        ("--models chance --by images --per image", "cannot be held out by images"),
        ("--models chance --by colour", "--by: "),
        ("--models chance --image moon", "No responses with image 'moon'"),
        ("--models logistic --features taste", "There are no features 'taste'"),
    ],
)
def test_invalid_arguments_are_one_line(arguments, message, data, here, capsys):
    code, _, err = vseg(f"models score {data} {arguments} --out scores", capsys)
    assert code == 1
    assert message in err
    assert err.count("\n") == 1
    assert not (here / "scores").exists()


def test_a_missing_dataset_is_reported(here, capsys):
    for command in (
        "models score nowhere --models chance",
        "models fit nowhere --model chance",
        "bench run x --model y",
    ):
        code, _, err = vseg(command, capsys)
        assert code == 1
        assert err.startswith("vseg: There is no folder")


def test_results_are_not_mixed_with_other_files(data, here, capsys):
    (here / "scores").mkdir()
    (here / "scores/thesis.txt").touch()
    code, _, err = vseg(f"models score {data} --models chance --out scores", capsys)
    assert (code, "thesis.txt" in err) == (1, True)


def test_submissions_are_added_to_the_leaderboard_with_repeatable_scores(data, here, capsys):
    command = (
        f"bench run {data} --model mine.py --model mine.py:tilted --model mine.py:broken --leaderboard board"
    )
    code, out, err = vseg(command, capsys)
    assert code == 0
    assert "mine: -" in out
    assert "board: 2 on the leaderboard; see board/index.html." in out
    assert err.startswith(
        "vseg: warning: mine.py:broken was not scored: The model failed on image coffee: ValueError"
    )
    first = json.loads((here / "board/leaderboard.json").read_text())["entries"]
    assert vseg(command, capsys)[0] == 0
    again = json.loads((here / "board/leaderboard.json").read_text())["entries"]
    for entry in (*first, *again):
        entry.pop("seconds")
    assert again == first
    assert {entry["name"] for entry in first} == {"mine", "mine:tilted"}
    assert len({entry["dataset"] for entry in first}) == 1


def test_no_leaderboard_is_written_if_nothing_could_be_scored(data, here, capsys):
    code, _, err = vseg(f"bench run {data} --model mine.py:broken --leaderboard board", capsys)
    assert code == 1
    assert err.startswith("vseg: No model could be scored; mine.py:broken: The model failed on image coffee")
    assert not (here / "board").exists()


def test_a_sample_dataset_is_written(here, capsys):
    command = "bench dataset --samples --images coffee --grid 4 --segments 2 --out samples"
    code, out, _ = vseg(command, capsys)
    assert code == 0
    assert out.startswith("samples: 256 answers of 4 observers about 1 images on a 4x4 grid, 2 segments.")
    assert vseg(command, capsys)[0] == 1
    assert vseg(f"{command} --force", capsys)[0] == 0
    assert json.loads((here / "samples/software.json").read_text())["images"] == {"coffee": "coffee"}


@pytest.mark.parametrize("arguments", ["", "--samples --bsds ."])
def test_a_dataset_has_exactly_one_source(arguments, here, capsys):
    code, _, err = vseg(f"bench dataset {arguments} --out new", capsys)
    assert (code, err) == (
        1, "vseg: Expected either --bsds FOLDER or --samples.\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    "command", ["models", "models list", "models fit", "models score", "bench", "bench run", "bench dataset"]
)
def test_help_has_an_example(command, capsys):
    code, out, _ = vseg(f"{command} --help", capsys)
    assert code == 0
    assert "vseg" in out
