"""The researcher's pages of what is believed: posteriors beside classic maps, and what an adaptive study chose."""

import re

import numpy as np
import pytest

from adaptive_participants import ADAPTIVE_STUDY, STOPPING_STUDY, begin_adaptive_session
from researchers import BROWSER_HEADERS, log_in
from servers import STUDY, run_server
from vseg import Grid, Maps
from vseg.monitor import Believed, Standing
from vseg.server.dashboard.posteriors import PosteriorView

COMPUTING, REFRESH = "The posterior is being computed", '<noscript><meta http-equiv="refresh"'
ENOUGH = STUDY.replace("trials = 12, blocks = 2", "trials = 40, blocks = 1")


def test_what_an_adaptive_study_chose_and_where_it_stopped(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db", STOPPING_STUDY) as running:
        log_in(running)
        one = begin_adaptive_session(running)
        while not one.stops:
            one.answer_patiently([one.seq])
        who = one.person.state["participant"]
        person = running.client.get(f"studies/ada/participants/{who}", headers=BROWSER_HEADERS).text
        real = sum(not (row["practice"] or row["catch"]) for row in running.responses("ada"))
        said = (
            r"patches: known well enough after (\d+) answers \(expected error 0\.\d\d\d\); (\d+) were given\."
        )
        known, given = map(int, re.search(said, person).groups())
        assert known <= given == real
        page = running.client.get("studies/ada", headers=BROWSER_HEADERS).text
        assert f'<b data-testid="chosen">{real - 6}</b> answers' in page
        assert "6 to fixed pairs at first · 0 fell back" in page


def test_an_adaptive_study_shows_first_what_its_pairs_are_chosen_by(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db", ADAPTIVE_STUDY) as running:
        log_in(running)
        one = begin_adaptive_session(running)
        one.answer_patiently(range(20))
        who = one.person.state["participant"]
        person = running.client.get(f"studies/ada/participants/{who}").text
        mine = running.client.get(f"studies/ada/images/patches?participant={who}").text
        for page in (person, mine):
            assert page.index("pairs are chosen by it") < page.index("Classic map")
        assert '<option value="chooser" selected>' in mine
        while COMPUTING in (mine := running.client.get(f"studies/ada/images/patches?participant={who}").text):
            pass
        assert re.search(r'"believed-segments">2, the study’s; the evidence would choose \d<', mine)
        everyone = running.client.get("studies/ada/images/patches").text
        assert "pairs are chosen by it" not in everyone, "each is asked by their own answers"


def test_the_posterior_beside_the_classic_map(tmp_path):
    """At first a page says that it is being computed and, without script, looks again; then it is there."""
    with run_server(f"sqlite:///{tmp_path}/vseg.db", ENOUGH) as running:
        log_in(running)
        path = "studies/tiny/images/patches"
        assert "needs at least 8 answers" in running.client.get(path).text
        who = running.complete_session()
        assert "study-posterior" not in running.client.get("studies/tiny").text, "it begins none"
        first = running.client.get(path).text
        assert COMPUTING in first
        assert REFRESH in first
        assert "posterior/width.png" not in first
        live = running.client.get(f"{path}?part=live")
        while COMPUTING in (part := running.client.get(f"{path}?part=live")).text:
            pass
        assert part.headers["etag"] != live.headers["etag"]
        page = running.client.get(path).text
        assert REFRESH not in page
        assert page.index("Classic map") < page.index("Posterior, with its intervals")
        assert re.search(
            r'data-testid="believed-entropy">0\.\d\d nats, 90 % interval 0\.\d\d to 0\.\d\d<', page
        )
        assert re.search(r'data-testid="plausible">2', page)
        assert 'data-testid="believed-segments">2, chosen by the evidence<' in page
        assert ">ruled out<" in page
        for address in re.findall(r'src="/(api/[^"]+/posterior/[^"]+)"', page):
            assert running.client.get(address.replace("&amp;", "&")).headers["content-type"] == "image/png"
        known = running.client.get("studies/tiny").text
        assert re.search(r"nats\s+\[0\.\d\d, 0\.\d\d\], expected error 0\.\d\d\d, from 40 answers", known)
        same = running.client.get(f"{path}?segments=3&posterior=same").text
        assert '<option value="same" selected>' in same
        assert COMPUTING in running.client.get(f"studies/tiny/participants/{who}").text


@pytest.mark.parametrize(
    ("below_best", "plausible", "said"),
    [
        ((9.0, 1.0, 0.0, 1.5, 2.0), [3, 4, 5, 6, 7, 8], "3 to 6; more were not tried"),
        ((9.0, 1.0, 0.0, 1.5, 6.0), [3, 4, 5], "3 to 5"),
        ((0.0, 9.0, 3.0, 9.0, 9.0), [2, 4], "2, 4"),
        ((), [3], ""),
    ],
)
def test_only_numbers_of_segments_that_were_tried_are_plausible(below_best, plausible, said):
    table = [{"segments": k, "below_best": below} for k, below in enumerate(below_best, 2)]
    assert believing("auto", table=table, plausible=plausible).plausible == said


def test_whose_number_of_segments_it_is():
    table = [{"segments": k, "below_best": 0.0} for k in (2, 3)]
    assert believing("auto", table=table).segments == "3, chosen by the evidence"
    assert believing("3").segments == "3, as in the classic map"
    chooser = believing("chooser", table=table, chosen=2, by_chooser=True)
    assert chooser.segments == "3, the study’s; the evidence would choose 2"


def believing(asked: str, **about) -> PosteriorView:
    maps = Maps(Grid(3), np.full((9, 3), 1 / 3))
    known = {
        "table": [],
        "chosen": 3,
        "plausible": [3],
        "lapses": (0.0, 0.0),
        "lapses_estimated": True,
    } | about
    found = Believed(
        maps, maps.probabilities, maps.probabilities, 1.0, 0.9, 1.1, 0.1, **known,
        warning="", rhat=None, effective_draws=None, draws=1, trials=8, pairs=8,
    )  # fmt: skip
    return PosteriorView({"segments": asked}, 8, Standing(found, "mark", is_current=True))
