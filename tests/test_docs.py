"""What the README and docs/ show is run: each block of Python, each line of shell that calls vseg."""

import csv
import json
import re
import shlex
import tomllib
import zipfile
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import vseg
from reproduction import __main__ as reproduction
from servers import run_server_process
from vseg import bots
from vseg.cli import main, run_app

ROOT = Path(__file__).parent.parent


def blocks(document, language):
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def answers():
    """Answers of three participants about one image, as a lab would have them."""
    grid = vseg.Grid(16)
    pairs = vseg.designs.scattered(grid, segments=3, seed=0)
    truth = vseg.stimuli.random_maps(grid, segments=2, entropy=0.1, seed=0)
    return vseg.data.responses.concatenate(
        [
            vseg.simulate(truth, pairs, blocks=3, seed=number, participant=f"boat-{number}", image="boat")
            for number in range(3)
        ]
    )


def simulate_as_shown(document):
    """Run the commands of a page that simulate the answers of its examples."""
    for block in blocks(document, "sh"):
        for line in block.splitlines():
            if line.startswith("vseg simulate "):
                with pytest.raises(SystemExit) as left:
                    main(shlex.split(line, comments=True)[1:])
                assert left.value.code == 0, line


def answers_from_elsewhere():
    """The same answers as jsPsych, JATOS and a spreadsheet would have them, and the picture."""
    from PIL import Image

    found = answers()
    at = found.layout.pixels(512, 512).tolist()
    trials = [
        {"subject": who, "stimulus": f"{image}.png", "dots": [at[i], at[j]], "response": "f" if same else "j"}
        for who, image, i, j, same in zip(
            found.participant.tolist(), found.image.tolist(), found.i, found.j, found.same, strict=True
        )
    ]
    Path("data.json").write_text(json.dumps(trials))
    with zipfile.ZipFile("jatos_results.jrzip", "w") as archive:
        archive.writestr("study_result_1/comp-result_1/data.txt", json.dumps(trials))
    with open("trials.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["participant", "image", "x1", "y1", "x2", "y2", "same"])
        for one in trials:
            table.writerow(
                [one["subject"], one["stimulus"], *one["dots"][0], *one["dots"][1], one["response"] == "f"]
            )
    Path("pictures").mkdir()
    Image.fromarray(np.zeros((512, 512, 3), np.uint8)).save("pictures/boat.png")


def small_dataset():
    """What `vseg bench dataset --samples` makes, but smaller."""
    from vseg.evaluation import datasets

    Path("samples").mkdir()
    datasets.write_sample_dataset(Path("samples"), observers=3, blocks=1, grid=8)


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "docs/analysing.md",
        "docs/designing.md",
        "docs/importing.md",
        "docs/modelling.md",
        "docs/paper.md",
        "docs/simulating.md",
    ],
)
def test_python_runs(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    simulate_as_shown(document)
    if document == "docs/importing.md":
        answers_from_elsewhere()
    if document == "docs/modelling.md":
        small_dataset()
    names = {}
    shown = blocks(document, "python")
    assert shown
    for block in shown:
        exec(compile(block, document, "exec"), names)


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "docs/analysing.md",
        "docs/collecting.md",
        "docs/designing.md",
        "docs/importing.md",
        "docs/modelling.md",
        "docs/paper.md",
    ],
)
def test_vseg_commands_run(document, tmp_path, monkeypatch):
    """In the order of the page. Behind `vseg serve`, which stays, two people take part before the next line."""
    monkeypatch.chdir(tmp_path)
    if document == "docs/importing.md":
        answers_from_elsewhere()
    if document == "docs/modelling.md":
        Path("my_model.py").write_text(blocks(document, "python")[0])
    commands = [
        line
        for block in blocks(document, "sh")
        for line in block.splitlines()
        if line.startswith(("vseg ", "python -m reproduction "))
    ]
    assert commands
    with ExitStack() as servers:
        link = ""
        for command in commands:
            _, name, *arguments = shlex.split(command, comments=True)
            if name == "-m":
                with pytest.raises(SystemExit) as left:
                    run_app(reproduction.app, arguments[1:], program="python -m reproduction")
                assert left.value.code == 0, command
                continue
            if name == "plan":
                continue  # takes half a minute; tests/cli/test_plan.py runs smaller ones
            if name == "serve":
                link = servers.enter_context(run_server_process(*arguments)).link("participants")
                bots.run_bots(link, count=2, seed=0)
                continue
            if name == "simulate-participants":
                arguments[0] = link  # the page's address has the default port, which may be taken here
            with pytest.raises(SystemExit) as left:
                main([name, *arguments])
            assert left.value.code == 0, command


def test_the_coverage_that_is_quoted_is_printed():
    """docs/designing.md quotes the sentence of its own example."""
    pairs = vseg.designs.scattered(vseg.Grid(16), segments=3, seed=0)
    quoted = re.sub(r"\n?> ", " ", (ROOT / "docs/designing.md").read_text(encoding="utf-8"))
    assert str(vseg.designs.coverage(pairs, segments=3)) in quoted


def test_the_first_example_of_analysing_finds_the_truth_as_the_page_says(tmp_path, monkeypatch):
    """With lapses estimated, the interval has the quoted ends and contains the truth; without, it misses it."""
    monkeypatch.chdir(tmp_path)
    simulate_as_shown("docs/analysing.md")
    text = " ".join((ROOT / "docs/analysing.md").read_text("utf-8").split())
    quoted = re.search(r"the 90 % interval (0\.\d+) to (0\.\d+), in which the true (0\.\d+) lies", text)
    missing = re.search(r"the interval, (0\.\d+) to (0\.\d+), would miss the truth", text)
    low = vseg.load("low/responses.csv", vseg.Grid(11))
    truth = vseg.Maps.load("low/truth.npz").mean_entropy
    assert truth == pytest.approx(float(quoted[3]))
    for lapses, ends in (("estimate", quoted), (None, missing)):
        interval = vseg.posterior(low, segments=2, lapses=lapses, seed=0).entropy_interval
        # Other processors round differently, which changes the draws; over eight seeds the ends vary by 0.002 (s.d.).
        assert interval == pytest.approx((float(ends[1]), float(ends[2])), abs=0.006)
        assert (interval[0] < truth < interval[1]) == (lapses == "estimate")


def test_the_error_of_a_study_file_that_is_quoted_is_printed(tmp_path, monkeypatch, capsys):
    """docs/collecting.md quotes the message about a wrong cue_ms, with its line in a new study file."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["study", "new", "my-study"])
    study = Path("my-study.toml")
    study.write_text(study.read_text().replace("cue_ms = 300", 'cue_ms = "x"'))
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["study", "check", "my-study.toml"])
    message = capsys.readouterr().err.removeprefix("vseg: ").strip()
    assert f"> {message}\n" in (ROOT / "docs/collecting.md").read_text(encoding="utf-8")


def test_links_lead_somewhere():
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_constraints_pin_everything_that_is_required():
    """Also what builds the package, which is installed beside the rest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"], *chain(*extras)]
    names = {re.match(r"[\w.-]+", line)[0] for line in wanted}
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert {_normalise(name) for name in names} - {_normalise(name) for name in pinned} == {"vseg"}


def _normalise(name):
    return re.sub(r"[-_.]+", "-", name).lower()
