"""Test that no file outside the given folders is read or written, and that no small file takes much memory."""

import asyncio
import io
import json
import os
import re
import socket
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.types import ASGIApp

from commands import vseg
from roles import run_server_with_roles
from servers import STUDY, ParticipantClient, event, register_studies, response, run_server
from vseg import Maps, export, stimuli, store
from vseg.data import importers
from vseg.data.catch_trials import count_catch_trials
from vseg.data.dataset import Dataset
from vseg.data.layout import Grid
from vseg.data.table_writing import FORMULA_STARTS
from vseg.data.tables import load
from vseg.errors import InvalidInput, VsegError
from vseg.server.app import create_app
from vseg.server.participant_routes import make_trial_drawer
from vseg.store.sessions import Identity
from vseg.study import pictures
from vseg.study.schema import parse_study

TRAVERSALS = (
    "../auth.py", "..%2fauth.py", "%2e%2e/auth.py", "%2e%2e%2fauth.py", "..%5cauth.py", "....//auth.py", "./../auth.py",
    "%252e%252e%252fauth.py", "/etc/passwd", "//etc/passwd", "%2fetc%2fpasswd", "..%00/auth.py", "..;/auth.py",
    "../templates/login.html", "..%c0%afauth.py", "file:///etc/passwd", "C:%5cboot.ini", "nul", "con", "a" * 5000,
)  # fmt: skip


def asked_raw(base: str, path: str) -> bytes:
    """Send a request over a socket, because HTTP clients normalise paths."""
    host, port = base.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return connection.makefile("rb").read()


