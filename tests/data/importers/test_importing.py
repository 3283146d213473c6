"""Import files of other software as a dataset folder: all answers are kept, and nothing is added."""

import csv
import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, strategies as st

import vseg
from strategies import grids, some_responses
from vseg import Grid
from vseg.data import dataset, importers
from vseg.data.importers.mapping import EMPTY
from vseg.data.responses import COLUMNS, Responses
from vseg.errors import VsegError

WIDTH, HEIGHT = 640, 480


def jspsych(size: int = 4, *, subject: str = "ann", image: str = "img/Cat.png", count: int = 6) -> list[dict]:
    """Return a run as jsPsych 7 and 8 store it: other screens between the trials, answers as keys."""
    centres = Grid(size).pixels(WIDTH, HEIGHT)
    run: list[dict] = [
        {"trial_type": "html-keyboard-response", "stimulus": "<p>Hello</p>", "response": " ", "rt": 900}
    ]
    for number in range(count):
        first, second = centres[number], centres[-1 - number]
        run.append({"trial_type": "image-keyboard-response", "stimulus": image, "response": None, "rt": None})
        run.append(
            {
                "trial_type": "canvas-keyboard-response",
                "stimulus": image,
                "dots": [dict(zip("xy", point.tolist(), strict=True)) for point in (first, second)],
                "response": "f" if number % 2 else "j",
                "rt": 500.5 + number,
                "practice": number == 0,
            }
        )
    for index, trial in enumerate(run):
        trial |= {
            "trial_index": index,
            "time_elapsed": 1000 * index,
            "subject": subject,
            "plugin_version": "2.1.0",
        }
    return run


def import_files(folder: Path, files: dict[str, str], **options) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    imported = importers.import_trials([folder / name for name in files], **options)
    out = folder / "out"
    out.mkdir()
    importers.write_dataset(imported, out)
    return out


def read_csv_rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def make_jspsych_csv(run: list[dict]) -> str:
    """Return a run as jsPsych.data.get().csv() writes it."""
    columns = list(dict.fromkeys(name for trial in run for name in trial))

    def cell(value) -> str:
        if value is None or isinstance(value, list | dict | bool):
            value = json.dumps(value)
        return '"{}"'.format(str(value).replace('"', '""'))

    lines = [[trial.get(name, "") for name in columns] for trial in run]
    return "".join(",".join(map(cell, line)) + "\r\n" for line in [columns, *lines])


OPTIONS = {"columns": ["same=response:f"], "layout": Grid(4), "image_size": (WIDTH, HEIGHT)}


@pytest.mark.parametrize("write", [json.dumps, make_jspsych_csv])
def test_jspsych_as_json_and_as_csv(tmp_path, write):
    out = import_files(tmp_path, {"data.txt": write(jspsych())}, **OPTIONS)
    responses = vseg.load(out)
    assert responses.layout == Grid(4)
    assert responses.i.tolist() == [1, 2, 3, 4, 5]  # the first was practice
    assert responses.j.tolist() == [14, 13, 12, 11, 10]
    assert responses.same.tolist() == [True, False, True, False, True]
    assert responses.rt_ms.tolist() == [501.5, 502.5, 503.5, 504.5, 505.5]
    assert responses.trial.tolist() == [4, 6, 8, 10, 12]
    assert (responses.participants, responses.images) == (["ann"], ["cat"])


def test_the_folder_has_the_form_of_an_export(tmp_path):
    text = json.dumps([jspsych(subject="ann"), jspsych(subject="bo", image="img/dog.jpg")])
    out = import_files(tmp_path, {"data.json": text}, **OPTIONS)
    assert {path.name for path in out.iterdir()} == dataset.TOP_LEVEL_NAMES - {
        dataset.IDENTITIES,
        dataset.MARKERS,
    }
    assert dataset.is_export(out)
    description = json.loads((out / dataset.DESCRIPTION).read_text("utf-8"))
    tables = list((out / "data").iterdir())
    assert {path.name for path in tables} == {
        "study-imported_subject-ann_session-s001_data.csv",
        "study-imported_subject-bo_session-s002_data.csv",
        "study-imported_description-sessions_data.csv",
    }
    columns = {name for path in tables for name in path.read_text("utf-8").partition("\n")[0].split(",")}
    described = [variable["name"] for variable in description["variableMeasured"]]
    assert set(described) == columns  # Psych-DS: neither may have more than the other
    assert len(described) == len(columns)
    rows = read_csv_rows(out / "data/study-imported_subject-ann_session-s001_data.csv")
    assert rows[1] == {
        "participant": "ann", "session": "s001", "seq": "1", "item": "1", "image": "cat", "block": "0", "trial": "4",
        "i": "1", "j": "14", "x1": "240.0", "y1": "60.0", "x2": "400.0", "y2": "420.0", "practice": "0", "catch": "0",
        "same": "1", "used": "1", "rt_ms": "501.5", "key": "f", "source": "data.json, trial 5",
    }  # fmt: skip
    assert [row["used"] for row in rows] == ["0", "1", "1", "1", "1", "1"]
    study = dataset.Dataset(out).study
    assert ([image.name for image in study.images], study.segments, study.participants) == (
        ["cat", "dog"],
        "free",
        2,
    )


