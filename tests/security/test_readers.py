"""Files that are broken in every way: one clear sentence or a valid result; no crash, no hang, nothing half written.

Valid files are cut, doubled, scrambled and sprinkled with what readers stumble over; or are garbage from the beginning.
`fuzz_readers.py` beside this lets atheris, guided by coverage, look for more in the readers that are Python throughout;
in pyarrow, PIL and zlib, whose wheels it cannot look into, it would guess as blindly as Hypothesis does here.
"""

import faulthandler
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from PIL import Image

import vseg
from servers import STUDY, event, register_studies, response, run_server
from vseg import Maps, export, stimuli, store
from vseg.cli import main
from vseg.data import importers
from vseg.data.dataset import Dataset
from vseg.data.layout import Grid
from vseg.errors import InvalidInput, VsegError, VsegWarning
from vseg.study import schema

FEW, MANY = 40, 4_000
LIMIT_S = 120  # for one file on a busy machine; only a reader that hangs takes longer
NASTY = (
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b'"', b"'''", b'"""', b"[[", b"]]", b"{", b"}", b",", b";",
    b"\t", b"\r", b"\n", b"\x1a", b"1e999", b"-1", b"nan", b"inf", b"-0", b"9" * 5000, b"0x", b"1_000", b"1979-05-27",
    b"=cmd()", b"../../x", b"null", b"true", b"[" * 2000, b'{"a":' * 2000, b"#", b"\\u0000", b"\\ud800",
    b"\xe2\x80\xae", b"a.b.c = 1", b"\n[images]\n", b"__proto__", b"2147483648", b"9223372036854775808", b"PK\x03\x04",
)  # fmt: skip

CENTRES = Grid(4).pixels(640, 480).tolist()


@st.composite
def broken(draw: st.DrawFn, valid: bytes) -> bytes:
    """Damage a valid file in one to six places."""
    content = bytearray(valid)
    for _ in range(draw(st.integers(1, 6))):
        at, end = sorted(draw(st.integers(0, len(content))) for _ in range(2))
        match draw(st.sampled_from(["insert", "insert", "replace", "cut", "delete", "double", "scramble"])):
            case "insert":
                content[at:at] = draw(st.sampled_from(NASTY))
            case "replace":
                content[at : min(end, at + 40)] = draw(st.sampled_from(NASTY))
            case "cut":
                del content[end:]
            case "delete":
                del content[at : min(end, at + 200)]
            case "double":
                content[end:end] = content[at:end]
            case "scramble":
                content[at : at + 8] = draw(st.binary(min_size=1, max_size=8))
    return bytes(content[:2_000_000])


@contextmanager
def in_time(limit_s: float = LIMIT_S) -> Iterator[None]:
    """End the process with its stack after the limit, because compiled code cannot be interrupted by exceptions."""
    faulthandler.dump_traceback_later(limit_s, exit=True, file=sys.__stderr__)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VsegWarning)
            yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def assert_one_sentence(error: VsegError) -> None:
    said = str(error)
    assert said.endswith((".", "?", "…")), said
    assert "Traceback" not in said
    assert len(said) < 2000, said[:3000]


@dataclass(frozen=True)
class Reader:
    """A kind of file: a function that writes a valid one, and a function that reads it."""

    name: str
    suffix: str
    valid: Callable[[Path], bytes]
    read: Callable[[Path], object]


def csv_file(folder: Path) -> bytes:
    path = folder / "valid.csv"
    responses().save(path)
    return path.read_bytes()


def parquet_file(folder: Path) -> bytes:
    path = folder / "valid.parquet"
    responses().save(path)
    return path.read_bytes()


def responses() -> vseg.Responses:
    pairs = vseg.designs.scattered(Grid(4), segments=2, seed=1)
    return vseg.simulate(stimuli.random_maps(Grid(4), segments=2, seed=0), pairs, blocks=2, seed=2)


def run_of_jspsych() -> list[dict[str, Any]]:
    """Return jsPsych data with screens between the trials, answers as keys and dots in pixels."""
    run: list[dict[str, Any]] = [
        {"trial_type": "html-keyboard-response", "stimulus": "<p>Hello</p>", "rt": 900}
    ]
    for n in range(8):
        first, second = CENTRES[n], CENTRES[-1 - n]
        run.append({
            "trial_type": "canvas", "image": "cat.png", "subject": "ann",
            "dots": [{"x": x, "y": y} for x, y in (first, second)],
            "response": "f" if n % 2 else "j", "rt": 500.5 + n, "time_elapsed": 1000 * n, "practice": n == 0,
        })  # fmt: skip
    return run


