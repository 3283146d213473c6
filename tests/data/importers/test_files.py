"""Files, folders and archives; archives are read within limits."""

import json
import stat
import zipfile

import pytest

from vseg.data.importers import files
from vseg.data.importers.rows import RunNumbers, read_rows
from vseg.errors import InvalidInput, NotFound


def archive(path, members: dict[str, str]):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return path


def read(path) -> list:
    runs = RunNumbers()
    return [row for text in files.read_file(path)[1] for row in read_rows(text, runs)]


METADATA = {
    "apiVersion": "1.0.0",
    "data": [
        {
            "studyTitle": "dots",
            "studyResults": [
                {
                    "id": 9,
                    "workerId": 1,
                    "studyState": "FINISHED",
                    "urlQueryParameters": {"PROLIFIC_PID": "ab"},
                },
                {"id": 10, "workerId": 2, "studyState": "DATA_RETRIEVED", "urlQueryParameters": {}},
            ],
        }
    ],
}


def test_a_jatos_archive(tmp_path):
    """Components of one study result are one run, and metadata.json names the worker."""
    path = archive(
        tmp_path / "jatos_results.jrzip",
        {
            "study_result_10/comp-result_21/data.txt": '[{"rt": 3}]',
            "study_result_9/comp-result_19/data.txt": '[{"rt": 1}]\n',
            "study_result_9/comp-result_20/data.txt": '"rt"\r\n"2"\r\n',
            "study_result_9/comp-result_18/data.txt": "",
            "study_result_9/comp-result_19/files/other.json": "{broken",
            "metadata.json": json.dumps(METADATA),
        },
    )
    first, second, third = read(path)
    assert [first.run, second.run, third.run] == [1, 1, 2]
    assert first.cells == {
        "jatos_study_result": "9", "jatos_component_result": "19", "jatos_workerId": 1,
        "jatos_studyState": "FINISHED", "PROLIFIC_PID": "ab", "rt": 1,
    }  # fmt: skip
    assert second.cells["rt"] == "2"
    assert third.cells["jatos_workerId"] == 2
    assert third.source == f"{path}: study_result_10/comp-result_21/data.txt, trial 1"


@pytest.mark.parametrize(
    "metadata", ["", "[]", "{", '{"data": 3}', '{"data": [{"studyResults": [1, {"id": "a"}]}]}']
)
def test_invalid_metadata_is_ignored(tmp_path, metadata):
    members = {"study_result_1/comp-result_1/data.txt": '[{"rt": 1}]', "metadata.json": metadata}
    (row,) = read(archive(tmp_path / "a.zip", members))
    assert row.cells["rt"] == 1


def test_each_file_of_a_zip_is_a_run(tmp_path):
    path = archive(
        tmp_path / "data.zip", {"b/2.csv": "rt\n2\n", "b/1.json": '[{"rt": 1}]', "__MACOSX/1.json": "?"}
    )
    assert [(row.cells["rt"], row.run) for row in read(path)] == [(1, 1), ("2", 2)]


def test_the_components_of_an_unpacked_archive_are_one_run(tmp_path):
    for number in (1, 2):
        folder = tmp_path / f"study_result_1/comp-result_{number}"
        folder.mkdir(parents=True)
        (folder / "data.txt").write_text('[{"rt": 1}]')
    runs = RunNumbers()
    found = files.find_files([tmp_path])
    assert {
        row.run for path in found for text in files.read_file(path)[1] for row in read_rows(text, runs)
    } == {1}


@pytest.mark.parametrize(
    "name", ["../../evil.json", "/etc/evil.json", "C:/evil.json", "a\\..\\..\\evil.json"]
)
def test_paths_outside_the_archive(tmp_path, name):
    with pytest.raises(InvalidInput, match="a path outside the archive; nothing is imported"):
        read(archive(tmp_path / "a.zip", {name: "[]"}))


def test_links_in_an_archive(tmp_path):
    link = zipfile.ZipInfo("data.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr(link, "/etc/passwd")
    with pytest.raises(InvalidInput, match="a link; nothing is imported"):
        read(tmp_path / "a.zip")


def test_archives_that_are_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_UNPACKED", 2**20)
    path = archive(tmp_path / "a.zip", {"a.json": "[" + " " * 2**20 + "]"})
    with pytest.raises(InvalidInput, match="would unpack to more than 1 MiB"):
        read(path)
    monkeypatch.setattr(files, "MOST_MEMBERS", 2)
    with pytest.raises(InvalidInput, match="holds 3 files; at most 2 are read"):
        read(archive(tmp_path / "b.zip", {f"{n}.json": "[]" for n in range(3)}))


def test_an_archive_that_declares_false_sizes(tmp_path, monkeypatch):
    """The limit applies to the bytes that are read, whatever sizes the archive declares."""
    monkeypatch.setattr(files, "LARGEST_UNPACKED", 2**20)
    path = archive(tmp_path / "a.zip", {"a.json": "[" + " " * 2**21 + "]"})
    content = path.read_bytes()
    path.write_bytes(content.replace((2**21 + 2).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    with pytest.raises(InvalidInput):
        read(path)


@pytest.mark.parametrize("cut", [30, 100, -30])
def test_a_damaged_archive(tmp_path, cut):
    path = archive(tmp_path / "a.zip", {"a.json": json.dumps([{"rt": n} for n in range(100)])})
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InvalidInput):
        read(path)


def test_unreadable_files(tmp_path):
    with pytest.raises(NotFound, match=r"No file none\.json"):
        files.find_files(["none.json"])
    with pytest.raises(NotFound, match=r"is a folder without \.json"):
        files.find_files([tmp_path])
    with pytest.raises(InvalidInput, match="holds no results"):
        read(archive(tmp_path / "a.zip", {"picture.png": "x"}))
    with pytest.raises(
        InvalidInput, match="is an Office document such as an Excel workbook; save its sheet as CSV"
    ):
        read(archive(tmp_path / "a.xlsx", {"[Content_Types].xml": "x"}))
    (tmp_path / "a.csv").write_bytes(b"\xff\x00\xe9")
    with pytest.raises(InvalidInput, match="is not UTF-8 text"):
        read(tmp_path / "a.csv")
    archive(tmp_path / "book.csv", {"xl/workbook.xml": "é"})
    with pytest.raises(InvalidInput, match="perhaps an Excel workbook"):
        read(tmp_path / "book.csv")


def test_utf_16(tmp_path):
    (tmp_path / "a.csv").write_text("same,note\n1,é\n", encoding="utf-16")
    (row,) = read(tmp_path / "a.csv")
    assert row.cells == {"same": "1", "note": "é"}


def test_an_archive_with_a_damaged_member(tmp_path):
    path = archive(tmp_path / "a.zip", {"data.csv": "x,y\n" * 1000})
    content = bytearray(path.read_bytes())
    content[38:42] = b"\xff" * 4  # the compressed data begin after a header of 30 bytes and the name
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="cannot be read as a zip archive"):
        read(path)


def test_the_message_of_a_broken_archive_is_short(tmp_path):
    """The name in the header of the member is made 2000 bytes long, which zipfile quotes."""
    path = archive(tmp_path / "a.zip", {"data.csv": "".join(map(chr, range(33, 3000)))})
    content = bytearray(path.read_bytes())
    content[26:28] = (2000).to_bytes(2, "little")
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="cannot be read as a zip archive") as caught:
        read(path)
    assert len(str(caught.value)) < 500
