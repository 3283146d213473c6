"""Exports: all answers, every column described, nothing from withdrawn sessions, and loading them again."""

import csv
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import vseg
from adaptive_participants import STOPPING_STUDY, begin_adaptive_session
from servers import run_server
from stored_sessions import answer_all, begin_session, complete_session, event, register_study, response
from vseg import export, store
from vseg.data import dataset
from vseg.data.columns import CONTOURS, EVENTS, RESPONSES, SESSIONS, Column
from vseg.data.contours import load_contours
from vseg.data.table_writing import FORMULA_STARTS, escape_formula, write_csv
from vseg.errors import InvalidInput, NotFound, VsegWarning
from vseg.study.trials import Trials

# The rule for names of tables in Psych-DS 1.5, files/tabular_data.
DATA_FILE = re.compile(r"([a-z]+-[a-zA-Z0-9]+)(_[a-z]+-[a-zA-Z0-9]+)*_data\.csv")


@pytest.fixture
def db(database_url):
    with store.open(database_url) as opened:
        yield opened


def export_study(db, study, folder: Path, **options) -> Path:
    folder.mkdir()
    export.write_dataset(db, study, folder, **options)
    return folder


def read_csv(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_sessions(folder: Path) -> list[dict[str, str]]:
    (path,) = folder.glob("data/*_description-sessions_data.csv")
    return read_csv(path)


def read_responses(folder: Path) -> list[dict[str, str]]:
    return [row for path in dataset.Dataset(folder).response_tables for row in read_csv(path)]


def with_known_answers(trials: Trials) -> Trials:
    """Return the trials with a practice trial first and a catch trial second, both with the answer 'same'."""
    rest = len(trials) - 2
    return replace(
        trials,
        practice=[True, False] + [False] * rest,
        catch=[False, True] + [False] * rest,
        answer=[True, True] + [None] * rest,
    )


def test_export_is_complete_and_described(db, tmp_path):
    study = register_study(db, "ab", name="two-images")
    for _ in range(3):
        complete_session(db, begin_session(db, study))
    folder = export_study(db, study, tmp_path / "out")
    assert {path.name for path in folder.iterdir()} == dataset.TOP_LEVEL_NAMES - {
        dataset.IDENTITIES,
        dataset.MARKERS,
    }
    assert (folder / "study/study.toml").read_text("utf-8") == study.text
    assert {path.name for path in (folder / "study/images").iterdir()} == {"a.png", "b.png"}
    assert len(list((folder / "study/trials").iterdir())) == 3
    description = json.loads((folder / dataset.DESCRIPTION).read_text("utf-8"))
    assert description["@type"] == "Dataset"
    assert {"name", "description", "variableMeasured"} <= set(description)
    described = [variable["name"] for variable in description["variableMeasured"]]
    tables = list((folder / "data").iterdir())
    columns = {name for path in tables for name in path.read_text("utf-8").partition("\n")[0].split(",")}
    assert set(described) == columns  # Psych-DS requires both to be the same
    assert len(described) == len(columns)
    assert all(DATA_FILE.fullmatch(path.name) for path in tables)
    stored = {column.name for column in store.schema.responses.c}
    assert stored < {variable.name for variable in RESPONSES}


def test_drawn_contours_are_exported_described_and_loaded(db, tmp_path):
    """The last drawing of each image of a session counts; what is no drawing, or of no image of the study, does not."""
    study = register_study(db, "ab", name="drawn", more="contours = {draw = true}")
    one, other = begin_session(db, study), begin_session(db, study)
    size = {"width_px": 12, "height_px": 12}
    first, last = [[[0, 6], [12, 6]]], [[[0, 5], [6, 5], [12, 5.5]], [[1, 1], [2, 3]]]
    records = [
        event(0, "contours", image="a", contours=first, **size), event(1, "contours", image="a", contours=last, **size),
        event(2, "contours", image="b", contours=first, **size), event(3, "contours", image="b", contours=[], **size),
        event(4, "contours", image="=1", contours=first, **size), event(5, "contours", image="a", contours="x", **size),
    ]  # fmt: skip
    store.responses.append(db, one.session.id, [], records).result()
    store.responses.append(
        db, other.session.id, [], [event(0, "contours", image="a", contours=[], **size)]
    ).result()
    folder = export_study(db, study, tmp_path / "out")
    drawings = {drawing.image: drawing for drawing in load_contours(folder)}
    assert {name: [line.tolist() for line in drawing.lines] for name, drawing in drawings.items()} == {
        "a": last,
        "b": first,
    }
    assert {(each.participant, each.session) for each in drawings.values()} == {
        (one.session.participant, one.session.name)
    }
    (table,) = dataset.Dataset(folder).contours_tables
    assert DATA_FILE.fullmatch(table.name)
    assert [row["point"] for row in read_csv(table)] == list("0120101")
    description = json.loads((folder / dataset.DESCRIPTION).read_text("utf-8"))
    assert set(read_csv(table)[0]) <= {variable["name"] for variable in description["variableMeasured"]}
    assert "description-contours" in (folder / dataset.README).read_text("utf-8")
    table.write_text(table.read_text("utf-8").replace("5.5", "high"), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"line 4: expected numbers for line, x and y"):
        load_contours(folder)


def test_every_column_has_a_description():
    for variable in (*RESPONSES, *EVENTS, *SESSIONS, *CONTOURS):
        said = variable.to_property()
        assert said["@type"] == "PropertyValue"
        assert len(said["description"]) > 10
        if variable.name.endswith("_ms"):
            assert said["unitText"].startswith("ms")


def test_all_answers_are_exported_and_the_last_valid_one_is_used(db, tmp_path):
    """Practice, catch and flagged trials are exported; only real trials without flags count."""
    study = register_study(db, "a", more="design = {blocks = 1}")
    begun = store.sessions.begin(
        db, study, lambda units: with_known_answers(_draw_four_trials(units)), now_ms=1_800_000_000_000
    )
    rows = [
        response(0, 0, practice=True), response(1, 1, catch=True, same=False), response(2, 2, flags="late blurred"),
        response(3, 3), response(4, 2, rt_ms=500.0), response(5, 3, same=False), response(6, 3, flags="hidden"),
        response(7, 1, catch=True, same=True, flags="late"),
    ]  # fmt: skip
    store.responses.append(db, begun.session.id, rows, [event(8)]).result()
    folder = export_study(db, study, tmp_path / "out")
    table = read_responses(folder)
    assert [row["seq"] for row in table] == list("01234567")
    assert [row["used"] for row in table] == ["0", "0", "0", "0", "1", "1", "0", "0"]
    assert [row["correct"] for row in table] == ["1", "0", *[""] * 5, "1"]
    assert [(row["x1"], row["y2"]) for row in table] == [("1.0", "9.0")] * 8
    loaded = vseg.load(folder)
    assert loaded.same.tolist() == [True, False]
    assert loaded.rt_ms.tolist() == [500.0, 412.5]
    assert loaded.participants == [begun.session.participant]
    (session,) = read_sessions(folder)
    assert (session["responses"], session["flagged"], session["answers_used"]) == ("8", "3", "2")
    assert (session["practice_correct"], session["catch_correct"]) == ("1.0", "0.0"), (
        "one flagged, not counted"
    )
    assert (session["status"], session["finished_at_ms"]) == ("active", "")


def _draw_four_trials(units) -> Trials:
    columns = {name: [value] * 4 for name, value in {
        "image": "a", "block": 0, "i": 0, "j": 8, "x1": 1.0, "y1": 1.0, "x2": 9.0, "y2": 9.0, "practice": False,
        "catch": False, "answer": None}.items()}  # fmt: skip
    return Trials(trial=[0, 1, 2, 3], **columns)


def test_numbers_are_exported_exactly(db, tmp_path):
    study = register_study(db, "a")
    begun = begin_session(db, study)
    sent = response(0, 0, rt_ms=0.1 + 0.2, cue_ms=1e-7, longest_gap_ms=123456789.123)
    store.responses.append(db, begun.session.id, [sent], []).result()
    folder = export_study(db, study, tmp_path / "out")
    (row,) = read_responses(folder)
    assert [float(row[name]) for name in ("rt_ms", "cue_ms", "longest_gap_ms")] == [
        0.1 + 0.2, 1e-7, 123456789.123,
    ]  # fmt: skip
    assert (row["same"], row["visible"], row["practice"]) == ("1", "1", "0")


def test_withdrawn_sessions_are_only_counted(db, tmp_path):
    study = register_study(db, "a")
    stays, leaves, withdraws = (begin_session(db, study, pid) for pid in ("stays", "leaves", "withdraws"))
    complete_session(db, stays)
    for one, keep in ((leaves, True), (withdraws, False)):
        answer_all(db, one)
        store.sessions.leave(db, one.session, keep=keep)
    folder = export_study(db, study, tmp_path / "out", identities=True)
    everything = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for trace in (withdraws.session.name, withdraws.session.participant, "withdraws"):
        assert trace.encode() not in everything
        assert not [path for path in folder.rglob("*") if trace in path.name]
    assert "1 withdrew" in (folder / "README.md").read_text("utf-8")
    assert {row["status"] for row in read_sessions(folder)} == {"completed", "left"}
    assert sorted(row["prolific_pid"] for row in read_csv(folder / "identities.csv")) == ["leaves", "stays"]


def test_identities_are_exported_only_on_request(db, tmp_path):
    study = register_study(db, "a")
    complete_session(db, begin_session(db, study, "=cmd|' /C calc'!A0"))
    folder = export_study(db, study, tmp_path / "without")
    assert not (folder / "identities.csv").exists()
    assert not [path for path in folder.rglob("*") if path.is_file() and b"calc" in path.read_bytes()]
    (who,) = read_csv(export_study(db, study, tmp_path / "with", identities=True) / "identities.csv")
    assert who["prolific_pid"] == "'=cmd|' /C calc'!A0"
    assert who["participant"] == vseg.load(folder).participants[0]


def test_formulas_are_escaped_in_text_but_not_in_numbers(db, tmp_path):
    study = register_study(db, "a")
    begun = begin_session(db, study)
    rows = [response(0, 0, key="="), response(1, 1, key="-", cue_onset_ms=-0.5)]
    store.responses.append(db, begun.session.id, rows, [event(2, text="=1+1")]).result()
    folder = export_study(db, study, tmp_path / "out")
    assert [row["key"] for row in read_responses(folder)] == ["'=", "'-"]
    assert read_responses(folder)[1]["cue_onset_ms"] == "-0.5"
    (events,) = folder.glob("data/*_description-events_data.csv")
    assert json.loads(read_csv(events)[0]["data"]) == {"text": "=1+1"}


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.floats(allow_nan=False)), min_size=1))
def test_csv_round_trip(tmp_path_factory, rows):
    """A CSV reader reads any text and number back, with an apostrophe before formulas."""
    path = tmp_path_factory.getbasetemp() / "any.csv"
    said, number = zip(*rows, strict=True)
    variables = (Column("said", "text", ""), Column("number", "number", ""))
    write_csv(path, variables, {"said": said, "number": number})
    read = read_csv(path)
    assert [row["said"] for row in read] == [escape_formula(text) for text in said]
    assert [float(row["number"]) for row in read] == list(number)