def jspsych_json(_: Path) -> bytes:
    return json.dumps(run_of_jspsych()).encode()


def jspsych_csv(_: Path) -> bytes:
    rows = ["rt,response,image,subject,x1,y1,x2,y2"]
    for n in range(8):
        (x1, y1), (x2, y2) = CENTRES[n], CENTRES[-1 - n]
        rows.append(f"{500 + n},{'fj'[n % 2]},cat.png,ann,{x1},{y1},{x2},{y2}")
    return "\n".join(rows).encode()


def jatos_archive(_: Path) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.json", json.dumps({"data": [{"studyResults": [{"id": 1}]}]}))
        for number in (1, 2):
            archive.writestr(f"study_result_{number}/comp-result_{number}/data.txt", jspsych_json(Path()))
    return file.getvalue()


def maps_file(folder: Path) -> bytes:
    path = folder / "valid.npz"
    stimuli.random_maps(Grid(4), segments=2, seed=0).save(path)
    return path.read_bytes()


def picture_file(_: Path) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.arange(48 * 48 * 3, dtype=np.uint8).reshape(48, 48, 3)).save(file, "PNG")
    return file.getvalue()


def jpeg_file(_: Path) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.arange(48 * 48 * 3, dtype=np.uint8).reshape(48, 48, 3)).save(file, "JPEG")
    return file.getvalue()


def imported(path: Path) -> object:
    """Import a file into a folder that vseg reads."""
    found = importers.import_trials(
        [path], columns=["same=response:f"], layout=Grid(4), image_size=(640, 480)
    )
    out = path.with_name("imported")
    shutil.rmtree(out, ignore_errors=True)
    importers.write_dataset(found, out)
    return out


READERS = (
    Reader("study file", ".toml", lambda _: STUDY.encode(), schema.load_study),
    Reader("CSV", ".csv", csv_file, lambda path: vseg.load(path, Grid(4))),
    Reader("Parquet", ".parquet", parquet_file, lambda path: vseg.load(path, Grid(4))),
    Reader("jsPsych JSON", ".json", jspsych_json, imported),
    Reader("jsPsych CSV", ".csv", jspsych_csv, imported),
    Reader("JATOS archive", ".jrzip", jatos_archive, imported),
    Reader("maps", ".npz", maps_file, Maps.load),
    Reader("PNG", ".png", picture_file, stimuli.read_image),
    Reader("JPEG", ".jpg", jpeg_file, stimuli.read_image),
)


def fuzzed(reader: Reader, folder: Path, examples: int) -> dict[str, int]:
    """Read this number of damaged and random files; return how many were read and how many refused."""
    valid, path = reader.valid(folder), folder / f"file{reader.suffix}"
    path.write_bytes(valid)
    with in_time():
        assert reader.read(path) is not None, "the valid one is valid"
    came = {"read": 0, "refused": 0}

    @settings(
        max_examples=examples, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
    )
    @given(content=st.one_of(broken(valid), broken(valid), broken(valid), st.binary(max_size=300)))
    def tried(content: bytes) -> None:
        path.write_bytes(content)
        try:
            with in_time():
                assert reader.read(path) is not None
            came["read"] += 1
        except VsegError as error:
            assert_one_sentence(error)
            came["refused"] += 1

    tried()
    return came


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_broken_files(reader, tmp_path):
    came = fuzzed(reader, tmp_path, FEW)
    assert came["refused"], "some are broken beyond reading"


@pytest.mark.chaos
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_many_broken_files(reader, tmp_path, record_property):
    came = fuzzed(reader, tmp_path, MANY)
    record_property("files", sum(came.values()))
    print(f"{reader.name}: {came}")


def hang() -> None:
    """Wait in compiled code, so that no signal handler runs and no CPU time is used."""
    lock = threading.Lock()
    lock.acquire()
    with in_time(0.2):
        lock.acquire()