def test_the_origin_of_the_data_is_recorded(tmp_path):
    text = json.dumps(jspsych())
    out = import_files(tmp_path, {"data.json": text}, **OPTIONS)
    software = json.loads((out / dataset.SOFTWARE).read_text("utf-8"))
    assert software["imported_from"] == [
        {"name": "data.json", "sha256": hashlib.sha256(text.encode()).hexdigest(), "size_bytes": len(text)}
    ]
    assert software["columns"]["same"] == "response:f"
    assert software["columns"]["x1"] == "dots[0].x"
    assert software["left_out"] == {"without dots": 7}
    assert software["images"] == {"cat": "img/Cat.png"}


def test_csv_and_parquet_hold_the_same_responses(tmp_path):
    out = import_files(tmp_path, {"data.json": json.dumps(jspsych())}, **OPTIONS)
    whole = vseg.load(out)
    (out / dataset.PARQUET).unlink()
    assert all(np.array_equal(getattr(whole, name), getattr(vseg.load(out), name)) for name in COLUMNS)


def test_pictures_are_copied_and_give_the_image_size(tmp_path):
    from PIL import Image

    (tmp_path / "pictures").mkdir()
    Image.new("RGB", (WIDTH, HEIGHT), (200, 10, 10)).save(tmp_path / "pictures/Cat.jpg")
    options = OPTIONS | {"image_size": None, "images": tmp_path / "pictures"}
    out = import_files(tmp_path, {"data.json": json.dumps(jspsych())}, **options)
    with Image.open(dataset.Dataset(out).image_file("cat")) as picture:
        assert (picture.size, picture.format) == ((WIDTH, HEIGHT), "PNG")
    with pytest.raises(VsegError, match=r"has no picture for the image 'img/Dog.png'; found Cat.jpg\."):
        import_files(tmp_path, {"data.json": json.dumps(jspsych(image="img/Dog.png"))}, **options)


def test_participants_with_known_identities_are_renamed(tmp_path):
    """A Prolific ID is written to identities.csv only, and only on request."""
    pid = "5f0c9e1a2b3c4d5e6f708192"
    (tmp_path / "data.json").write_text(json.dumps(jspsych(subject=pid)))
    found = importers.import_trials([tmp_path / "data.json"], **OPTIONS)
    assert any(remark.startswith("Participants are renamed p001 to p001") for remark in found.remarks)
    for identities in (False, True):
        out = tmp_path / f"out-{identities}"
        out.mkdir()
        importers.write_dataset(found, out, identities=identities)
        holding = {
            path.name for path in out.rglob("*") if path.is_file() and pid.encode() in path.read_bytes()
        }
        assert holding == ({dataset.IDENTITIES} if identities else set())
        assert vseg.load(out).participants == ["p001"]


def test_prolific_session_ids_are_replaced(tmp_path):
    runs = [jspsych(), jspsych(), jspsych()]
    for run, session in zip(runs, ("first", "second", "5f0c9e1a2b3c4d5e6f708192"), strict=True):
        for trial in run:
            trial["session_id"] = session
    out = import_files(tmp_path, {"data.json": json.dumps(runs)}, **OPTIONS)
    (path,) = out.glob("data/*_description-sessions_data.csv")
    assert [row["session"] for row in read_csv_rows(path)] == ["first", "second", "s003"]


def test_without_names_each_run_is_a_participant(tmp_path):
    runs = [
        [{k: v for k, v in trial.items() if k != "subject"} for trial in jspsych(count=n)] for n in (4, 5, 6)
    ]
    out = import_files(tmp_path, {"results.txt": "\n".join(map(json.dumps, runs))}, **OPTIONS)
    assert vseg.load(out).participants == ["p001", "p002", "p003"]


