"""Test that every route from the same answers and seed gives the same posterior: K, mean entropy and its interval.

The answers are collected by a real server from simulated participants with catch trials. The routes are the functions
of Python, the command, the monitor, the researchers' API, the dashboard and the figures.
"""

import csv
import json
import re
from typing import NamedTuple

import numpy as np
import pytest

import vseg
from commands import vseg as run_command
from researchers import BROWSER_HEADERS, CHEAP_HASHER, NAME, PASSWORD, post_form
from servers import pause, run_server
from vseg import bots, figures, monitor, store
from vseg.data.catch_trials import choose_lapses, count_catch_trials, sum_catch_trials
from vseg.data.pairs import Pairs
from vseg.data.responses import Responses, Tally
from vseg.monitor.posterior_summary import collect_inputs, compute_posterior

STUDY = """
name = "routes"
segments = {segments}
participants = 2
layout = {{grid = 4}}
images = [{{name = "warm", colours = 2}}, {{name = "cold", colours = 2, seed = 3}}]
assignment = {{images = "within"}}
design = {{blocks = 2}}
practice = {{trials = 2}}
catch = {{per_block = 3}}
"""
pytestmark = pytest.mark.usefixtures("patient_server")
LONG_S = 60


class Answer(NamedTuple):
    """What a route says."""

    segments: int
    entropy: float
    low: float
    high: float


def of_posterior(posterior) -> Answer:
    return Answer(posterior.segments, posterior.entropy, *posterior.entropy_interval)


def of_summary(summary) -> Answer:
    """Return what summary.json, a row of participants.csv, or posterior.json says."""
    names = ("mean_entropy", "entropy_low", "entropy_high")
    return Answer(int(summary["segments"]), *(float(summary[name]) for name in names))


@pytest.fixture(scope="module", params=["2", '"free"'], ids=["fixed", "free"])
def collected(request, tmp_path_factory):
    """Collect answers; yield the server with a logged-in client, and the exported folder."""
    folder = tmp_path_factory.mktemp("routes")
    url = f"sqlite:///{folder}/vseg.db"
    with run_server(url, STUDY.format(segments=request.param)) as running:
        bots.run_bots(f"{running.base}s/routes/", count=2, observer="lapsing:0.1", seed=0)
        store.researchers.set_password(running.db, NAME, CHEAP_HASHER.hash(PASSWORD))
        assert post_form(running.client, "login", name=NAME, password=PASSWORD).status_code == 303
        with pytest.raises(SystemExit) as ended:
            vseg.cli.main(["export", "routes", "--db", url, "--out", f"{folder}/exported"])
        assert ended.value.code == 0
        yield running, folder / "exported"


@pytest.fixture(scope="module")
def expected(collected):
    """Return a function that computes the posterior of all participants' answers about an image, or of one's."""
    _, folder = collected
    catch, responses = count_catch_trials(folder), vseg.load(folder)
    assert sum(asked for _, asked in catch.values()) > 0

    def compute(image: str = "warm", participant: str | None = None, segments=None):
        answers = responses.select(image=image)
        own = answers if participant is None else answers.select(participant=participant)
        return vseg.posterior(
            own,
            segments=segments or get_segments(collected),
            lapses=choose_lapses(catch),
            catch=sum_catch_trials(catch, own.participants),
            seed=0,
        )

    return compute


@pytest.fixture(scope="module")
def of_all(expected):
    return expected()


def get_segments(collected) -> int | str:
    study = store.studies.get_study(collected[0].db, "routes").study
    return "auto" if study.segments == "free" else study.segments


def get_json(running, path: str):
    """Repeat a request to the API until the posterior is computed."""
    while (answer := running.client.get(f"api/studies/routes/images/{path}")).status_code == 202:
        pause()
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_python_and_the_command(collected, of_all, tmp_path, capsys):
    _, folder = collected
    fitted = vseg.fit_dataset(folder, image="warm", seed=0)
    assert of_posterior(fitted.together.result) == of_posterior(of_all)
    assert sum(of_all.lapses) > 0, "estimated, since there are catch trials"
    code, out, _ = run_command(f"fit {folder} --image warm --out {tmp_path}/fit", capsys)
    assert code == 0
    assert of_summary(json.loads((tmp_path / "fit/summary.json").read_text("utf-8"))) == of_posterior(of_all)
    assert f"mean entropy {of_all.entropy:.3f} nats" in out
    assert of_all.diagnostics.message in out


