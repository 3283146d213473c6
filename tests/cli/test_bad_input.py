"""Whatever is wrong is said in one sentence, with exit code 1, no traceback, and nothing written."""

import os
from pathlib import Path

import numpy as np
import pytest

import vseg
from vseg import Grid, Maps
from vseg.cli import main
from vseg.cli.option_names import OPTIONS_IN_MESSAGES
from vseg.workflows.fit_dataset import SETTINGS_BY_METHOD, list_settings

PACKAGE = Path(vseg.__file__).parent
FIT = "fit responses.csv --grid 4 --segments 2"
SEGMENTS = "--segments: expected a whole number such as 3 or a range such as 2..7, got "


def failure(arguments: str, capsys) -> str:
    before = sorted(os.listdir())
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (1, "")
    assert err.startswith("vseg: ")
    assert err.count("\n") == 1
    assert sorted(os.listdir()) == before
    return err.removeprefix("vseg: ").rstrip("\n")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    pairs = [(i, j) for i in range(16) for j in range(i)]
    rows = [f"{i},{j},{int(i // 8 == j // 8)}" for i, j in pairs]
    Path("responses.csv").write_text("\n".join(["i,j,same", *rows]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i,j\n0,1\n", "bad.csv has no column 'same'; expected i, j, same, found i, j."),
        (
            "i,j,same\n0,1,maybe\n",
            "bad.csv, line 2: column same is 'maybe'; expected 0 or 1 (false or true).",
        ),
        ("i,j,same\n0,1,2\n", "bad.csv, line 2: column same is '2'; expected 0 or 1 (false or true)."),
        ("i,j,same\n0,nan,1\n", "bad.csv, line 2: column j is 'nan'; expected a whole number from 0 up."),
        ("i,j,same\n0,1,nan\n", "bad.csv, line 2: column same is 'nan'; expected 0 or 1 (false or true)."),
        (
            "i,j,same\n0,16,1\n",
            "bad.csv, line 2: location 16 is outside a 4x4 grid, whose locations are 0..15; give the "
            "--grid that was used (locations count from 0).",
        ),
        ("", "bad.csv is empty; expected a header with the columns i, j, same."),
        ("i,j,same\n", "bad.csv holds no responses; expected one row per trial."),
    ],
)
def test_files_of_responses(text, message, capsys):
    Path("bad.csv").write_text(text)
    assert failure("fit bad.csv --grid 4 --segments 2", capsys) == message


def test_a_location_paired_with_itself(capsys):
    Path("bad.csv").write_text("i,j,same\n0,1,1\n5,5,1\n")
    message = failure("fit bad.csv --grid 4 --segments 2", capsys)
    assert message.startswith("bad.csv, line 3: i and j are both location 5")


def test_no_file(capsys):
    assert failure("fit none.csv --grid 4 --segments 2", capsys) == (
        "No file or folder none.csv; expected a CSV or Parquet file with the columns i, j, same, "
        "or a folder written by vseg export."
    )