def test_a_name_in_one_row_applies_to_its_run(tmp_path):
    runs = [jspsych(subject="ann"), jspsych(subject="bo")]
    for run in runs:
        for trial in run[3:]:
            del trial["subject"]
    out = import_files(tmp_path, {"data.json": json.dumps(runs)}, **OPTIONS)
    assert vseg.load(out).participants == ["ann", "bo"]


def test_the_name_of_a_run_must_be_short_too(tmp_path):
    """Otherwise the dataset could not be loaded."""
    run = jspsych(subject="a" * 300)
    for trial in run[1:]:
        del trial["subject"]
    with pytest.raises(VsegError, match=r"trial 1: subject is 'aaa.*a name of at most 200 characters"):
        import_files(tmp_path, {"data.json": json.dumps(run)}, **OPTIONS)


def test_an_image_may_have_a_long_address_in_html(tmp_path):
    shown = f'<img src="img/Cat.png?signed={"0" * 300}" width="400">'
    out = import_files(tmp_path, {"data.json": json.dumps(jspsych(image=shown))}, **OPTIONS)
    assert vseg.load(out).images == ["cat"]


def test_similar_names_get_different_files(tmp_path):
    text = json.dumps([jspsych(subject=name) for name in ("a-1", "a1", "A1", "../../etc", "...")])
    out = import_files(tmp_path, {"data.json": text}, **OPTIONS)
    assert len(dataset.Dataset(out).response_tables) == 5
    assert vseg.load(out).participants == sorted(["a-1", "a1", "A1", "../../etc", "..."])


def test_other_answers_are_skipped_if_both_answers_are_mapped(tmp_path):
    run = jspsych()
    run[-1]["response"] = "escape"
    (tmp_path / "data.json").write_text(json.dumps(run))
    columns = ["same=response:F", "different=response:j", "rt=rt:s"]
    found = importers.import_trials([tmp_path / "data.json"], **(OPTIONS | {"columns": columns}))
    assert found.skipped.reasons == {"without dots": 7, "with another answer": 1}
    assert str(found.skipped) == "8 rows skipped: 7 without dots, 1 with another answer."
    assert found.columns["rt_ms"][0] == 500_500


def test_only_some_rows(tmp_path):
    columns = ["same=response:f", "only=trial_index:4,6"]
    out = import_files(tmp_path, {"data.json": json.dumps(jspsych())}, **(OPTIONS | {"columns": columns}))
    assert len(vseg.load(out)) == 2


def test_guesses_are_reported(tmp_path):
    (tmp_path / "data.json").write_text(json.dumps(jspsych()))
    remarks = importers.import_trials([tmp_path / "data.json"], **OPTIONS).remarks
    assert remarks[:4] == [
        "Columns found by name: practice.",
        "Columns guessed: participant from subject, image from stimulus, trial from trial_index, x1 from dots[0].x, "
        "y1 from dots[0].y, x2 from dots[1].x, y2 from dots[1].y, rt_ms from rt.",
        "Answers read as same: f (3); as different: j (3).",
        "Images: cat is img/Cat.png.",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rt": "soon"}, "trial 3: rt is 'soon'; expected rt_ms, a number."),
        ({"rt": -1}, "trial 3: rt is -1; expected rt_ms, a time from 0 up."),
        ({"dots": [{"x": 1}, {"x": 2, "y": 3}]}, "trial 3: dots[0].y is empty; expected y1, a number."),
        ({"trial_index": 1.5}, "trial 3: trial_index is 1.5; expected trial, a whole number from 0 up."),
        ({"subject": {"a": 1}}, "trial 3: subject is {'a': 1}; expected participant, a name."),
        ({"subject": '<img src="a.png">' * 20}, "expected participant, a name of at most 200 characters"),
        ({"stimulus": "data:image/png;base64,AAAA"}, "expected image, a name, not the image itself"),
        ({"stimulus": '<img src="data:image/png;base64,AAAA">'}, "a name, not the image itself"),
    ],
)
def test_a_bad_value_is_named_with_its_row(tmp_path, change, message):
    run = jspsych()
    run[2] |= change
    with pytest.raises(VsegError) as error:
        import_files(tmp_path, {"data.json": json.dumps(run)}, **OPTIONS)
    assert str(error.value).startswith(f"{tmp_path / 'data.json'}, trial 3")
    assert message in str(error.value)