def test_the_order_of_the_answers_does_not_matter(collected, of_all):
    _, folder = collected
    warm, catch = vseg.load(folder).select(image="warm"), count_catch_trials(folder)
    order = np.random.default_rng(0).permutation(len(warm))
    swapped = Responses(warm.layout, warm.j[order], warm.i[order], warm.same[order])
    tally = warm.tally()
    back = Tally(Pairs(warm.layout, tally.pairs.i[::-1], tally.pairs.j[::-1]), tally.k[::-1], tally.n[::-1])
    for answers in (swapped, tally, back):
        found = vseg.posterior(
            answers,
            segments=get_segments(collected),
            lapses="estimate",
            catch=sum_catch_trials(catch, warm.participants),
            seed=0,
            threads=1,
        )
        assert of_posterior(found) == of_posterior(of_all)


def test_the_monitor_and_the_api(collected, of_all):
    running, _ = collected
    study = store.studies.get_study(running.db, "routes")
    answers = monitor.LiveData(running.db).answers(study, LONG_S)
    computed = compute_posterior(collect_inputs(answers, "warm", segments=get_segments(collected)))
    assert Answer(computed.segments, computed.entropy, computed.entropy_low, computed.entropy_high) == (
        of_posterior(of_all)
    )
    found = get_json(running, "warm/posterior.json")
    assert of_summary(found) == of_posterior(of_all)
    assert (found["convergence"], found["lapses"]) == (of_all.diagnostics.message, list(of_all.lapses))
    assert found["expected_error"] == pytest.approx(of_all.expected_error, rel=1e-12)  # sums in another order


def test_the_dashboard(collected, of_all):
    running, _ = collected
    get_json(running, "warm/posterior.json")
    page = running.client.get("studies/routes", headers=BROWSER_HEADERS).text
    low, high = of_all.entropy_interval
    shown = rf"{of_all.segments} segments, .*mean uncertainty {of_all.entropy:.2f} nats\s+\[{low:.2f}, {high:.2f}\]"
    assert re.search(shown, page)
    page = running.client.get("studies/routes/images/warm", headers=BROWSER_HEADERS).text
    assert f"{of_all.entropy:.2f} nats, 90 % interval {low:.2f} to {high:.2f}<" in page
    assert of_all.diagnostics.message in page


def test_figures(collected, of_all):
    running, _ = collected
    get_json(running, "warm/posterior.json")
    downloaded = running.client.get("api/studies/routes/images/warm/posterior/figure.svg").text
    (written,) = (text.get_text() for text in figures.maps(of_all).texts if not text.get_rotation())
    assert written.startswith(f"{of_all.entropy:.2f} [")
    assert f"<!-- {written} -->" in downloaded


def test_each_participant(collected, expected, of_all, tmp_path):
    """K is chosen once, from all answers; each participant's own catch trials count."""
    running, folder = collected
    fitted = vseg.fit_dataset(folder, image="warm", by="participant", seed=0)
    fitted.save(tmp_path / "fit")
    with open(tmp_path / "fit/participants.csv", encoding="utf-8", newline="") as file:
        rows = {row["participant"]: row for row in csv.DictReader(file)}
    assert len(rows) == 2
    for name, fit in fitted.each.items():
        alone = of_posterior(expected(participant=name, segments=of_all.segments))
        assert of_posterior(fit.result) == alone
        assert of_summary(rows[name]) == alone
        assert of_summary(get_json(running, f"warm/posterior.json?participant={name}")) == alone


def test_each_image(collected, expected):
    _, folder = collected
    fitted = vseg.fit_dataset(folder, seed=0)
    assert list(fitted.each) == ["cold", "warm"]
    for image, fit in fitted.each.items():
        assert of_posterior(fit.result) == of_posterior(expected(image))
