"""Test how the dashboard shows posteriors and the choices of an adaptive study."""

import re

import numpy as np
import pytest

from adaptive_participants import ADAPTIVE_STUDY, STOPPING_STUDY, begin_adaptive_session
from researchers import BROWSER_HEADERS, log_in
from servers import STUDY, run_server
from vseg import Grid, Maps
from vseg.monitor import PosteriorStatus, PosteriorSummary
from vseg.server.dashboard.posteriors import PosteriorView

COMPUTING, REFRESH = "The posterior is being computed", '<noscript><meta http-equiv="refresh"'
FORTY_PAIRS = STUDY.replace("trials = 12, blocks = 2", "trials = 40, blocks = 1")


def test_pages_count_chosen_pairs_and_describe_an_early_stop(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db", STOPPING_STUDY) as running:
        log_in(running)
        session = begin_adaptive_session(running)
        while not session.stops:
            session.answer_patiently([session.seq])
        name = session.person.state["participant"]
        participant_page = running.client.get(
            f"studies/ada/participants/{name}", headers=BROWSER_HEADERS
        ).text
        answered = sum(not (row["practice"] or row["catch"]) for row in running.responses("ada"))
        sentence = (
            r"patches: precise enough after (\d+) answers \(expected error 0\.\d\d\d\); (\d+) were given\."
        )
        at_stop, given = map(int, re.search(sentence, participant_page).groups())
        assert at_stop <= given == answered
        page = running.client.get("studies/ada", headers=BROWSER_HEADERS).text
        assert f'<b data-testid="chosen">{answered - 6}</b> answers' in page
        assert "6 to the fixed pairs at the start · 0 to fixed pairs because no choice was ready" in page


def test_adaptive_study_shows_the_posterior_that_chooses_pairs_first(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db", ADAPTIVE_STUDY) as running:
        log_in(running)
        session = begin_adaptive_session(running)
        session.answer_patiently(range(20))
        name = session.person.state["participant"]
        image_path = f"studies/ada/images/patches?participant={name}"
        participant_page = running.client.get(f"studies/ada/participants/{name}").text
        image_page = running.client.get(image_path).text
        for page in (participant_page, image_page):
            assert page.index("used to choose pairs</span>") < page.index("Reconstruction</h")
        assert '<option value="chooser" selected>' in image_page
        while COMPUTING in (image_page := running.client.get(image_path).text):
            pass
        assert re.search(r'"posterior-segments">2, set by the study; the evidence favours \d<', image_page)
        all_participants = running.client.get("studies/ada/images/patches").text
        assert "used to choose pairs" not in all_participants, "each participant has a chooser of their own"


def test_posterior_appears_next_to_the_reconstruction(tmp_path):
    """A page first says that the posterior is being computed and, without scripts, reloads itself; then shows it."""
    with run_server(f"sqlite:///{tmp_path}/vseg.db", FORTY_PAIRS) as running:
        log_in(running)
        path = "studies/tiny/images/patches"
        assert "needs at least 8 answers" in running.client.get(path).text
        name = running.complete_session()
        assert "study-posterior" not in running.client.get("studies/tiny").text, "this page computes none"
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
        assert page.index("Reconstruction</h2>") < page.index("Posterior with intervals")
        assert re.search(
            r'data-testid="posterior-entropy">0\.\d\d nats, 90 % interval 0\.\d\d to 0\.\d\d<', page
        )
        assert re.search(r'data-testid="plausible">2', page)
        assert 'data-testid="posterior-segments">2, chosen by evidence<' in page
        assert ">ruled out<" in page
        for address in re.findall(r'src="/(api/[^"]+/posterior/[^"]+)"', page):
            assert running.client.get(address.replace("&amp;", "&")).headers["content-type"] == "image/png"
        study_page = running.client.get("studies/tiny").text
        assert re.search(
            r"nats\s+\[0\.\d\d, 0\.\d\d\], expected error 0\.\d\d\d, from 40 answers", study_page
        )
        same = running.client.get(f"{path}?segments=3&posterior=same").text
        assert '<option value="same" selected>' in same
        assert COMPUTING in running.client.get(f"studies/tiny/participants/{name}").text


@pytest.mark.parametrize(
    ("below_best", "plausible", "text"),
    [
        ((9.0, 1.0, 0.0, 1.5, 2.0), [3, 4, 5, 6, 7, 8], "3 to 6; larger K were not tried"),
        ((9.0, 1.0, 0.0, 1.5, 6.0), [3, 4, 5], "3 to 5"),
        ((0.0, 9.0, 3.0, 9.0, 9.0), [2, 4], "2, 4"),
        ((), [3], ""),
    ],
)
def test_only_tried_numbers_of_segments_are_plausible(below_best, plausible, text):
    table = [{"segments": k, "below_best": below} for k, below in enumerate(below_best, 2)]
    assert make_view("auto", table=table, plausible=plausible).plausible == text


def test_how_the_number_of_segments_was_chosen():
    table = [{"segments": k, "below_best": 0.0} for k in (2, 3)]
    assert make_view("auto", table=table).segments == "3, chosen by evidence"
    assert make_view("3").segments == "3, as in the reconstruction"
    chooser = make_view("chooser", table=table, chosen=2, by_chooser=True)
    assert chooser.segments == "3, set by the study; the evidence favours 2"


def make_view(segments: str, **fields) -> PosteriorView:
    maps = Maps(Grid(3), np.full((9, 3), 1 / 3))
    summary_fields = {
        "table": [],
        "chosen": 3,
        "plausible": [3],
        "lapses": (0.0, 0.0),
        "lapses_estimated": True,
    } | fields
    summary = PosteriorSummary(
        maps, maps.probabilities, maps.probabilities, 1.0, 0.9, 1.1, 0.1, **summary_fields,
        warning="", rhat=None, effective_draws=None, draws=1, trials=8, pairs=8,
    )  # fmt: skip
    return PosteriorView({"segments": segments}, 8, PosteriorStatus(summary, "mark", is_current=True))