def test_calibration_is_in_the_table_of_sessions(db, tmp_path):
    study = register_study(db, "a")
    begun = begin_session(db, study)
    events = [
        event(2, "distance", px_per_mm=3.5, distance_mm=None),
        event(3, "distance", px_per_mm=3.6, distance_mm=600),
        event(4, "gamma", gamma="high", spread=0.1),
        event(5, "device", refresh_hz=59.9),
    ]
    store.responses.append(db, begun.session.id, [response(0), response(1, 1)], events).result()
    (row,) = read_sessions(export_study(db, study, tmp_path / "out"))
    assert (row["px_per_mm"], row["distance_mm"], row["measured_refresh_hz"]) == ("3.6", "600", "59.9")
    assert (row["gamma"], row["gamma_spread"]) == ("", "0.1")  # a page may report anything
    assert row["images"] == "a"


def test_parquet_and_csv_hold_the_same_data(db, tmp_path, monkeypatch):
    study = register_study(db, "ab")
    for _ in range(2):
        complete_session(db, begin_session(db, study))
    folder = export_study(db, study, tmp_path / "out")
    parquet = vseg.load(folder)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("vseg.data.tables.find_spec", lambda name: None)
    tables = vseg.load(folder)
    order = np.lexsort((tables.trial, tables.participant)), np.lexsort((parquet.trial, parquet.participant))
    for name in vseg.data.responses.COLUMNS:
        assert np.array_equal(getattr(tables, name)[order[0]], getattr(parquet, name)[order[1]]), name