def test_a_reader_that_hangs_is_ended():
    """Run it in a separate process, which must end with a stack trace."""
    script = "import runpy, sys; runpy.run_path(sys.argv[1])['hang']()"
    done = subprocess.run(
        [sys.executable, "-c", script, __file__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 1
    assert "Timeout (0:00:00.2" in done.stderr
    assert "in hang" in done.stderr


# ── a whole folder ──


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    """Return a Psych-DS folder written by `vseg export`."""
    folder = tmp_path_factory.mktemp("exported")
    with run_server(f"sqlite:///{folder}/vseg.db") as server:
        person = server.begin()
        assert (
            person.send(event(0, "consent"), *(response(n + 1, n) for n in range(person.items))).status_code
            == 200
        )
        export.write_dataset(server.db, store.studies.get_study(server.db, "tiny"), folder / "valid")
    return folder / "valid"


def fuzzed_folder(exported: Path, folder: Path, examples: int) -> dict[str, int]:
    """Damage, delete or replace by a folder one file of a dataset folder, and read the folder."""
    files = sorted(path.relative_to(exported) for path in exported.rglob("*") if path.is_file())
    whole = {path: (exported / path).read_bytes() for path in files}
    copy = folder / "copy"
    came = {"read": 0, "refused": 0}

    @settings(
        max_examples=examples, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
    )
    @given(data=st.data())
    def tried(data: st.DataObject) -> None:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(exported, copy)
        if data.draw(st.booleans()):
            (copy / "responses.parquet").unlink(missing_ok=True)
        chosen = data.draw(st.sampled_from([path for path in files if (copy / path).exists()]))
        match data.draw(st.sampled_from(["broken", "broken", "broken", "gone", "folder", "link"])):
            case "broken":
                (copy / chosen).write_bytes(data.draw(broken(whole[chosen])))
            case "gone":
                (copy / chosen).unlink()
            case "folder":
                (copy / chosen).unlink()
                (copy / chosen).mkdir()
            case "link":
                (copy / chosen).unlink()
                (copy / chosen).symlink_to(copy / chosen)
        try:
            with in_time():
                assert len(vseg.load(copy).i) > 0
            came["read"] += 1
        except VsegError as error:
            assert_one_sentence(error)
            came["refused"] += 1

    tried()
    return came


def test_broken_folders(exported, tmp_path):
    came = fuzzed_folder(exported, tmp_path, FEW)
    assert came["read"], "what lies beside the data does not matter"
    assert came["refused"]


@pytest.mark.parametrize("instead", ["a folder", "a link to itself"])
def test_a_table_that_is_not_a_file(exported, tmp_path, instead):
    shutil.copytree(exported, tmp_path / "copy")
    (tmp_path / "copy" / "responses.parquet").unlink(missing_ok=True)
    (table,) = Dataset(tmp_path / "copy").response_tables
    table.unlink()
    if instead == "a folder":
        table.mkdir()
    else:
        table.symlink_to(table)
    with pytest.raises(
        InvalidInput, match=r"_data\.csv cannot be read as a CSV file \((Is a dir|Too many levels)"
    ):
        vseg.load(tmp_path / "copy")


@pytest.mark.chaos
def test_many_broken_folders(exported, tmp_path, record_property):
    came = fuzzed_folder(exported, tmp_path, MANY)
    record_property("files", sum(came.values()))
    print(f"Psych-DS: {came}")


# ── commands ──


@pytest.mark.parametrize(
    "reader", [each for each in READERS if each.name.startswith("js")], ids=lambda each: each.name
)
def test_an_import_that_fails_leaves_nothing(reader, tmp_path, capsys):
    """The command exits with code 1, one line and no folder; if it succeeds, vseg can read the folder."""
    valid, path, out = reader.valid(tmp_path), tmp_path / f"file{reader.suffix}", tmp_path / "out"
    command = f"import {path} --out {out} --map same=response:f --grid 4 --image-size 640x480".split()
    before = {each.name for each in tmp_path.iterdir()} | {path.name}

    @settings(
        max_examples=15, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
    )
    @given(content=broken(valid))
    def tried(content: bytes) -> None:
        path.write_bytes(content)
        with pytest.raises(SystemExit) as ended, in_time():
            main(command)
        said = capsys.readouterr().err
        if ended.value.code:
            assert ended.value.code == 1, said
            assert said.startswith("vseg: ")
            assert "Traceback" not in said
            assert {each.name for each in tmp_path.iterdir()} == before, "nothing is left behind"
        else:
            assert len(vseg.load(out).i) > 0
            shutil.rmtree(out)

    tried()


def test_a_damaged_study_file_leaves_the_database_unchanged(tmp_path):
    """A study is registered completely or not at all."""
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        register_studies(db, STUDY)

        @settings(
            max_examples=FEW, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
        )
        @given(content=broken(STUDY.encode()))
        def tried(content: bytes) -> None:
            before = [row.text for row in store.studies.list_studies(db)]
            try:
                with in_time():
                    register_studies(db, content.decode("utf-8", "replace"))
            except VsegError:
                assert [row.text for row in store.studies.list_studies(db)] == before

        tried()
