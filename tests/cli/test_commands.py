"""`vseg simulate`, `vseg fit` and `vseg evaluate` on real files."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from commands import SMALL, files, vseg
from vseg import Grid, Maps, Responses, __version__, load
from vseg._support.text import format_count
from vseg.cli import COMMANDS, PANELS
from vseg.data.responses import concatenate

SUMMARY = {
    "objective", "data_term", "penalty", "smoothness", "loss", "segments", "iterations", "converged",
    "message", "mean_entropy", "seconds", "seed", "version",
}  # fmt: skip


def table(path: str) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_simulate_fit_and_evaluate_from_the_shell(here):
    def shell(arguments: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-c", "from vseg.cli import main; main()", *arguments.split()],
            cwd=here, text=True, capture_output=True, encoding="utf-8", check=True,
        )  # fmt: skip
        assert done.stderr == ""  # no progress bar where there is no terminal
        return done

    shell("simulate --grid 8 --segments 2 --blocks 10 --entropy 0.2 --design covering --seed 0 --out sim/")
    assert files(here / "sim") == {"truth.npz", "responses.csv", "maps.png"}
    shell(
        "fit sim/responses.csv --grid 8 --segments 2 --smoothness auto --loss squared_error "
        "--solver coordinate_descent --kernel four --weights trials --by participant --seed 0 --out fit/"
    )
    own = {f"participants/P1/{name}" for name in ("maps.npz", "summary.json", "maps.png")}
    top = {"maps.npz", "summary.json", "maps.png", "smoothness.png", "participants.csv", "participants.png"}
    assert files(here / "fit") == top | own | {"durations.csv"}
    assert np.load(here / "fit/maps.npz")["probabilities"].shape == (8, 8, 2)
    assert set(json.loads((here / "fit/summary.json").read_text("utf-8"))) >= SUMMARY
    scores = json.loads(shell("evaluate fit/maps.npz --truth sim/truth.npz --json").stdout)
    assert scores["label_accuracy"] > 0.9
    lines = shell("evaluate fit/maps.npz --truth sim/truth.npz").stdout.splitlines()
    assert shell("evaluate fit --truth sim").stdout.splitlines() == lines
    assert [line.split()[0] for line in lines] == list(scores)
    assert all(line[34:36] == "  " and line[36] != " " and line[45] != " " for line in lines)  # columns
    assert "nats" in lines[-4]


def test_version_and_every_help_shows_an_example(capsys):
    assert vseg("--version", capsys) == (0, f"vseg {__version__}\n", "")
    for command in ("", *COMMANDS):
        code, out, _ = vseg(f"{command} --help", capsys)
        assert code == 0
        assert f"vseg {command}".strip() in out.split("Example")[1]


def test_participants_are_listed_with_their_folders(simulated, capsys):
    code, out, err = vseg(
        "fit sim/responses.csv --grid 6 --segments 2 --by participant --method penalised", capsys
    )
    assert (code, err) == (0, "")
    assert out.startswith("fit: 2 segments from 1296 trials on 72 pairs")
    rows = table("fit/participants.csv")
    assert [row["participant"] for row in rows] == ["P1", "P2", "P3"]
    assert {"folder", "trials", "pairs", "smoothness", "mean_entropy", "segments_won"} <= set(rows[0])
    whole = Maps.load("fit/maps.npz")
    for row in rows:
        own = Maps.load(Path("fit", row["folder"], "maps.npz"))
        summary = json.loads(Path("fit", row["folder"], "summary.json").read_text("utf-8"))
        assert summary["participant"] == row["participant"]
        assert float(row["mean_entropy"]) == pytest.approx(own.mean_entropy)
        assert np.mean(own.labels == whole.labels) > 0.7  # the same labels as the maps of all


def test_a_fit_is_reproducible(simulated, capsys):
    for out in ("one", "two"):
        vseg(f"fit sim/responses.csv --grid 6 --segments 2 --method penalised --seed 4 --out {out}", capsys)
    assert Maps.load("one/maps.npz") == Maps.load("two/maps.npz")


def test_more_participants_do_not_change_the_others_answers(simulated, capsys):
    vseg(f"simulate {SMALL} --participants 1 --out alone", capsys)
    alone, many = load("alone/responses.csv", Grid(6)), load("sim/responses.csv", Grid(6))
    assert np.array_equal(alone.same, many.select(participant="P1").same)


def test_fresh_pairs_differ_between_blocks_and_participants(here, capsys):
    vseg(
        "simulate --grid 8 --segments 2 --blocks 3 --participants 2 --fresh --lapse 0.1 --xi 3 --trials 64",
        capsys,
    )
    responses = load("sim/responses.csv", Grid(8))
    assert len(responses) == 2 * 3 * 64
    assert all(len(responses.select(participant=name).tally()) == 192 for name in ("P1", "P2"))
    assert len(responses.tally()) > 192


def test_segments_are_chosen_from_a_range(simulated, capsys):
    code, _, err = vseg("fit sim/responses.csv --grid 6 --segments 2..3 --method penalised --out fit", capsys)
    assert (code, err) == (0, "")
    summary = json.loads(Path("fit/summary.json").read_text("utf-8"))
    assert [row["segments"] for row in summary["segments_table"]] == [2, 3]
    assert summary["segments"] == summary["segments_by_likelihood"]
    assert summary["segments_by_empty_maps"] in (2, 3)
    pictures = {"maps.png", "smoothness.png", "segments.png"}
    assert files(Path("fit")) == {"maps.npz", "summary.json", "durations.csv", *pictures}


def test_a_range_at_a_given_smoothness(simulated, capsys):
    assert vseg("fit sim/responses.csv --grid 6 --segments 2..3 --smoothness 1", capsys)[0] == 0
    assert files(Path("fit")) == {"maps.npz", "summary.json", "durations.csv", "maps.png", "segments.png"}


def test_boundaries_are_drawn_over_a_picture(simulated, capsys):
    from PIL import Image

    Image.fromarray(np.full((40, 60, 3), 90, np.uint8)).save("photo.jpg")
    assert (
        vseg("fit sim/responses.csv --grid 6 --segments 2 --smoothness 1 --picture photo.jpg", capsys)[0] == 0
    )
    assert Path("fit/boundaries.png").read_bytes().startswith(b"\x89PNG")


def test_three_columns_are_enough_in_csv_and_parquet(simulated, capsys):
    responses = load("sim/responses.csv", Grid(6))
    lines = [
        f"{i},{j},{int(same)}" for i, j, same in zip(responses.i, responses.j, responses.same, strict=True)
    ]
    Path("bare.csv").write_text("\n".join(["i,j,same", *lines]))
    responses.save("same.parquet")
    for name in ("sim/responses.csv", "bare.csv", "same.parquet"):
        fit = f"fit {name} --grid 6 --segments 2 --method penalised --out {Path(name).stem}"
        assert vseg(fit, capsys)[0] == 0
    assert Maps.load("bare/maps.npz") == Maps.load("same/maps.npz") == Maps.load("responses/maps.npz")


@pytest.fixture
def two_images(simulated) -> None:
    one = load("sim/responses.csv", Grid(6))
    columns = {"participant": one.participant, "block": one.block}
    Responses(Grid(6), one.i, one.j, one.same, image="../a", **columns).save("a.csv")
    both = [Responses(Grid(6), one.i, one.j, one.same, image=name, **columns) for name in ("../a", "b")]
    concatenate(both).save("both.csv")


def test_each_image_is_fitted_separately(two_images, capsys):
    assert vseg("fit both.csv --grid 6 --segments 2 --by image --method penalised", capsys)[0] == 0
    assert "maps.npz" not in files(Path("fit"))
    rows = table("fit/images.csv")
    assert [(row["image"], row["folder"]) for row in rows] == [("../a", "images/a"), ("b", "images/b")]
    assert Maps.load("fit/images/a/maps.npz").segments == 2


def test_a_single_image_is_also_written_at_the_top(two_images, capsys):
    assert vseg("fit a.csv --grid 6 --segments 2 --by image --method penalised", capsys)[0] == 0
    assert Maps.load("fit/maps.npz") == Maps.load("fit/images/a/maps.npz")


def test_one_of_several_images_is_chosen(two_images, capsys):
    assert vseg("fit both.csv --grid 6 --segments 2 --image b --method penalised", capsys)[0] == 0


def test_several_images_need_a_choice(two_images, capsys):
    code, _, err = vseg("fit both.csv --grid 6 --segments 2", capsys)
    assert code == 1
    assert err == (
        "vseg: The responses are about 2 images (../a, b); "
        "choose one with --image NAME, or fit each image separately with --by image.\n"
    )


def test_a_fit_that_did_not_converge_is_written_with_a_warning(simulated, capsys):
    code, _, err = vseg(
        "fit sim/responses.csv --grid 6 --segments 2 --smoothness 1 --max-iterations 1", capsys
    )
    assert code == 0
    assert err.startswith(
        "vseg: warning: The fit of 2 segments did not converge and is kept as it is: Stopped at the largest number"
    )
    assert err.count("\n") == 1
    assert json.loads(Path("fit/summary.json").read_text("utf-8"))["converged"] is False


def test_too_few_pairs_give_a_warning(here, capsys):
    rows = [f"{i},{i + 1},{i % 2}" for i in range(0, 16, 2)]
    Path("few.csv").write_text("\n".join(["i,j,same", *rows]))
    code, _, err = vseg("fit few.csv --grid 4 --segments 3 --smoothness 1", capsys)
    assert code == 0
    assert err == (
        "vseg: warning: Only 8 distinct pairs were tested; 3 segments on a 4x4 grid need at least "
        "(K-1)N² = 32 with this estimator; the posterior has no minimum.\n"
    )


# ── participants and images that cannot be fitted ──


@pytest.fixture
def drop_out(simulated) -> None:
    """Three participants, and a fourth who left after five trials."""
    answers = load("sim/responses.csv", Grid(6))
    few = answers.select(participant="P1").take(range(5))
    left = Responses(Grid(6), few.i, few.j, few.same, participant="P4")
    concatenate([answers, left]).save("answers.csv")


def test_a_drop_out_is_named_and_skipped(drop_out, capsys):
    code, out, err = vseg("fit answers.csv --grid 6 --segments 2 --by participant --method penalised", capsys)
    assert code == 0
    assert out.splitlines()[0].endswith("3 of 4 participants fitted separately, in participants.csv.")
    assert err.startswith("vseg: warning: participant P4 is left out: Choosing the smoothness needs")
    assert err.count("\n") == 1
    *fitted, left = table("fit/participants.csv")
    assert [row["participant"] for row in fitted] == ["P1", "P2", "P3"]
    assert all(row["note"] == "" and float(row["mean_entropy"]) >= 0 for row in fitted)
    assert left.pop("participant") == "P4"
    assert left.pop("note").startswith("Choosing the smoothness needs")
    assert set(left.values()) == {""}
    assert sorted(os.listdir("fit/participants")) == ["P1", "P2", "P3"]


def test_a_warning_about_one_participant_names_them(drop_out, capsys):
    code, _, err = vseg("fit answers.csv --grid 6 --segments 2 --by participant --smoothness 1", capsys)
    assert code == 0
    untested, few = err.splitlines()
    assert untested.startswith(
        "vseg: warning: participant P4: 26 of the 36 locations of a 6x6 grid were never"
    )
    assert few.startswith("vseg: warning: participant P4: Only 5 distinct pairs were tested; ")
    assert " Only 5 distinct pairs were tested; " in table("fit/participants.csv")[3]["note"]


def test_warnings_of_one_kind_are_one_line(simulated, capsys):
    answers = load("sim/responses.csv", Grid(6))
    one = answers.select(participant="P1").take(range(5))
    two = answers.select(participant="P2").take(range(7))
    concatenate([one, two, answers.select(participant="P3")]).save("answers.csv")
    code, _, err = vseg("fit answers.csv --grid 6 --segments 2 --by participant --smoothness 1", capsys)
    assert code == 0
    untested, few = err.splitlines()
    assert untested.startswith("vseg: warning: 2 of 3 participants, for example P1: 26 of the 36 locations")
    assert few.startswith("vseg: warning: 2 of 3 participants, for example P1: Only 5 distinct pairs were")


def test_an_image_that_cannot_be_fitted_is_skipped(two_images, capsys):
    both = load("both.csv", Grid(6))
    concatenate([both.select(image="b"), both.select(image="../a").take(range(5))]).save("answers.csv")
    code, out, err = vseg("fit answers.csv --grid 6 --segments 2 --by image --method penalised", capsys)
    first, line = out.splitlines()
    assert (code, first) == (0, "fit: 1 of 2 images fitted separately, in images.csv.")
    assert line.startswith("b: 2 segments from 1296 trials")
    assert err.startswith("vseg: warning: image ../a is left out: ")
    assert [(row["image"], row["folder"]) for row in table("fit/images.csv")] == [
        ("../a", ""), ("b", "images/b"),
    ]  # fmt: skip


def test_it_is_an_error_if_no_participant_can_be_fitted(simulated, capsys):
    answers = load("sim/responses.csv", Grid(6)).select(participant="P1").take(range(72))
    names = [f"P{at // 4:02d}" for at in range(72)]
    Responses(Grid(6), answers.i, answers.j, answers.same, participant=names).save("answers.csv")
    code, out, err = vseg("fit answers.csv --grid 6 --segments 2 --by participant --method penalised", capsys)
    assert (code, out) == (1, "")
    assert err.startswith("vseg: No participant could be fitted; P00: Choosing the smoothness needs")
    assert err.count("\n") == 1
    assert not Path("fit").exists()


def test_one_participant_or_image_is_singular(simulated, capsys):
    answers = load("sim/responses.csv", Grid(6)).select(participant="P1")
    answers.save("one.csv")
    fit = "fit one.csv --grid 6 --segments 2 --smoothness 1 --force --by"
    first, second = vseg(f"{fit} participant", capsys)[1].splitlines()
    assert first.endswith(" 1 participant fitted separately, in participants.csv.")
    assert second.endswith(" (median of 1 participant).")
    first, *_ = vseg(f"{fit} image", capsys)[1].splitlines()
    assert first == "fit: 1 image fitted separately, in images.csv."
    assert [format_count(number, "pair") for number in (0, 1, 2)] == ["0 pairs", "1 pair", "2 pairs"]


# ── progress ──


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("command", "total"),
    [
        ("fit sim/responses.csv --grid 6 --segments 2 --method penalised", 55),
        ("fit sim/responses.csv --grid 6 --segments 2 --smoothness 1", 1),
        (
            "fit sim/responses.csv --grid 6 --segments 2..3 --by participant --method penalised",
            2 * 55 + 3 * 55,
        ),
        ("fit sim/responses.csv --grid 6 --segments 2..3 --by participant --smoothness 1", 2 * 6 + 3),
        ("fit both.csv --grid 6 --segments 2..3 --by image --method penalised", 2 * 2 * 55),
        ("fit answers.csv --grid 6 --segments 2 --by participant --method penalised", 5 * 55),
        ("fit answers.csv --grid 6 --segments 2 --by participant --budget 8", 2 + 4),
        (f"simulate {SMALL} --participants 3", 1 + 3 + 1),
        (f"simulate {SMALL} --participants 3 --fresh", 3 * 6 + 3 + 1),
    ],
)
def test_the_progress_bar_ends_at_its_total(two_images, drop_out, capsys, monkeypatch, command, total):
    """Read from the last bar drawn on a terminal that records everything."""
    for name, value in {"TERM": "xterm", "COLUMNS": "200", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert vseg(f"{command} --out new", capsys)[0] == 0
    last = re.findall(r"(\d+)/(\d+)", terminal.getvalue())[-1]
    assert last == (str(total), str(total))


@pytest.mark.parametrize("smoothness", ["auto", 1.0])
@pytest.mark.parametrize("counts", [[2], [2, 3]])
def test_the_total_of_the_bar_is_what_fits_report(simulated, smoothness, counts):
    from vseg import choose_segments, reconstruct
    from vseg.workflows.penalised_fits import PenalisedMethod

    answers, done = load("sim/responses.csv", Grid(6)), []
    settings = {"smoothness": smoothness, "seed": 0}
    if len(counts) > 1:
        choose_segments(answers, segments=counts, progress=done.append, **settings)
    else:
        reconstruct(answers, segments=counts[0], progress=done.append, **settings)
    assert sum(done) == PenalisedMethod(**settings).count_steps(counts)


# ── help and completion ──


def test_help_lists_every_command_once_by_panel(capsys):
    _, out, _ = vseg("--help", capsys)
    headings = re.findall(r"^(\w[\w ]*):$", out, re.MULTILINE)
    assert headings == ["Options", *PANELS]
    names = re.findall(r"^  ([a-z-]+)  ", out.split("Try:")[1], re.MULTILINE)
    assert names == list(COMMANDS)


def test_help_of_a_command_shows_its_options_by_panel(capsys):
    _, out, _ = vseg("fit --help", capsys)
    method, output = out.index("\nMethod posterior:\n"), out.index("\nOutput:\n")
    assert method < out.index("--draws") < output < out.index("--out FOLDER") < out.index("\nOptions:\n")


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("vseg ex", ["export"]),
        ("vseg import", ["import", "import-jspsych"]),
        ("vseg fit --max", ["--max-iterations"]),
        ("vseg fit --method p", ["penalised", "posterior"]),
        ("vseg models s", ["score"]),
    ],
)
def test_a_shell_completes_commands_options_and_values(words, completions, monkeypatch, capsys):
    """Set what the installed script for bash sets; arguments make no difference."""
    monkeypatch.setenv("_VSEG_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    for arguments in ("", "demo"):
        assert vseg(arguments, capsys) == (0, "".join(f"{name}\n" for name in completions), "")


def test_completion_is_installed_for_the_shell(here):
    """In a home folder of its own, from a bash that runs the command."""
    command = f"{sys.executable} -c 'from vseg.cli import main; main()' --install-completion; true"
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "HOME": str(here)},
        text=True,
        capture_output=True,
        check=True,
    )
    assert "bash completion installed" in done.stdout, done.stderr
    assert "_VSEG_COMPLETE=complete_bash" in (here / ".bash_completions/vseg.sh").read_text()


def test_help_is_written_for_people(capsys):
    """Summaries are not cut off; names and ranges are not those of Python."""
    groups = ["", *(name for name in COMMANDS if name in ("study", "models", "bench"))]
    pages = [vseg(f"{name} --help", capsys)[1] for name in groups]
    assert [line for page in pages for line in page.splitlines()[1:] if line.endswith("...")] == []
    for name in COMMANDS:
        _, page, _ = vseg(f"{name} --help", capsys)
        assert not re.search(r"x>=|<=x|\{|list\[|<path>|<str>", page), name
