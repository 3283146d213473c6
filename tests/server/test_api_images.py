"""Test the maps of the API: arrays, NumPy files, pictures and figures; missing answers; ETags."""

import io

import numpy as np
import pytest
from PIL import Image

from researchers import run_server_with_api_client
from servers import STUDY, event
from vseg import Maps

FORTY_PAIRS = STUDY.replace("trials = 12, blocks = 2", "trials = 40, blocks = 1")


@pytest.fixture
def api(database_url):
    with run_server_with_api_client(database_url, FORTY_PAIRS) as client:
        yield client


@pytest.fixture
def sqlite_api(tmp_path):
    """Return a client of a server on SQLite, for what does not depend on the database."""
    with run_server_with_api_client(f"sqlite:///{tmp_path}/vseg.db", FORTY_PAIRS) as client:
        yield client


def test_maps_as_arrays(api, tmp_path):
    participant = api.take_part()
    found = api.get("studies/tiny/images/patches/maps.json").json()
    assert (found["segments"], found["answers"], found["needed"], found["advised"]) == (2, 40, 16, 200)
    p = np.array(found["probabilities"])
    assert p.shape == (16, 2)
    assert np.allclose(p.sum(axis=1), 1, atol=1e-5)
    assert found["labels"] == p.argmax(axis=1).tolist()
    assert len(found["entropy"]) == len(found["positions"]) == 16
    three = api.get("studies/tiny/images/patches/maps.json?segments=3&smoothness=1").json()
    assert (three["segments"], three["smoothness"], len(three["probabilities"][0])) == (3, 1.0, 3)
    file = tmp_path / "maps.npz"
    file.write_bytes(api.get("studies/tiny/images/patches/maps.npz?segments=3&smoothness=1").content)
    assert np.allclose(Maps.load(file).probabilities, three["probabilities"], atol=1e-5)
    own = api.get(
        f"studies/tiny/images/patches/maps.json?participant={participant.state['participant']}"
    ).json()
    assert own["probabilities"] == found["probabilities"], "this is the only participant"


def test_too_few_answers_return_how_many_pairs_are_missing(sqlite_api):
    answer = sqlite_api.get("studies/tiny/images/patches/maps.json?segments=3")
    assert answer.status_code == 422
    assert answer.json()["message"] == (
        "Only 0 distinct pairs were answered; a map of 3 segments on 16 locations needs at least 32: 32 are missing."
    )
    assert sqlite_api.get("studies/tiny/images/patches/segmentation.png").status_code == 422


def test_pictures(sqlite_api):
    sqlite_api.take_part()
    for name in ("segmentation", "entropy", "probability-0", "probability-1"):
        answer = sqlite_api.get(f"studies/tiny/images/patches/{name}.png")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
        with Image.open(io.BytesIO(answer.content)) as picture:
            assert picture.size == (384, 384)
    assert sqlite_api.get("studies/tiny/images/patches/probability-2.png").status_code == 422


@pytest.mark.parametrize(
    ("kind", "media_type", "magic"),
    [
        ("png", "image/png", b"\x89PNG"),
        ("svg", "image/svg+xml", b"<?xml"),
        ("pdf", "application/pdf", b"%PDF"),
    ],
)
def test_figures(sqlite_api, kind, media_type, magic):
    sqlite_api.take_part()
    answer = sqlite_api.get(f"studies/tiny/images/patches/figure.{kind}")
    assert answer.headers["content-type"].startswith(media_type)
    assert answer.content.startswith(magic)


def test_unchanged_maps_return_304(api):
    api.take_part()
    for path in ("maps.json", "maps.npz", "segmentation.png", "entropy.png", "probability-0.png"):
        first = api.get(f"studies/tiny/images/patches/{path}")
        headers = {"If-None-Match": first.headers["etag"]}
        assert first.headers["cache-control"] == "private, no-cache"
        assert api.get(f"studies/tiny/images/patches/{path}", headers=headers).status_code == 304
        assert api.get(f"studies/tiny/images/patches/{path}?smoothness=2", headers=headers).status_code == 200
        assert api.get(f"studies/tiny/images/patches/{path}?segments=3", headers=headers).status_code == 200
    api.take_part()
    assert api.get(f"studies/tiny/images/patches/{path}", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("patches/maps.json?segments=1", 422),
        ("patches/maps.json?segments=13", 422),
        ("patches/maps.json?segments=x", 422),
        ("patches/maps.json?smoothness=much", 422),
        ("patches/maps.json?smoothness=nan", 422),
        ("patches/maps.json?smoothness=-1", 422),
        ("patches/maps.json?participant=nobody", 404),
        ("practice/maps.json", 404),
        ("nope/maps.json", 404),
        ("nope/contours.json", 404),
        ("patches/figure.gif", 422),
        ("patches/nothing.png", 404),
    ],
)
def test_invalid_paths_and_parameters(sqlite_api, path, status):
    sqlite_api.take_part()
    answer = sqlite_api.get(f"studies/tiny/images/{path}")
    assert (answer.status_code, bool(answer.json()["message"])) == (status, True)


def test_contours(sqlite_api):
    first, second = sqlite_api.server.begin(), sqlite_api.server.begin()
    lines = [[[10.5, 20.0], [30.0, 40.0]]]
    drawn = {"image": "patches", "contours": lines, "width_px": 512, "height_px": 512}
    first.send(event(0, "contours", **drawn))
    second.send(event(0, "contours", **drawn | {"contours": "none"}))
    found = sqlite_api.get("studies/tiny/images/patches/contours.json").json()
    assert [(drawing["participant"], drawing["data"]["contours"]) for drawing in found] == [
        (first.state["participant"], lines)
    ]
    none = sqlite_api.get(
        f"studies/tiny/images/patches/contours.json?participant={second.state['participant']}"
    )
    assert none.json() == []