def test_missing_pyarrow_gives_a_warning(db, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    study = register_study(db, "a")
    complete_session(db, begin_session(db, study))
    with pytest.warns(VsegWarning, match=r"responses.parquet was not written.*pip install"):
        folder = export_study(db, study, tmp_path / "out")
    assert not (folder / dataset.PARQUET).exists()
    assert "parquet" not in (folder / "README.md").read_text("utf-8")
    assert len(vseg.load(folder)) == 2


def test_study_without_sessions_is_exported(db, tmp_path):
    folder = export_study(db, register_study(db, "a"), tmp_path / "out")
    assert read_sessions(folder) == []
    with pytest.raises(InvalidInput, match="holds no responses with used = 1"):
        vseg.load(folder)


def test_load_uses_the_layout_of_the_folder_and_refuses_another(db, tmp_path):
    study = register_study(db, "a")
    complete_session(db, begin_session(db, study))
    folder = export_study(db, study, tmp_path / "out")
    assert vseg.load(folder).layout == vseg.Grid(3) == vseg.load(folder, vseg.Grid(3)).layout
    with pytest.raises(InvalidInput, match=r"answers on a 3x3 grid, not on a 4x4 grid; leave the layout out"):
        vseg.load(folder, vseg.Grid(4))
    with pytest.raises(
        NotFound, match=r"is a folder without study/study.toml; expected one written by vseg export"
    ):
        vseg.load(tmp_path)


def test_load_of_one_table_of_an_export(db, tmp_path):
    study = register_study(db, "a")
    begun = begin_session(db, study)
    store.responses.append(db, begun.session.id, [response(0), response(1, 1, flags="late")], []).result()
    (table,) = dataset.Dataset(export_study(db, study, tmp_path / "out")).response_tables
    assert len(vseg.load(table, vseg.Grid(3))) == 1


def test_invalid_used_column_is_reported_with_its_line(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("i,j,same,used\n0,1,1,1\n0,2,1,perhaps\n")
    with pytest.raises(InvalidInput, match=r"line 3: column used is 'perhaps'; expected 0 or 1"):
        vseg.load(path, vseg.Grid(3))
    path.write_text("i,j,same,used\n0,1,1,0\n0,99,1,0\n")
    with pytest.raises(InvalidInput, match="holds no responses with used = 1"):
        vseg.load(path, vseg.Grid(3))
    path.write_text("i,j,same,used\n0,99,1,0\n0,1,1,1\n1,99,1,1\n")
    with pytest.raises(InvalidInput, match="line 4: location 99 is outside"):
        vseg.load(path, vseg.Grid(3))


def test_changes_during_an_export_are_not_exported(db, tmp_path):
    """Answers and withdrawals that arrive while sessions are read do not change what is read."""
    from vseg.store.snapshot import take_snapshot

    study = register_study(db, "a")
    first, second = begin_session(db, study), begin_session(db, study)
    answer_all(db, first)
    answer_all(db, second)
    with take_snapshot(db, study) as found:
        assert len(found.responses(found.sessions[0])["seq"]) == 2
        store.sessions.leave(db, second.session, keep=False)
        complete_session(db, begin_session(db, study))
        assert [head.name for head in found.sessions] == [first.session.name, second.session.name]
        assert len(found.responses(found.sessions[1])["seq"]) == 2
        assert found.withdrawn == 0


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\ta", "\ra"])
def test_each_start_of_a_formula_is_escaped(text):
    assert escape_formula(text) == f"'{text}"
    assert text.startswith(FORMULA_STARTS)


MARKED = "[lab]\nmarkers = true\nphotodiode = {corner = 'top-right'}\n"


def read_markers(folder: Path) -> list[dict[str, str]]:
    (path,) = folder.glob("markers/*_events.tsv")
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_markers_are_written_only_if_the_study_asks_for_them(db, tmp_path):
    study = register_study(db, "a")
    complete_session(db, begin_session(db, study))
    assert not (export_study(db, study, tmp_path / "out") / dataset.MARKERS).exists()


def test_markers_have_onset_and_code_of_every_event(db, tmp_path):
    study = register_study(db, "a", more=MARKED, name="eeg-study")
    begun = begin_session(db, study)
    rows = [
        response(1, 0, cue_onset_ms=1000.25, image_onset_ms=1300.5, response_onset_ms=1600.75, rt_ms=400.0),
        response(
            2,
            1,
            cue_onset_ms=2100.0,
            image_onset_ms=2400.0,
            response_onset_ms=2700.0,
            same=False,
            flags="late",
        ),
    ]
    opened = [event(0, "screen", page_opened_at_ms=1_800_000_000_000.5)]
    store.responses.append(db, begun.session.id, rows, opened).result()
    folder = export_study(db, study, tmp_path / "out")
    table = read_markers(folder)
    kinds = ["cue", "image", "response_screen"]
    assert [row["trial_type"] for row in table] == [*kinds, "key_same", *kinds, "key_different"]
    assert [row["value"] for row in table] == ["10", "20", "30", "41", "10", "20", "30", "42"]
    onsets = [float(row["onset"]) for row in table]
    assert onsets == pytest.approx([0, 0.30025, 0.6005, 1.0005, 1.09975, 1.39975, 1.69975, 2.11225])
    durations = [float(row["duration"]) for row in table]
    assert durations == pytest.approx([0.3001, 0.2999, 0.4, 0, 0.3001, 0.2999, 0.4125, 0])
    assert [row["page_ms"] for row in table[:2]] == ["1000.250", "1300.500"]
    assert table[0]["epoch_ms"] == "1800000001000.750"
    assert [(row["trial"], row["item"], row["image"], row["flags"]) for row in table[3:5]] == [
        ("1", "0", "a", "n/a"), ("2", "1", "a", "late"),
    ]  # fmt: skip
    head = begun.session
    assert (folder / f"markers/sub-{head.participant}_ses-{head.name}_task-eegstudy_events.tsv").is_file()
    assert "markers/" in (folder / "README.md").read_text("utf-8")
    assert "markers/" in (folder / dataset.IGNORE).read_text("utf-8")
    assert len(vseg.load(folder)) == 1


def test_sidecar_describes_every_column_and_code(db, tmp_path):
    from vseg.export.markers import CODES

    study = register_study(db, "a", more=MARKED)
    complete_session(db, begin_session(db, study))
    folder = export_study(db, study, tmp_path / "out")
    said = json.loads((folder / "markers/task-small_events.json").read_text("utf-8"))
    assert set(read_markers(folder)[0]) == set(said) - {"Photodiode"}
    assert all(said[name]["Description"] for name in said)
    assert set(said["trial_type"]["Levels"]) == set(CODES)
    assert set(said["value"]["Levels"]) == {str(code) for code in CODES.values()}
    assert len(set(CODES.values())) == len(CODES)
    assert all(0 < code < 256 for code in CODES.values())  # the range of a parallel port
    assert {name: said["Photodiode"][name] for name in ("corner", "phase", "size_px")} == {
        "corner": "top-right", "phase": "image", "size_px": 80,
    }  # fmt: skip


def test_marker_times_continue_after_a_reload_of_the_page(db, tmp_path):
    """Each page has its own clock; if it is not reported, the two clocks of the trial are compared."""
    study = register_study(db, "a", more=MARKED)
    begun = begin_session(db, study)
    rows = [
        response(1, 0, cue_onset_ms=5000.0),
        response(4, 1, cue_onset_ms=700.0),
        response(5, 1, cue_onset_ms=900.0),
    ]
    events = [
        event(0, "screen", page_opened_at_ms=1_800_000_000_000),
        event(2, "resumed", away_ms=1),
        event(3, "screen", page_opened_at_ms=1_800_000_060_000.0),
    ]
    store.responses.append(db, begun.session.id, rows, events).result()
    cues = [
        row for row in read_markers(export_study(db, study, tmp_path / "out")) if row["trial_type"] == "cue"
    ]
    assert [float(row["onset"]) for row in cues] == pytest.approx([0, 55.7, 55.9])

    other = register_study(db, "a", more=MARKED, name="unsaid")
    begun = begin_session(db, other)
    rows = [
        response(2, 0, cue_onset_ms=5000.0),
        response(3, 1, cue_onset_ms=40.0, shown_at_ms=1_800_000_009_000),
    ]
    strange = [event(seq, "screen", page_opened_at_ms=value) for seq, value in enumerate(("x", 10**400))]
    store.responses.append(db, begun.session.id, rows, strange).result()
    cues = [
        row for row in read_markers(export_study(db, other, tmp_path / "two")) if row["trial_type"] == "cue"
    ]
    assert [float(row["onset"]) for row in cues] == pytest.approx([0, 9])


def test_cue_with_planned_duration_0_has_no_marker(db, tmp_path):
    study = register_study(db, "a", more=MARKED)
    begun = begin_session(db, study)
    rows = [response(0, 0, cue_asked_ms=0.0, cue_ms=0.0), response(1, 1)]
    store.responses.append(db, begun.session.id, rows, []).result()
    table = read_markers(export_study(db, study, tmp_path / "out"))
    assert [row["trial_type"] for row in table].count("cue") == 1


@pytest.mark.usefixtures("patient_server")
def test_adaptive_study_exports_choices_and_stops(tmp_path):
    """The exported positions of the dots are those of the chosen pair; every column of the choices is described."""
    with run_server(f"sqlite:///{tmp_path}/vseg.db", STOPPING_STUDY) as server:
        one = begin_adaptive_session(server)
        while not one.stops:
            one.answer_patiently([one.seq])
        assert one.person.post("complete", {"count": one.seq}).status_code == 200
        (tmp_path / "out").mkdir()
        export.write_dataset(server.db, store.studies.get_study(server.db, "ada"), tmp_path / "out")
    folder = tmp_path / "out"
    rows = read_responses(folder)
    assert {row["chosen"] for row in rows if row["used"] == "1"} == {"0", "1"}
    centres = vseg.Grid(4).pixels(512, 512)
    for row in (row for row in rows if row["chosen"] == "1"):
        places = [float(row[name]) for name in ("x1", "y1", "x2", "y2")]
        assert places == [*centres[int(row["i"])], *centres[int(row["j"])]]
    choices = read_csv(dataset.Dataset(folder).choices_table)
    assert {row["item"] for row in rows if row["chosen"] == "1"} <= {choice["item"] for choice in choices}
    described = json.loads((folder / "dataset_description.json").read_text(encoding="utf-8"))
    assert set(choices[0]) <= {variable["name"] for variable in described["variableMeasured"]}
    (session,) = read_sessions(folder)
    assert session["stops"] == f"patches:{one.stops[0]}"
    assert 0 < float(session["expected_error"]) < 0.99
