"""Test how the dashboard shows posteriors and the choices of an adaptive study."""

import re

import numpy as np
import pytest

from adaptive_participants import ADAPTIVE_STUDY, STOPPING_STUDY, begin_adaptive_session
from researchers import BROWSER_HEADERS, log_in
from servers import STUDY, pause, run_server
from vseg import Grid, Maps
from vseg.monitor import PosteriorStatus, PosteriorSummary
from vseg.server.dashboard.posteriors import PosteriorView
from vseg.study.schema import parse_study

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


def test_adaptive_study_offers_the_posterior_that_chooses_pairs(tmp_path):
    with run_server(f"sqlite:///{tmp_path}/vseg.db", ADAPTIVE_STUDY) as running:
        log_in(running)
        session = begin_adaptive_session(running)
        session.answer_patiently(range(20))
        name = session.person.state["participant"]
        image_path = f"studies/ada/images/patches?participant={name}"
        image_page = running.client.get(image_path).text
        assert '<option value="answers" selected>' in image_page
        assert '<option value="chooser">' in image_page
        while COMPUTING in (image_page := running.client.get(f"{image_path}&posterior=chooser").text):
            pause()
        assert '<option value="chooser" selected>' in image_page
        assert "used to choose pairs</span>" in image_page
        assert re.search(r'"posterior-segments">2, set by the study; the evidence favours \d<', image_page)
        all_participants = running.client.get("studies/ada/images/patches").text
        assert "used to choose pairs" not in all_participants, "each participant has a chooser of their own"


def test_posterior_appears_before_the_penalised_map(tmp_path):
    """A page first shows a preliminary map and, without scripts, reloads itself; then it shows the posterior."""
    with run_server(f"sqlite:///{tmp_path}/vseg.db", FORTY_PAIRS) as running:
        log_in(running)
        path = "studies/tiny/images/patches"
        assert "needs at least 8 answers" in running.client.get(path).text
        name = running.complete_session()
        study_page = running.client.get("studies/tiny").text
        for text in (
            COMPUTING,
            REFRESH,
            "Segments, preliminary",
            "a preliminary map by the penalised estimator",
        ):
            assert text in study_page
        assert "/posterior/" not in study_page
        first = running.client.get(path).text
        for text in (COMPUTING, REFRESH, ">preliminary, until the posterior is computed<"):
            assert text in first
        assert "posterior/width.png" not in first
        assert "posterior/figure.pdf" not in first
        live = running.client.get(f"{path}?part=live")
        while COMPUTING in (part := running.client.get(f"{path}?part=live")).text:
            pause()
        assert part.headers["etag"] != live.headers["etag"]
        page = running.client.get(path).text
        assert REFRESH not in page
        assert "preliminary" not in page
        assert page.index("Posterior with intervals") < page.index("Penalised estimator")
        assert 'data-testid="convergence">The chains agree (R-hat' in page
        for kind in ("pdf", "svg"):
            (download,) = re.findall(rf'href="/(api/[^"]+/posterior/figure\.{kind}[^"]+)"', page)
            assert running.client.get(download.replace("&amp;", "&")).status_code == 200
            assert re.search(rf'href="/api/[^"]+/images/patches/figure\.{kind}\?segments=2&', page)
        assert re.search(
            r'data-testid="posterior-entropy">0\.\d\d nats, 90 % interval 0\.\d\d to 0\.\d\d<', page
        )
        assert 'data-testid="posterior-segments">2, set by the study<' in page
        for address in re.findall(r'src="/(api/[^"]+/posterior/[^"]+)"', page):
            assert running.client.get(address.replace("&amp;", "&")).headers["content-type"] == "image/png"
        study_page = running.client.get("studies/tiny").text
        assert re.search(
            r"Posterior from 40 answers: 2 segments, set by the study; mean uncertainty 0\.\d\d nats\s+"
            r"\[0\.\d\d, 0\.\d\d\], expected error 0\.\d\d\d\.\s+The chains agree \(R-hat",
            study_page,
        )
        assert "preliminary" not in study_page
        assert "expected error: 0.17 now, 0.08 with the advised answers" in study_page
        assert "With 40 answers, expect the mean entropy to ±0.15 nats" in study_page
        for picture in ("segmentation", "entropy"):
            assert f"images/patches/posterior/{picture}.png?segments=2&" in study_page
            assert f"images/patches/{picture}.png" not in study_page
        assert COMPUTING in running.client.get(f"studies/tiny/participants/{name}").text


def test_free_number_of_segments_is_chosen_by_evidence(tmp_path):
    """Until it is chosen, pages show no map; then they show the posterior's number, and why."""
    free = FORTY_PAIRS.replace("segments = 2", 'segments = "free"')
    with run_server(f"sqlite:///{tmp_path}/vseg.db", free) as running:
        log_in(running)
        name = running.complete_session()
        paths = "studies/tiny", "studies/tiny/images/patches", f"studies/tiny/participants/{name}"
        for path in paths:
            page = running.client.get(path).text
            assert "Number of segments not chosen yet" in page
            for words in (
                "are advised for one participant",
                "(assuming 5 segments)",
            ):  # help may be between them
                assert path == paths[2] or words in page
            assert "segmentation.png" not in page
        assert (
            '<option value="auto" selected>chosen by evidence</option>' in running.client.get(paths[1]).text
        )
        study_page, image_page, participant_page = (wait_for_posterior(running, path) for path in paths)
        assert re.search(r"2 segments, chosen by evidence \(plausible: 2", study_page)
        assert 'data-testid="posterior-segments">2, chosen by evidence<' in image_page
        assert re.search(r'data-testid="plausible">2', image_page)
        assert ">ruled out<" in image_page
        assert "2, chosen by evidence from all participants’ answers<" in participant_page
        assert "images/patches/segmentation.png?segments=2&" in image_page
        three = running.client.get(f"{paths[1]}?segments=3").text
        assert '<option value="3" selected>' in three
        assert COMPUTING in three


def wait_for_posterior(running, path: str) -> str:
    """Return a page once its posterior is computed."""
    while COMPUTING in (page := running.client.get(path).text):
        pause()
    return page


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
    assert make_view("3").segments == "3, set by the study"
    assert make_view("3", study_segments=2).segments == "3, as selected"
    chooser = {"table": table, "chosen": 2, "by_chooser": True}
    assert make_view("chooser", **chooser).segments == "3, set by the study; the evidence favours 2"
    assert make_view("chooser", study_segments='"free"', **chooser).segments == (
        "3, assumed, since the study leaves it free; the evidence favours 2"
    )


def make_view(segments: str, study_segments: object = 3, **fields) -> PosteriorView:
    study = parse_study(STUDY.replace("segments = 2", f"segments = {study_segments}"))
    maps = Maps(Grid(3), np.full((9, 3), 1 / 3))
    summary_fields = {
        "table": [],
        "chosen": 3,
        "plausible": [3],
        "lapses": (0.0, 0.0),
        "lapses_estimated": True,
    } | fields
    summary = PosteriorSummary(
        maps, maps.probabilities, maps.probabilities, maps.entropy, 1.0, 0.9, 1.1, 0.1, **summary_fields,
        converged=True, convergence="", rhat=None, effective_draws=None, draws=1, trials=8, pairs=8,
    )  # fmt: skip
    return PosteriorView(study, {"segments": segments}, 8, PosteriorStatus(summary, "mark", is_current=True))