def test_not_a_parquet_file(capsys):
    Path("bad.parquet").write_text("i,j,same\n")
    assert "cannot be read as a Parquet file" in failure("fit bad.parquet --grid 4 --segments 2", capsys)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--segments 1", "--segments: expected 2 or more segments, got '1'."),
        ("--segments x", f"{SEGMENTS}'x'."),
        ("--segments 2..", f"{SEGMENTS}'2..'."),
        ("--segments 2..3..4", f"{SEGMENTS}'2..3..4'."),
        ("--segments -3", f"{SEGMENTS}'-3'."),
        ("--segments 7..2", "--segments: expected the smaller number first, as in 2..7, got '7..2'."),
        ("--grid 2", "--grid: expected 3 or more, got '2'."),
        ("--grid 4.5", "--grid: expected a whole number, got '4.5'."),
        ("--smoothness -1", "--smoothness: expected 'auto' or a number of 0 or more, got '-1'."),
        ("--smoothness nan", "--smoothness: expected 'auto' or a number of 0 or more, got 'nan'."),
        ("--smoothness much", "--smoothness: expected 'auto' or a number of 0 or more, got 'much'."),
        (
            "--segments 2..3 --segments-by participant",
            "K is chosen for each participant only with --by participant.",
        ),
        (
            "--by participant --segments-by participant",
            "The number of segments is 2, so there is none to choose for each participant; give --segments several, or "
            "auto.",
        ),
        ("--grid 101", "The posterior takes up to 10000 locations, got 10201; use --method penalised."),
        ("--seed -1", "--seed: expected 0 or more, got '-1'."),
        ("--max-iterations 0", "--max-iterations: expected 1 or more, got '0'."),
        ("--epsilon -1", "--epsilon: expected 0 or more, got '-1'."),
        ("--learning-rate 0.1", "The solver coordinate_descent has no option 'learning_rate'; it has starts"),
        (
            "--solver exponentiated_gradient --smoothness 1 --learning-rate 0",
            "The learning rate is a positive number, got 0.0.",
        ),
        ("--loss x", "--loss: 'x' is not one of 'squared_error', 'cross_entropy'."),
        ("--solver x", "--solver: 'x' is not one of 'coordinate_descent', 'exponentiated_gradient'."),
        ("--kernel x", "--kernel: unknown kernel 'x'; choose four, eight, gaussian:WIDTH or auto."),
        ("--kernel five", "--kernel: unknown kernel 'five'; choose four, eight, gaussian:WIDTH or auto."),
        (
            "--kernel auto --smoothness 1",
            "The kernel is chosen together with λ, whose scale depends on it; with --kernel auto leave --smoothness "
            "auto, got 1.0.",
        ),
        ("--kernel gaussian:", "--kernel: unknown kernel 'gaussian:'; choose four, eight"),
        ("--kernel gaussian:nan", "--kernel: unknown kernel 'gaussian:nan'; choose four, eight"),
        ("--kernel gaussian:inf", "--kernel: unknown kernel 'gaussian:inf'; choose four, eight"),
        ("--kernel gaussian:-1", "--kernel: unknown kernel 'gaussian:-1'; choose four, eight"),
        ("--kernel gaussian:1e300", "--kernel: unknown kernel 'gaussian:1e300'; choose four, eight"),
        ("--weights x", "--weights: 'x' is not one of 'trials', 'pairs'."),
        ("--by x", "--by: 'x' is not one of 'all', 'participant', 'image'."),
        ("--image x", "No responses with image 'x'; there are: 'image'."),
        ("--picture x.png", "No image at x.png; expected a file such as a PNG or JPEG."),
        ("--picture responses.csv", "responses.csv cannot be read as an image"),
        ("--out /", "--out: expected the name of a new folder, got '/'."),
    ],
)
def test_options_of_fit(option, message, capsys):
    """The last of two equal options counts, so FIT can be given first."""
    assert failure(f"{FIT} {option}", capsys).startswith(message)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--segments 1", "--segments: expected 2 or more, got '1'."),
        ("--grid 2", "--grid: expected 3 or more, got '2'."),
        ("--blocks 0", "--blocks: expected 1 or more, got '0'."),
        ("--blocks many", "--blocks: expected a whole number, got 'many'."),
        ("--entropy -0.1", "--entropy: expected 0 or more, got '-0.1'."),
        ("--entropy nan", "--entropy: expected 0 or more, got 'nan'."),
        (
            "--entropy 2",
            "--entropy: expected a mean entropy of 3 segments from 0 to below log 3 = 1.099 nats, got 2.",
        ),
        (
            "--design x",
            "--design: 'x' is not one of 'covering', 'balanced', 'scattered', 'all', 'oracle', 'two_stage'.",
        ),
        ("--participants 0", "--participants: expected 1 or more, got '0'."),
        ("--lapse 2", "--lapse: expected 1 or less, got '2'."),
        ("--trials 3", "Expected 128 trials (every location once) to"),
        ("--trials no", "--trials: expected a whole number, got 'no'."),
        ("--xi 0", "--xi: expected a size from 0.001 to 1e+06 cells on a 16x16 grid, got 0.0."),
        ("--seed x", "--seed: expected a whole number, got 'x'."),
    ],
)
def test_options_of_simulate(option, message, capsys):
    assert failure(f"simulate {option}", capsys).startswith(message)


def test_too_few_pairs_to_choose_the_smoothness(capsys):
    Path("few.csv").write_text("i,j,same\n0,1,1\n")
    with pytest.raises(SystemExit):
        main(["fit", "few.csv", "--grid", "4", "--segments", "2", "--method", "penalised"])
    untested, few, error = capsys.readouterr().err.splitlines()
    assert untested.startswith("vseg: warning: 14 of the 16 locations of a 4x4 grid were never tested")
    assert few.startswith("vseg: warning: Only 1 distinct pair was tested")
    assert error.startswith("vseg: Choosing the smoothness needs at least 10 distinct pairs, got 1; ")
    assert sorted(os.listdir()) == ["few.csv", "responses.csv"]


def test_maps_that_are_not_there_or_not_maps(capsys):
    Path("text.npz").write_text("hello")
    np.savez("other.npz", p=np.ones(3))
    Maps(Grid(4), np.full((16, 2), 0.5)).save("maps.npz")
    for name, message in (
        ("none.npz", "No maps at none.npz; expected an .npz file written by vseg."),
        ("text.npz", "text.npz is not an .npz file of maps"),
        ("other.npz", "other.npz has no array 'probabilities'; expected maps written by vseg."),
    ):
        assert failure(f"evaluate {name} --truth maps.npz", capsys).startswith(message)
        assert failure(f"evaluate maps.npz --truth {name}", capsys).startswith(message)


def test_a_truth_of_another_size(capsys):
    for size in (4, 5):
        Maps(Grid(size), np.full((size**2, 2), 0.5)).save(f"{size}.npz")
    assert failure("evaluate 4.npz --truth 5.npz", capsys) == (
        "4.npz lies on a 4x4 grid, but 5.npz on a 5x5 grid; give the truth of the same size."
    )


