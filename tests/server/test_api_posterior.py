"""The posterior by a script: worked out in the background, then arrays, NumPy and pictures that belong together."""

import io

import numpy as np
import pytest
from PIL import Image

from adaptive_participants import ADAPTIVE_STUDY, begin_adaptive_session
from researchers import run_server_with_api_client
from servers import STUDY

MANY = STUDY.replace("trials = 12, blocks = 2", "trials = 40, blocks = 1")
HERE = "studies/tiny/images/patches"


@pytest.fixture
def api(tmp_path):
    with run_server_with_api_client(f"sqlite:///{tmp_path}/vseg.db", MANY, ADAPTIVE_STUDY) as script:
        yield script


def waited_for(api, path):
    """What is there once it is."""
    while (answer := api.get(path)).status_code == 202:
        assert answer.headers["retry-after"] == "1"
        assert "being worked out" in answer.json()["message"]
    return answer


def test_maps_with_their_intervals(api):
    assert api.get(f"{HERE}/posterior.json").json()["message"] == (
        "A posterior needs at least 8 answers that count, got 0."
    )
    person = api.take_part()
    assert api.get(f"{HERE}/posterior.json").status_code == 202, "a request never waits for it"
    answer = waited_for(api, f"{HERE}/posterior.json")
    found = answer.json()
    p, lower, upper = (np.array(found[name]) for name in ("probabilities", "lower", "upper"))
    assert p.shape == lower.shape == upper.shape == (16, found["segments"])
    assert (lower <= upper).all()
    assert found["labels"] == p.argmax(axis=1).tolist()
    assert found["entropy_low"] < found["mean_entropy"] < found["entropy_high"]
    assert found["segments"] == found["segments_by_evidence"]
    assert found["segments"] in found["segments_plausible"]
    assert [row["segments"] for row in found["segments_table"]][:2] == [2, 3]
    assert (found["answers"], found["current"], found["by_chooser"]) == (40, True, False)
    assert found["lapses_estimated"]
    tag = {"If-None-Match": answer.headers["etag"]}
    assert api.get(f"{HERE}/posterior.json", headers=tag).status_code == 304

    file = np.load(io.BytesIO(api.get(f"{HERE}/posterior.npz").content))
    assert np.allclose(file["upper"], upper, atol=1e-5)
    names = ("segmentation", "width", "entropy", "probability-0", "width-1")
    pictures = {name: api.get(f"{HERE}/posterior/{name}.png") for name in names}
    for name, picture in pictures.items():
        with Image.open(io.BytesIO(picture.content)) as opened:
            assert opened.size == (384, 384), name
    assert api.get(f"{HERE}/posterior/width-9.png").status_code == 422
    assert api.get(f"{HERE}/posterior/probability-9.png").status_code == 422

    mine = waited_for(
        api, f"{HERE}/posterior.json?segments=3&participant={person.state['participant']}"
    ).json()
    assert (mine["segments"], mine["segments_table"], mine["segments_plausible"]) == (3, [], [3])

    api.take_part()
    later = api.get(f"{HERE}/posterior.json")
    assert later.status_code == 200, "the one before, until the next is there"
    assert later.json()["current"] is (later.json()["answers"] == 80)
    kept = api.get(f"{HERE}/posterior/width.png?mark={found['mark']}")
    assert kept.content == pictures["width"].content, "a page's pictures stay those of its numbers"


def test_what_an_adaptive_study_chooses_by(api):
    one = begin_adaptive_session(api.server)
    one.answer_patiently(range(20))
    who, trials = one.person.state["participant"], one.person.state["trials"]
    counting = [item for item in range(20) if not (trials["practice"][item] or trials["catch"][item])]
    found = waited_for(api, f"studies/ada/images/patches/posterior.json?participant={who}").json()
    assert (found["by_chooser"], found["lapses"], found["segments"]) == (True, [0.02, 0.02], 2)
    assert (found["answers"], found["current"]) == (len(counting), True)
    everyone = api.get("studies/ada/images/patches/posterior.json?segments=chooser")
    assert (everyone.status_code, "has a chooser" in everyone.json()["message"]) == (422, True)


def test_a_mark_is_of_its_own_study_image_participant_and_kind(api):
    """Whoever has one sees with it what they could see without, and nothing else."""
    person = api.take_part()
    who = person.state["participant"]
    ours = waited_for(api, f"{HERE}/posterior.json?segments=2").json()
    mine = waited_for(api, f"{HERE}/posterior.json?segments=2&participant={who}").json()
    assert ours["mark"] != mine["mark"]
    for path, mark in {
        f"{HERE}/posterior.json?segments=2": mine["mark"],
        f"{HERE}/posterior.json?segments=2&participant={who}": ours["mark"],
    }.items():
        found = api.get(f"{path}&mark={mark}").json()
        assert found["mark"] != mark, path
    assert waited_for(api, f"{HERE}/posterior.json?segments=3&mark={ours['mark']}").json()["segments"] == 3
    assert api.get(f"{HERE}/posterior.json?participant=nobody&mark={ours['mark']}").status_code == 404
    elsewhere = api.get(f"studies/ada/images/patches/posterior.json?segments=2&mark={ours['mark']}")
    assert elsewhere.json()["message"] == "A posterior needs at least 8 answers that count, got 0."

    api.take_part()
    old = api.get(f"{HERE}/posterior.json?segments=2&mark={ours['mark']}").json()
    assert (old["answers"], old["current"]) == (40, False), "newer answers are known of"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("patches/posterior.json?segments=1", 422),
        ("patches/posterior.json?segments=13", 422),
        ("patches/posterior.json?segments=much", 422),
        ("patches/posterior.json?segments=chooser", 422),
        ("patches/posterior.json?participant=nobody", 404),
        ("practice/posterior.json", 404),
        ("nope/posterior/width.png", 404),
    ],
)
def test_what_is_not_there(api, path, status):
    answer = api.get(f"studies/tiny/images/{path}")
    assert (answer.status_code, bool(answer.json()["message"])) == (status, True)


def test_it_is_described(api):
    described = api.get("openapi.json").json()
    route = described["paths"]["/studies/{name}/images/{image}/posterior.json"]["get"]
    assert {"200", "202", "401", "404", "422"} <= set(route["responses"])
    fields = described["components"]["schemas"]["PosteriorAsArrays"]["properties"]
    assert {"lower", "upper", "segments_plausible", "warning", "lapses"} <= set(fields)
