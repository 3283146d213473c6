"""Maps by a script: arrays, NumPy, pictures and figures; what is missing; nothing new is 304."""

import io

import numpy as np
import pytest
from PIL import Image

from researchers import run_server_with_api_client
from servers import STUDY, event
from vseg import Maps

MANY = STUDY.replace("trials = 12, blocks = 2", "trials = 40, blocks = 1")


@pytest.fixture
def api(database_url):
    with run_server_with_api_client(database_url, MANY) as script:
        yield script


@pytest.fixture
def small(tmp_path):
    with run_server_with_api_client(f"sqlite:///{tmp_path}/vseg.db", MANY) as script:
        yield script


def test_maps_as_arrays(api, tmp_path):
    person = api.take_part()
    found = api.get("studies/tiny/images/patches/maps.json").json()
    assert (found["segments"], found["answers"], found["needed"], found["advised"]) == (2, 40, 16, 32)
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
    mine = api.get(f"studies/tiny/images/patches/maps.json?participant={person.state['participant']}").json()
    assert mine["probabilities"] == found["probabilities"], "there is nobody else"


def test_too_few_answers_say_how_many_are_missing(small):
    answer = small.get("studies/tiny/images/patches/maps.json?segments=3")
    assert answer.status_code == 422
    assert answer.json()["message"] == (
        "Only 0 distinct pairs were answered; a map of 3 segments on 16 locations needs at least 32: 32 are missing."
    )
    assert small.get("studies/tiny/images/patches/segmentation.png").status_code == 422


def test_pictures(small):
    small.take_part()
    for name in ("segmentation", "entropy", "probability-0", "probability-1"):
        answer = small.get(f"studies/tiny/images/patches/{name}.png")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
        with Image.open(io.BytesIO(answer.content)) as picture:
            assert picture.size == (384, 384)
    assert small.get("studies/tiny/images/patches/probability-2.png").status_code == 422


@pytest.mark.parametrize(
    ("kind", "media_type", "begins"),
    [
        ("png", "image/png", b"\x89PNG"),
        ("svg", "image/svg+xml", b"<?xml"),
        ("pdf", "application/pdf", b"%PDF"),
    ],
)
def test_figures(small, kind, media_type, begins):
    small.take_part()
    answer = small.get(f"studies/tiny/images/patches/figure.{kind}")
    assert answer.headers["content-type"].startswith(media_type)
    assert answer.content.startswith(begins)


def test_nothing_new_is_not_sent_again(api):
    api.take_part()
    for path in ("maps.json", "maps.npz", "segmentation.png", "entropy.png", "probability-0.png"):
        first = api.get(f"studies/tiny/images/patches/{path}")
        tag = {"If-None-Match": first.headers["etag"]}
        assert first.headers["cache-control"] == "no-cache"
        assert api.get(f"studies/tiny/images/patches/{path}", headers=tag).status_code == 304
        assert api.get(f"studies/tiny/images/patches/{path}?smoothness=2", headers=tag).status_code == 200
        assert api.get(f"studies/tiny/images/patches/{path}?segments=3", headers=tag).status_code == 200
    api.take_part()
    assert api.get(f"studies/tiny/images/patches/{path}", headers=tag).status_code == 200


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
def test_what_is_not_there(small, path, status):
    small.take_part()
    answer = small.get(f"studies/tiny/images/{path}")
    assert (answer.status_code, bool(answer.json()["message"])) == (status, True)


def test_contours(small):
    one, other = small.server.begin(), small.server.begin()
    lines = [[[10.5, 20.0], [30.0, 40.0]]]
    drawn = {"image": "patches", "contours": lines, "width_px": 512, "height_px": 512}
    one.send(event(0, "contours", **drawn))
    other.send(event(0, "contours", **drawn | {"contours": "none"}))
    found = small.get("studies/tiny/images/patches/contours.json").json()
    assert [(each["participant"], each["data"]["contours"]) for each in found] == [
        (one.state["participant"], lines)
    ]
    nobody = small.get(f"studies/tiny/images/patches/contours.json?participant={other.state['participant']}")
    assert nobody.json() == []