def test_names_in_messages_cannot_break_the_line_or_steer_the_terminal(capsys):
    Path("bad.csv").write_text('i,j,same,image\n0,1,1,"a\nb"\n0,1,1,\x1b[31mred\n')
    message = failure("fit bad.csv --grid 4 --segments 2", capsys)
    assert "\x1b" not in message


@pytest.fixture
def bug(monkeypatch) -> None:
    def faulty(*_):
        raise RuntimeError("lost\ncount.")

    monkeypatch.setattr("vseg.workflows.data_source.load", faulty)


def test_a_bug_of_ours_is_one_line(bug, capsys, monkeypatch):
    monkeypatch.delenv("VSEG_DEBUG", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(FIT.split())
    assert (ended.value.code, *capsys.readouterr()) == (
        70,
        "",
        "vseg: unexpected error: RuntimeError: lost count; "
        "run with VSEG_DEBUG=1 for the traceback and report it.\n",
    )
    assert os.listdir() == ["responses.csv"]


def test_a_bug_of_ours_with_its_traceback(bug, capsys, monkeypatch):
    monkeypatch.setenv("VSEG_DEBUG", "1")
    with pytest.raises(SystemExit) as ended:
        main(FIT.split())
    err = capsys.readouterr().err
    assert ended.value.code == 70
    assert err.startswith("Traceback (most recent call last):")
    assert "in faulty" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fit", "Missing argument 'RESPONSES'. See vseg fit --help."),
        ("fit --colour red", "No such option: --colour"),
        ("paint", "No such command 'paint'. Did you mean 'plan'? See vseg --help."),
        ("evaluate maps.npz", "Missing option '--truth'. See vseg evaluate --help."),
        ("fit responses.csv", "--grid is missing: a table of responses needs it, for example --grid 16; "),
        ("fit responses.csv --grid 4", "--segments is missing: a table of responses needs it, for example"),
    ],
)
def test_missing_and_unknown_options_exit_with_1_like_bad_values(arguments, message, capsys):
    assert failure(arguments, capsys).startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            f"{FIT} --method penalised --draws 20",
            "--draws (posterior) cannot be used with the method penalised; leave it out, or use --method posterior.",
        ),
        (
            f"{FIT} --method posterior --loss cross_entropy --kernel four",
            "--loss (penalised), --kernel (penalised) cannot be used with the method posterior; leave them out, or use "
            "--method penalised.",
        ),
        (
            f"{FIT} --prior group",
            "The group prior of a participant is made from the others' answers; add --by participant to use it.",
        ),
        (
            f"{FIT} --prior image",
            "The image prior needs the image, and the data set has none; give its file with --picture.",
        ),
        (
            "fit responses.csv --grid 3 --segments 2",
            "responses.csv, line 38: location 9 is outside a 3x3 grid, whose locations are 0..8; give the --grid that "
            "was used (locations count from 0).",
        ),
        (
            "plan --trials 10",
            "--trials: a participant on an 11x11 grid answers 61 trials (every location once)",
        ),
        ("plan --participants 1", "--participants: a condition has 2 to 1000 participants, got 1."),
        (
            "plan --methods best",
            "--methods: unknown method 'best'; choose some of paper, posterior, adaptive.",
        ),
        ("plan --against 0.9", "--entropy, --against: the mean entropy of 2 segments lies from 0 to below"),
        ("plan study.toml --grid 8", "study.toml determines --grid; leave out --grid, or the study file."),
        (
            "import responses.csv --out imported",
            "The trials give locations by number, so --grid or --points is needed.",
        ),
        (
            "study texts my-study.toml",
            "Expected a language (en, fr, de), got 'my-study.toml'; this command prints the default texts, which a "
            "study file can change in its table [texts].",
        ),
    ],
)
def test_errors_name_the_options_of_the_command(arguments, message, capsys):
    assert failure(arguments, capsys).startswith(message)


def test_dots_in_pixels_need_an_option(capsys):
    Path("dots.csv").write_text("x1,y1,x2,y2,same\n10,20,30,40,1\n")
    assert failure("import dots.csv --grid 4 --out imported", capsys).endswith(
        "; give --image-size WxH or --images FOLDER, or --map image_width=COLUMN and --map image_height=COLUMN."
    )
    assert failure("import dots.csv --grid 4 --image-size 500x500 --out imported", capsys).endswith(
        " Give the --grid or --points that was used and the right --image-size, or leave out --grid and --points to "
        "take the dots' positions as the locations."
    )


def test_the_library_still_says_what_is_replaced_by_options():
    """A text that was rewritten in the library is no longer replaced."""
    source = "\n".join(
        path.read_text() for path in PACKAGE.rglob("*.py") if PACKAGE / "cli" not in path.parents
    )
    source += "".join(list_settings(names, method) for method, names in SETTINGS_BY_METHOD.items())
    for command, replacements in OPTIONS_IN_MESSAGES.items():
        assert [words for words in replacements if words not in source] == [], command


@pytest.mark.parametrize("command", ["serve", "lab", "plan", "study check"])
def test_a_study_name_in_place_of_its_file(command, capsys):
    Path("my-study.toml").write_text("")
    assert failure(f"{command} my-study", capsys) == "No study file my-study; did you mean my-study.toml?"