def test_paths_outside_the_folder_are_refused(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as server:
        for folder in (
            "/static/",
            "/pages/",
            "/s/tiny/images/",
            "/s/tiny/",
            "/api/studies/tiny/images/",
            "/",
        ):
            for climb in TRAVERSALS:
                answer = asked_raw(server.base, folder + climb)
                assert answer.split()[1] in (b"301", b"303", b"307", b"400", b"401", b"404"), (
                    folder,
                    climb,
                    answer,
                )
                assert b"import " not in answer
                assert b"root:" not in answer


@pytest.mark.parametrize("mounted", ["static", "pages"])
def test_a_link_in_a_folder_of_files_is_not_followed_out_of_it(tmp_path, monkeypatch, mounted):
    """Links cannot be created over HTTP; one that is there by mistake is not followed either."""
    folder, secret = tmp_path / "files", tmp_path / "secret.txt"
    folder.mkdir()
    secret.write_text("the content of the secret")
    (folder / "plain.txt").write_text("a file like others")
    os.symlink(secret, folder / "link.txt")
    os.symlink(tmp_path, folder / "above")
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        whole = create_app(db)
        (files,) = (route.app for route in whole.app.app.routes if route.path == f"/{mounted}")
        monkeypatch.setattr(files, "all_directories", [str(folder)])  # the app's own files, elsewhere
        plain, *outside = asyncio.run(asked_of(whole, mounted, "plain.txt", "link.txt", "above/secret.txt"))
    assert plain.text == "a file like others"
    for answer in outside:
        assert answer.status_code == 404
        assert "the content" not in answer.text


async def asked_of(whole: ASGIApp, mounted: str, *names: str) -> list[httpx.Response]:
    """Request files from the app directly, without a server."""
    transport = httpx.ASGITransport(app=whole)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        return [await client.get(f"/{mounted}/{name}") for name in names]


def test_an_export_writes_only_into_its_folder(tmp_path):
    """Names and texts of participants never become paths; only the researcher chooses the folder."""
    evil, folder = "../../evil", tmp_path / "a" / "b" / "tiny"
    folder.mkdir(parents=True)
    with run_server_with_roles(f"sqlite:///{tmp_path}/vseg.db") as world:
        db = world.server.db
        study = store.studies.get_study(db, "tiny")
        whose = Identity(evil, "../evil", "/evil")  # the server takes no such name; the store does
        begun = store.sessions.begin(db, study, make_trial_drawer(study), identity=whose, now_ms=0)
        state = {"token": begun.token, "trials": begun.session.trials.to_wire()}
        person = ParticipantClient(world.server.client, "tiny", state)
        said = event(1, "comment", text=evil, image=evil, **{evil: evil})
        assert person.send(response(0, 0, key=evil), said).status_code == 200
        answer = world.ask(world.roles["researcher"], "GET", "api/studies/tiny/export.zip")
        export.write_dataset(db, study, folder, identities=True)
    written = [
        path for path in tmp_path.rglob("*") if folder not in path.parents and "vseg.db" not in path.name
    ]
    assert sorted(written) == [tmp_path / "a", tmp_path / "a" / "b", folder]
    assert evil in (folder / "identities.csv").read_text(), "else nobody hostile was there"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as exported:
        names = exported.namelist()
    assert any(begun.session.name in name for name in names)
    for name in [*names, *map(str, folder.rglob("*"))]:
        assert "evil" not in name
        assert ".." not in name.split("/")
    assert all(name.startswith("tiny/") for name in names)


@pytest.mark.parametrize(
    "name", ["../evil", "a/b", "a\\b", "..", ".", "con:", "A", "a b", "", "a" * 64, "ä", "a\n"]
)
def test_names_that_would_be_paths_are_refused(name):
    for text in (
        STUDY.replace('"tiny"', json.dumps(name)),
        STUDY.replace('name = "patches"', f"name = {json.dumps(name)}"),
    ):
        with pytest.raises(InvalidInput):
            parse_study(text)


def test_a_study_sent_over_http_cannot_read_files(tmp_path):
    """A study sent over HTTP may use samples and generated images only, so neither a path nor a link is read."""
    with run_server_with_roles(f"sqlite:///{tmp_path}/vseg.db") as world:
        for file in ("/etc/passwd", "../../x.png", "picture.png", "/proc/self/environ"):
            text = STUDY.replace("tiny", "evil").replace("colours = 2", f"file = {json.dumps(file)}")
            answer = world.ask(world.roles["researcher's script"], "POST", "api/studies", json={"text": text})
            assert answer.status_code == 422, answer.text
            assert "cannot read from here" in answer.json()["message"]


def test_a_file_that_is_not_an_image_is_refused_without_quoting_it(tmp_path):
    """A study file that names a secret file as its image, directly or by a link, is refused, not quoted."""
    secret = tmp_path / "secret.txt"
    secret.write_text("the content of the secret\n" * 10)
    os.symlink(secret, tmp_path / "picture.png")
    for file in ("secret.txt", "picture.png", str(secret)):
        study = parse_study(STUDY.replace("colours = 2", f"file = {json.dumps(file)}"))
        with pytest.raises(VsegError, match="cannot be read as an image") as refused:
            pictures.render_pictures(study, tmp_path)
        assert "the content" not in str(refused.value)


# ── bombs ──


def png_that_says(width: int, height: int) -> bytes:
    """Return a PNG file with this number of black pixels: a few kilobytes for gigabytes of pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packed = zlib.compress(b"\0" * 1_000_000, 9)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(100_000, 100_000), (65_535, 65_535), (2**31 - 1, 1), (12_000, 12_000)])
def test_an_image_that_unpacks_to_gigabytes_is_refused(tmp_path, size):
    path = tmp_path / "bomb.png"
    path.write_bytes(png_that_says(*size))
    with pytest.raises(VsegError, match=r"cannot be read as an image|has .* pixels"):
        stimuli.read_image(path)
    study = parse_study(STUDY.replace("colours = 2", 'file = "bomb.png"'))
    with pytest.raises(VsegError, match=r"cannot be read as an image|has .* pixels"):
        pictures.render_pictures(study, tmp_path)


def test_maps_that_unpack_to_gigabytes(tmp_path):
    """The declared size of the arrays in an .npz file is checked before they are read."""
    path = tmp_path / "bomb.npz"
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000, 3), }"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head) + 1) + head + b"\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("probabilities.npy", array + b"\0" * 10_000_000)
    with pytest.raises(VsegError):
        Maps.load(path)


def test_an_archive_that_unpacks_to_gigabytes(tmp_path, monkeypatch):
    """Unpacked bytes are counted, whatever size the archive declares."""
    monkeypatch.setattr("vseg.data.importers.files.LARGEST_UNPACKED", 1_000_000)
    honest, lying = tmp_path / "honest.zip", tmp_path / "lying.zip"
    with zipfile.ZipFile(honest, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("data.json", b" " * 5_000_000)
    content = honest.read_bytes()
    lying.write_bytes(content.replace(struct.pack("<I", 5_000_000), struct.pack("<I", 100)))
    for path in (honest, lying):
        with pytest.raises(VsegError):
            importers.import_trials([path], layout=Grid(4))


NAMES = "participant,image,block,trial,i,j,same,rt_ms\n"
TOO_LONG = "a name of {} characters; expected at most 256: shorten it."


def one_text(text: str, rows: int) -> Any:
    """Return a column that a Parquet file stores once, however many rows repeat it."""
    import pyarrow

    return pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.zeros(rows, np.int32)), pyarrow.array([text]))


def parquet_bomb(path: Path, rows: int, **columns: str) -> None:
    import pyarrow
    import pyarrow.parquet

    numbers = {"i": np.zeros(rows, np.int8), "j": np.ones(rows, np.int8), "same": np.ones(rows, np.bool_)}
    texts = {name: one_text(text, rows) for name, text in columns.items()}
    pyarrow.parquet.write_table(pyarrow.table(numbers | texts), path, compression="zstd")


def wide_csv(path: Path) -> None:
    rows = "".join(f"{'x' * (131_000 if row == 0 else 1)},a,0,{row},0,1,1,5\n" for row in range(4000))
    path.write_text(NAMES + rows)


# With little memory a reader without limits fails; one that refuses the file does not.
LOADED_IN_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
import vseg
from vseg.data.catch_trials import count_catch_trials
from vseg.errors import VsegError

grid, bomb, small = vseg.Grid(4), Path(sys.argv[1]), Path(sys.argv[2])
vseg.load(small, grid)  # loads the libraries that are needed to read any file
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + 2**31,) * 2)
try:
    count_catch_trials(bomb) if "catch" in bomb.name else vseg.load(bomb, grid)
except VsegError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("name", "write", "sentence"),
    [
        ("wide.csv", wide_csv, f"line 2: column participant is 'x…, {TOO_LONG.format(131_000)}"),
        ("few.parquet", lambda path: parquet_bomb(path, 300, participant="x" * 2_000_000),
         f"line 1: column participant is 'x…, {TOO_LONG.format(2_000_000)}"),
        ("more.parquet", lambda path: parquet_bomb(path, 2000, image="x" * 2_000_000),
         f"line 1: column image is 'x…, {TOO_LONG.format(2_000_000)}"),
        ("many.parquet", lambda path: parquet_bomb(path, 2**24 + 1),
         "declares 16777217 rows; expected at most 16777216: split the file."),
        ("wide.parquet", lambda path: parquet_bomb(path, 3_000_000, participant="x" * 256),
         "column participant has 3000000 rows and a name of 256 characters; for so many rows, expected at most 178"),
        ("catch.parquet", lambda path: parquet_bomb(path, 2**24 + 1, participant="x", catch="1", correct="1"),
         "declares 16777217 rows; expected at most 16777216: split the file."),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value[:15] else "",
)  # fmt: skip
def test_a_small_table_that_becomes_a_large_one(tmp_path, name, write, sentence):
    """Each row of a column of names takes the width of the longest; Parquet stores repeated rows in almost no bytes."""
    bomb, small = tmp_path / name, tmp_path / f"small{Path(name).suffix}"
    write(bomb)
    assert bomb.stat().st_size < 600_000
    small.write_text(NAMES + "a,a,0,0,0,1,1,5\n")
    if small.suffix == ".parquet":
        parquet_bomb(small, 1, participant="a", image="a")
    done = subprocess.run(
        [sys.executable, "-c", LOADED_IN_LITTLE_MEMORY, bomb, small], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert sentence in re.sub("x+…", "x…", done.stdout)


def test_catch_trials_with_long_names(tmp_path):
    """All rows share one name, so it takes 2 MB, not 4 GB."""
    bomb = tmp_path / "catch.parquet"
    parquet_bomb(bomb, 2000, participant="x" * 2_000_000, catch="1", correct="true")
    (counted,) = count_catch_trials(bomb).values()
    assert counted == (2000, 2000)


def test_catch_trials_of_a_table_with_a_column_twice(tmp_path):
    import pyarrow
    import pyarrow.parquet

    names = ["participant", "participant", "catch", "correct"]
    table = pyarrow.Table.from_arrays([pyarrow.array(["1"])] * 4, names=names)
    pyarrow.parquet.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(InvalidInput, match="has the column 'participant' twice; expected each once"):
        count_catch_trials(tmp_path / "twice.parquet")


def test_a_table_that_declares_too_many_bytes_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "bomb.parquet"
    parquet_bomb(path, 100, participant="x" * 200)
    size = sum(_column_bytes(path))
    monkeypatch.setattr("vseg.data.file_reading.MAX_BYTES", size)
    assert len(load(path, Grid(4))) == 100
    monkeypatch.setattr("vseg.data.file_reading.MAX_BYTES", size - 1)
    with pytest.raises(
        InvalidInput, match=f"declares {size} bytes uncompressed; expected at most {size - 1}"
    ):
        load(path, Grid(4))


def _column_bytes(path: Path) -> list[int]:
    import pyarrow.parquet

    group = pyarrow.parquet.read_metadata(path).row_group(0)
    return [group.column(at).total_uncompressed_size for at in range(group.num_columns)]


def test_a_folder_of_tables_with_one_very_long_name(tmp_path, monkeypatch):
    """Each table is within the limit, but all together are not."""
    monkeypatch.setattr("vseg.data.tables.MAX_NAME_BYTES", 4 * 250 * 30)
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as server:
        for _ in range(2):
            person = server.begin()
            assert person.send(*(response(n, n) for n in range(person.items))).status_code == 200
        export.write_dataset(server.db, store.studies.get_study(server.db, "tiny"), tmp_path / "out")
    (tmp_path / "out" / "responses.parquet").unlink()
    assert len(load(tmp_path / "out")) > 10
    first, _ = Dataset(tmp_path / "out").response_tables
    first.write_text(first.read_text().replace(load(tmp_path / "out").participant[0], "x" * 250))
    with pytest.raises(
        InvalidInput, match=r"out: column participant has \d+ rows and a name of 250 characters"
    ):
        load(tmp_path / "out")


@pytest.mark.parametrize("rows", [300, 2000])
def test_a_command_reports_a_table_that_becomes_too_large_in_one_line(tmp_path, capsys, rows):
    parquet_bomb(tmp_path / "bomb.parquet", rows, participant="x" * 2_000_000)
    code, _, said = vseg(f"fit {tmp_path}/bomb.parquet --grid 4 --segments 2 --out {tmp_path}/out", capsys)
    assert code == 1
    assert said.startswith("vseg: ")
    assert "unexpected" not in said
    assert len(said.splitlines()) == 1


def test_the_server_does_not_decompress_requests(tmp_path):
    """A gzip bomb as a body is refused."""
    bomb = zlib.compress(b"[" * 10_000_000, 9)
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as server:
        person = server.begin()
        headers = {**person.headers, "Content-Type": "application/json", "Content-Encoding": "gzip"}
        assert (
            server.client.post("s/tiny/records", content=bomb[:100_000], headers=headers).status_code == 415
        )


# ── spreadsheets ──


def test_no_cell_of_an_export_is_a_formula(tmp_path):
    """This holds for every text from a participant: a key, a comment, the name of an image in an event."""
    formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "=cmd|'/c calc'!A1", "\tx", "＝1+1"]
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as db:
        register_studies(db, STUDY)
    with run_server(f"sqlite:///{tmp_path}/vseg.db") as server:
        person = server.begin(prolific_pid="-formula")
        for seq, text in enumerate(formulas):
            assert person.send(event(2 * seq, "comment", text=text, **{text: text})).status_code == 200
            keys = response(2 * seq + 1, seq, key=text[:16])
            assert person.send(keys).status_code == (422 if text.startswith("\t") else 200)
        out = tmp_path / "exported"
        out.mkdir()
        export.write_dataset(server.db, store.studies.get_study(server.db, "tiny"), out, identities=True)
    cells = 0
    for path in [*out.rglob("*.csv"), *out.rglob("*.tsv")]:
        for cell in cells_of(path):
            cells += 1
            is_number = cell.lstrip("-+").replace(".", "", 1).replace("e-", "", 1).isdigit()
            assert is_number or not cell.startswith(FORMULA_STARTS), f"{path.name}: {cell!r}"
    assert cells > 100


def cells_of(path: Path) -> list[str]:
    import csv

    with open(path, newline="", encoding="utf-8") as file:
        return [
            cell for row in csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",") for cell in row
        ]


def test_nothing_is_unpickled(tmp_path):
    """Files with a pickle, in each place where NumPy could load one, are refused."""
    ran = tmp_path / "ran"

    class Evil:
        def __reduce__(self):
            return (Path.touch, (ran,))

    path = tmp_path / "evil.npz"
    np.savez(path, probabilities=np.array([Evil()], dtype=object), positions=np.array([Evil()], dtype=object))
    with pytest.raises(VsegError):
        Maps.load(path)
    assert not ran.exists()
    assert "pickle" not in {name.partition(".")[0] for name in vars(sys.modules["vseg.data.maps"])}