def write_pixels(responses: Responses, path: Path) -> None:
    """Write a table with pixels instead of locations."""
    centres = responses.layout.pixels(WIDTH, HEIGHT)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["participant", "image", "block", "trial", "x1", "y1", "x2", "y2", "same", "rt_ms"])
        for row in range(len(responses)):
            dots = [*centres[responses.i[row]], *centres[responses.j[row]]]
            rt = responses.rt_ms[row]
            about = (getattr(responses, name)[row] for name in COLUMNS[:4])
            writer.writerow([*about, *dots, int(responses.same[row]), "" if np.isnan(rt) else rt])


@given(responses=some_responses(layout=grids()))
def test_responses_come_back_through_pixels(responses):
    """Responses that are written as pixels, imported and loaded are unchanged."""
    names = {str(name).lower() for name in (*responses.participant, *responses.image)}
    assume(not names & (EMPTY - {""}))  # such names are read as empty cells
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_pixels(responses, folder / "trials.csv")
        found = importers.import_trials(
            [folder / "trials.csv"], columns=["participant=participant"], layout=responses.layout,
            image_size=(WIDTH, HEIGHT), units="px",
        )  # fmt: skip
        folder.joinpath("out").mkdir()
        importers.write_dataset(found, folder / "out")
        again = vseg.load(folder / "out")
    assert again.layout == responses.layout
    new_names = {old: new for new, old in found.identities.items()}
    expected = [
        (new_names.get(participant, participant), found.images[image], *rest)
        for participant, image, *rest in zip(
            *(getattr(responses, name).tolist() for name in COLUMNS), strict=True
        )
    ]
    loaded = zip(*(getattr(again, name).tolist() for name in COLUMNS), strict=True)
    assert sorted(map(repr, loaded)) == sorted(map(repr, expected))


def test_a_scatter_comes_back_through_pixels(tmp_path):
    truth = vseg.Scatter(np.random.default_rng(0).uniform(0.05, 0.95, (20, 2)))
    first, second = np.triu_indices(20, 1)
    responses = Responses(truth, first, second, first % 2)
    write_pixels(responses, tmp_path / "trials.csv")
    found = importers.import_trials([tmp_path / "trials.csv"], image_size=(WIDTH, HEIGHT))
    assert len(found.layout) == 20
    at = found.layout.positions
    assert np.allclose(at[found.columns["i"]], truth.positions[first])
    assert np.allclose(at[found.columns["j"]], truth.positions[second])


SOME_KEYS = st.sampled_from(["x", "y", "trials", "data", "dots", "same"]) | st.text(max_size=4)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["f", "j", "null"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SOME_KEYS, inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(
    ["subject", "participant", "stimulus", "x1", "y1", "x2", "y2", "i", "j", "dots", "same", "rt", "block",
     "trial_index", "practice", "catch", "image_width", "image_height", "session"]
)  # fmt: skip
ODD_ROWS = st.lists(
    st.dictionaries(KEYS, VALUES | st.floats(0, 1) | st.integers(0, 8), max_size=19), max_size=4
)
WHOLE_ROWS = st.lists(
    st.fixed_dictionaries(
        {"i": st.integers(-1, 9), "j": st.integers(0, 9), "same": st.booleans()},
        optional={
            "subject": st.text(max_size=9),
            "image": VALUES,
            "rt": VALUES,
            "session": st.text(max_size=3),
        },
    ),
    max_size=6,
)


@given(document=VALUES | ODD_ROWS | WHOLE_ROWS, with_grid=st.booleans())
@example(document=[{"i": 0, "j": 1, "same": 1, "subject": "\ud800", "image": "\x00/..\n"}], with_grid=True)
@example(document=[{"i": 0, "j": 1, "same": 1, "rt": 10**400}], with_grid=True)
def test_any_json_is_imported_or_raises_a_vseg_error(document, with_grid):
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        folder.joinpath("data.json").write_text(json.dumps(document), encoding="utf-8")
        try:
            found = importers.import_trials([folder / "data.json"], layout=Grid(3) if with_grid else None)
            folder.joinpath("out").mkdir()
            importers.write_dataset(found, folder / "out")
        except VsegError as error:
            assert str(error).endswith((".", "?"))  # noqa: PT017
            return
        assert len(vseg.load(folder / "out")) == sum(found.columns["used"]) or not any(found.columns["used"])


@given(text=st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(',;"\n\r\t[]{}'), max_size=60))
def test_any_text_raises_a_vseg_error(text):
    with tempfile.TemporaryDirectory() as temporary:
        Path(temporary, "data.csv").write_text(text, encoding="utf-8", newline="")
        with pytest.raises(VsegError):
            importers.import_trials([Path(temporary, "data.csv")])
