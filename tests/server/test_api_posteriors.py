"""Test the posterior in the API: computed in the background, then arrays, a NumPy file and matching pictures."""

import io

import numpy as np
import pytest
from PIL import Image

from adaptive_participants import ADAPTIVE_STUDY, begin_adaptive_session
from researchers import run_server_with_api_client
from servers import STUDY, pause

FORTY_PAIRS = STUDY.replace("trials = 12, blocks = 2", "trials = 40, blocks = 1")
IMAGE = "studies/tiny/images/patches"


@pytest.fixture
def api(tmp_path):
    with run_server_with_api_client(f"sqlite:///{tmp_path}/vseg.db", FORTY_PAIRS, ADAPTIVE_STUDY) as client:
        yield client


def wait_for(api, path):
    """Repeat a request until the posterior is computed; return the response."""
    while (answer := api.get(path)).status_code == 202:
        assert answer.headers["retry-after"] == "1"
        assert "being computed" in answer.json()["message"]
        pause()
    return answer


def test_maps_with_intervals(api):
    assert api.get(f"{IMAGE}/posterior.json").json()["message"] == (
        "A posterior needs at least 8 answers that count, got 0."
    )
    participant = api.take_part()
    assert api.get(f"{IMAGE}/posterior.json").status_code == 202, (
        "a request does not wait for the computation"
    )
    answer = wait_for(api, f"{IMAGE}/posterior.json")
    found = answer.json()
    p, lower, upper = (np.array(found[name]) for name in ("probabilities", "lower", "upper"))
    assert p.shape == lower.shape == upper.shape == (16, found["segments"])
    assert (lower <= upper).all()
    assert found["labels"] == p.argmax(axis=1).tolist()
    assert found["entropy_low"] < found["mean_entropy"] < found["entropy_high"]
    assert (found["segments"], found["segments_table"]) == (2, []), "the study asks for two"
    assert (found["answers"], found["current"], found["by_chooser"]) == (40, True, False)
    assert found["lapses_estimated"]
    assert found["convergence"].startswith("The chains agree (R-hat 1.")
    assert (found["converged"], found["warning"]) == (True, "")
    of_median = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1)
    assert len(found["entropy"]) == 16
    assert np.mean(found["entropy"]) == pytest.approx(found["mean_entropy"], abs=0.05)
    assert abs(of_median.mean() - found["mean_entropy"]) > 0.1, "not the entropy of the median maps"
    headers = {"If-None-Match": answer.headers["etag"]}
    assert api.get(f"{IMAGE}/posterior.json", headers=headers).status_code == 304

    file = np.load(io.BytesIO(api.get(f"{IMAGE}/posterior.npz").content))
    assert np.allclose(file["upper"], upper, atol=1e-5)
    names = ("segmentation", "width", "entropy", "probability-0", "width-1")
    pictures = {name: api.get(f"{IMAGE}/posterior/{name}.png") for name in names}
    for name, picture in pictures.items():
        with Image.open(io.BytesIO(picture.content)) as opened:
            assert opened.size == (384, 384), name
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        assert api.get(f"{IMAGE}/posterior/figure.{kind}").content.startswith(start)
    low, high = found["entropy_low"], found["entropy_high"]
    figure = api.get(f"{IMAGE}/posterior/figure.svg").text
    assert f"<!-- {found['mean_entropy']:.2f} [{low:.2f}, {high:.2f}] nats -->" in figure
    assert api.get(f"{IMAGE}/posterior/width-9.png").status_code == 422
    assert api.get(f"{IMAGE}/posterior/probability-9.png").status_code == 422

    own = wait_for(
        api, f"{IMAGE}/posterior.json?segments=3&participant={participant.state['participant']}"
    ).json()
    assert (own["segments"], own["segments_table"], own["segments_plausible"]) == (3, [], [3])

    api.take_part()
    later = api.get(f"{IMAGE}/posterior.json")
    assert later.status_code == 200, "the previous posterior, until the next is computed"
    assert later.json()["current"] is (later.json()["answers"] == 80)
    earlier = api.get(f"{IMAGE}/posterior/width.png?mark={found['mark']}")
    assert earlier.content == pictures["width"].content, "the mark selects the earlier posterior"


def test_free_number_of_segments(tmp_path):
    """K is chosen by the evidence of all answers, also for one participant; other maps ask for it."""
    free = FORTY_PAIRS.replace("segments = 2", 'segments = "free"')
    with run_server_with_api_client(f"sqlite:///{tmp_path}/vseg.db", free) as api:
        name = api.take_part().state["participant"]
        api.take_part()
        own = wait_for(api, f"{IMAGE}/posterior.json?participant={name}").json()
        found = wait_for(api, f"{IMAGE}/posterior.json").json()
        assert [row["segments"] for row in found["segments_table"]][:2] == [2, 3]
        assert found["segments"] == found["segments_by_evidence"]
        assert found["segments"] in found["segments_plausible"]
        assert (own["segments"], own["segments_table"], own["answers"]) == (found["segments"], [], 40)
        refused = api.get(f"{IMAGE}/maps.json")
        assert refused.status_code == 422
        assert refused.json()["message"] == (
            "Study 'tiny' leaves the number of segments free; give segments as a number from 2 to 12, or get the "
            "posterior, which chooses it by evidence."
        )
        assert api.get(f"{IMAGE}/maps.json?segments=2").status_code == 200


def test_posterior_that_chooses_pairs(api):
    session = begin_adaptive_session(api.server)
    session.answer_patiently(range(20))
    name, trials = session.person.state["participant"], session.person.state["trials"]
    in_use = [item for item in range(20) if trials["image"][item] != "practice"]
    image = "studies/ada/images/patches"
    found = wait_for(api, f"{image}/posterior.json?segments=chooser&participant={name}").json()
    assert (found["by_chooser"], found["lapses"], found["segments"]) == (True, [0.02, 0.02], 2)
    assert (found["answers"], found["current"]) == (len(in_use), True)
    default = wait_for(api, f"{image}/posterior.json?participant={name}").json()
    assert (default["by_chooser"], default["lapses_estimated"], default["segments"]) == (False, True, 2)
    for_all = api.get(f"{image}/posterior.json?segments=chooser")
    assert (for_all.status_code, "have a chooser" in for_all.json()["message"]) == (422, True)


def test_mark_is_valid_for_its_study_image_participant_and_segments_only(api):
    """A mark gives no access to posteriors that the request could not get without it."""
    participant = api.take_part()
    name = participant.state["participant"]
    of_all = wait_for(api, f"{IMAGE}/posterior.json?segments=2").json()
    of_one = wait_for(api, f"{IMAGE}/posterior.json?segments=2&participant={name}").json()
    assert of_all["mark"] != of_one["mark"]
    for path, mark in {
        f"{IMAGE}/posterior.json?segments=2": of_one["mark"],
        f"{IMAGE}/posterior.json?segments=2&participant={name}": of_all["mark"],
    }.items():
        found = api.get(f"{path}&mark={mark}").json()
        assert found["mark"] != mark, path
    assert wait_for(api, f"{IMAGE}/posterior.json?segments=3&mark={of_all['mark']}").json()["segments"] == 3
    assert api.get(f"{IMAGE}/posterior.json?participant=nobody&mark={of_all['mark']}").status_code == 404
    elsewhere = api.get(f"studies/ada/images/patches/posterior.json?segments=2&mark={of_all['mark']}")
    assert elsewhere.json()["message"] == "A posterior needs at least 8 answers that count, got 0."

    api.take_part()
    old = api.get(f"{IMAGE}/posterior.json?segments=2&mark={of_all['mark']}").json()
    assert (old["answers"], old["current"]) == (40, False), "there are newer answers"


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
def test_invalid_paths_and_parameters(api, path, status):
    answer = api.get(f"studies/tiny/images/{path}")
    assert (answer.status_code, bool(answer.json()["message"])) == (status, True)


def test_posterior_is_in_the_schema(api):
    schema = api.get("openapi.json").json()
    route = schema["paths"]["/studies/{name}/images/{image}/posterior.json"]["get"]
    assert {"200", "202", "401", "404", "422"} <= set(route["responses"])
    fields = schema["components"]["schemas"]["PosteriorAsArrays"]["properties"]
    assert {"lower", "upper", "segments_plausible", "convergence", "warning", "lapses"} <= set(fields)
