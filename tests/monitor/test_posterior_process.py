"""Test the posterior of an image: what it depends on, and its computation in the background."""

import pickle
import sys
import threading
from functools import partial

import numpy as np
import pytest

from adaptive_participants import ADAPTIVE_STUDY, SHARED_STUDY, begin_adaptive_session
from servers import run_server
from stored_sessions import begin_session, register_study, response
from vseg import Grid, Responses, adaptive, bayes, monitor, stimuli, store
from vseg.data.maps import average_entropy
from vseg.designs import all_pairs, scattered
from vseg.errors import InvalidInput
from vseg.monitor import posterior_process, posterior_summary
from vseg.monitor.posterior_process import PosteriorService
from vseg.monitor.posterior_summary import has_chooser, read_answers_in_chooser_order
from vseg.observers import simulate

LONG_S = 60
PAIRS = [(i, j) for i in range(9) for j in range(i + 1, 9)]
TOP = {0, 1, 2, 3, 4}  # one segment; the rest is another


@pytest.fixture
def db(tmp_path):
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as opened:
        yield opened


def answer_pairs(db, pairs=PAIRS, participants=2):
    """Store right answers to these pairs of image "a"; return the study and its answers."""
    study = register_study(db, participants=10)
    for _ in range(participants):
        begun = begin_session(db, study)
        rows = [
            response(seq, seq, i=i, j=j, same=(i in TOP) == (j in TOP)) for seq, (i, j) in enumerate(pairs)
        ]
        store.responses.append(db, begun.session.id, rows, []).result()
    return study, monitor.LiveData(db).answers(study, LONG_S)


def make_inputs(entropy=0.2, seed=0, **other):
    truth = stimuli.random_maps(Grid(5), segments=2, entropy=entropy, seed=seed)
    answers = simulate(truth, scattered(truth.layout, segments=2, seed=1), blocks=3, seed=2)
    return posterior_summary.PosteriorInputs(answers.tally(), 2, **other)


def test_the_summary_is_the_posterior_with_the_labels_of_the_live_map(db):
    _, answers = answer_pairs(db)
    found = posterior_summary.compute_posterior(posterior_summary.collect_inputs(answers, "a"))
    direct = bayes.posterior(answers.responses("a"), segments="auto", seed=0, threads=1)
    assert (found.trials, found.pairs, found.segments) == (2 * len(PAIRS), len(PAIRS), 2)
    assert (found.chosen, found.plausible) == (direct.table.chosen, direct.table.plausible)
    assert (found.entropy, found.entropy_low, found.entropy_high) == (
        direct.entropy,
        *direct.entropy_interval,
    )
    classic = monitor.fit_maps(answers, "a", segments=2).maps
    assert np.array_equal(found.maps.labels, classic.labels)
    assert np.array_equal(found.upper, direct.align_to(classic).upper)
    assert ((found.width >= 0) & (found.width <= 1)).all()
    assert (found.lapses, found.lapses_estimated) == ((0, 0), False), "there are no catch trials"
    assert np.array_equal(found.location_entropy, average_entropy(direct.draws))
    assert (found.converged, found.convergence) == (True, direct.diagnostics.message)
    assert (found.rhat, found.draws) == (direct.diagnostics.rhat, direct.diagnostics.draws)
    assert found.warning == ""


def test_catch_trials_are_those_of_participants_who_saw_the_image(db):
    study, _ = answer_pairs(db)
    for image, right in (("a", True), ("b", False)):
        begun = begin_session(db, study)
        rows = [
            response(0, 0, image=image, i=0, j=1),
            *(response(seq, seq, i=0, j=1, same=right, catch=True, image="practice") for seq in (1, 2)),
            response(3, 3, i=0, j=1, same=right, catch=True, image="practice", flags="late"),
        ]
        store.responses.append(db, begun.session.id, rows, []).result()
    answers = monitor.LiveData(db).answers(study, LONG_S)
    correct = answers.correct.copy()
    correct[answers.catch] = answers.same[answers.catch]  # this study has no practice picture
    object.__setattr__(answers, "correct", correct)
    names = [session.participant for session in answers.sessions]
    assert posterior_summary.count_catch_trials(answers) == {names[2]: (2, 2), names[3]: (0, 2)}
    inputs = posterior_summary.collect_inputs(answers, "a")
    assert (inputs.lapses, inputs.catch) == ("estimate", (2, 2))
    one = posterior_summary.collect_inputs(answers, "a", participant=names[0])
    assert (one.lapses, one.catch) == ("estimate", None), "as for all participants of the study"


def test_too_few_answers(db):
    _, answers = answer_pairs(db, PAIRS[:7], participants=1)
    with pytest.raises(InvalidInput, match="at least 8 answers that count, got 7"):
        posterior_summary.collect_inputs(answers, "a")


@pytest.mark.usefixtures("patient_server")
@pytest.mark.parametrize("text", [ADAPTIVE_STUDY, SHARED_STUDY])
def test_the_posterior_of_a_chooser(tmp_path, text):
    """Test that its expected error equals the one that the chooser stored with its last batch."""
    with run_server(f"sqlite:///{tmp_path}/vseg.db", text) as running:
        participants = (
            [begin_adaptive_session(running)]
            if text == ADAPTIVE_STUDY
            else [begin_adaptive_session(running), begin_adaptive_session(running)]
        )
        for item in range(24):
            for participant in participants:
                participant.answer_patiently([item])
        study = store.studies.get_study(running.db, "ada")
        answers = monitor.LiveData(running.db).answers(study, LONG_S)
        name = participants[-1].person.state["participant"]
        subject = name if text == ADAPTIVE_STUDY else None
        assert has_chooser(study, subject)
        assert not has_chooser(study, None if text == ADAPTIVE_STUDY else name)
        order = read_answers_in_chooser_order(running.db, study, answers, "patches", subject)
        assert len(order) == answers.tally("patches", subject).trials
        last = max(
            store.choices.list_outcomes(running.db, study.id, name), key=lambda outcome: outcome.answers
        )
        taken = slice(last.answers)
        taken_answers = Responses(order.layout, order.i[taken], order.j[taken], order.same[taken])
        found = posterior_summary.compute_posterior(
            posterior_summary.collect_chooser_inputs(study.study, "patches", taken_answers)
        )
        assert found.expected_error == pytest.approx(last.expected_error, rel=1e-9)
        assert (found.by_chooser, found.segments, found.lapses_estimated) == (True, 2, False)


def test_chains_that_do_not_agree_give_a_warning(monkeypatch):
    """Test it with a limit of R-hat that no chains can pass."""
    monkeypatch.setattr("vseg.bayes.diagnostics.MAX_RHAT", 0.0)
    found = posterior_summary.compute_posterior(make_inputs())
    assert found.warning.startswith("The chains do not agree (R-hat")
    assert found.warning.endswith("do not publish the intervals.")


# ── computation in the background ──


class Clock:
    """A clock that tests set."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(scope="module")
def background():
    """Share one service, since its process takes a while to start; every test has subjects of its own."""
    clock = Clock()
    service = PosteriorService(clock)
    service.clock = clock
    yield service
    service.close()


def wait_for_result(background, request):
    """Repeat a request until nothing is pending, as a page does."""
    while (status := request()).is_pending:
        background.wait(1)
    return status


def test_a_request_returns_at_once_and_the_result_comes_later(background):
    request = partial(background.request, "first image", "1", make_inputs)
    first = request()
    assert (first.latest, first.is_pending) == (None, True)
    status = wait_for_result(background, request)
    assert status.is_current
    assert background.find("first image", status.mark) is status.latest
    assert background.find("another image", status.mark) is None
    direct = posterior_summary.compute_posterior(make_inputs())
    assert np.array_equal(status.latest.maps.probabilities, direct.maps.probabilities)
    assert status.latest.entropy == direct.entropy
    assert status.latest.seconds > 0


def test_the_old_posterior_stays_until_the_new_one_is_computed(background):
    old = wait_for_result(background, partial(background.request, "newer image", "1", make_inputs))
    newer = partial(background.request, "newer image", "2", partial(make_inputs, seed=5))
    between = newer()
    assert (between.mark, between.is_current, between.is_pending) == (old.mark, False, True)
    background.clock.now += 1000  # after its pause
    assert wait_for_result(background, newer).mark != old.mark
    assert background.find("newer image", old.mark) is old.latest, "an older page can still load its pictures"


def test_newer_answers_replace_a_waiting_request(background):
    """Test that only the last of a hundred versions is computed."""
    made = []
    release = threading.Event()

    def first():
        release.wait(LONG_S)
        return make_inputs()

    def make(version):
        made.append(version)
        return make_inputs()

    background.request("replaced other", "1", first)
    for version in range(100):
        background.request("replaced image", str(version), partial(make, version))
    release.set()
    wait_for_result(background, partial(background.request, "replaced image", "99", partial(make, 99)))
    assert made == [99]


def test_a_request_that_is_not_repeated_is_dropped(background):
    release, made = threading.Event(), []

    def first():
        release.wait(LONG_S)
        return make_inputs()

    background.request("dropped other", "1", first)
    background.request("dropped image", "1", lambda: made.append("image") or make_inputs())
    background.clock.now += posterior_process.FORGET_AFTER_S + 1
    release.set()
    wait_for_result(background, partial(background.request, "dropped third", "1", make_inputs))
    assert made == []
    assert background.request("dropped other", "1", make_inputs).latest is None, "it was given up"


def test_a_failure_is_reported_and_not_repeated(background):
    made = []

    def make():
        made.append(1)
        raise InvalidInput("Nothing to see.")

    status = wait_for_result(background, partial(background.request, "failed image", "1", make))
    assert (status.failed, status.latest, status.is_pending) == ("Nothing to see.", None, False)
    assert background.request("failed image", "1", make).failed == "Nothing to see."
    assert made == [1]


def test_pause_after_a_long_failure(background):
    """Test that a posterior which takes too long does not keep a core busy with every new answer."""
    made = []

    def failing():
        background.clock.now += posterior_process.LONGEST_S
        for _ in range(2):  # a page repeats its request meanwhile
            background.request("long image", "1", failing)
        raise InvalidInput(posterior_process.TOO_LONG)

    def newer():
        made.append(1)
        return make_inputs()

    assert wait_for_result(background, partial(background.request, "long image", "1", failing)).failed
    background.clock.now += (posterior_process.PAUSE_FACTOR - 0.1) * posterior_process.LONGEST_S
    request = partial(background.request, "long image", "2", newer)
    paused = request()
    assert (paused.failed, paused.is_pending) == (posterior_process.TOO_LONG, False), (
        "nothing is pending during the pause"
    )
    wait_for_result(
        background, partial(background.request, "long other", "1", make_inputs)
    )  # another subject is computed meanwhile
    request()
    assert made == []
    background.clock.now += 0.2 * posterior_process.LONGEST_S
    assert wait_for_result(background, request).is_current
    assert (made, request().failed) == ([1], "")


def test_a_child_that_dies_is_reported_and_replaced(background):
    """Test a child that exits, as one that needs too much memory does."""
    dying = make_inputs(catch=_ExitsWhenUnpickled())
    assert (
        wait_for_result(background, partial(background.request, "dying image", "1", lambda: dying)).failed
        == posterior_process.STOPPED
    )
    assert wait_for_result(
        background, partial(background.request, "dying image", "2", make_inputs)
    ).is_current


class _ExitsWhenUnpickled:
    """End the process that unpickles it."""

    def __reduce__(self):
        import os

        return os._exit, (1,)


def test_inputs_and_summaries_can_be_pickled():
    asked = make_inputs()
    assert np.array_equal(pickle.loads(pickle.dumps(asked)).answers.k, asked.answers.k)
    found = posterior_summary.compute_posterior(asked)
    assert np.array_equal(pickle.loads(pickle.dumps(found)).lower, found.lower)


def test_the_posterior_of_a_chooser_is_that_of_its_state():
    """Test that both have the same intervals, up to the order of segments."""
    truth = stimuli.random_maps(Grid(4), segments=2, entropy=0.1, seed=0)
    answers = simulate(truth, scattered(truth.layout, segments=2, seed=1), blocks=1, seed=2)
    found = posterior_summary.compute_posterior(posterior_summary.PosteriorInputs(answers, 2, chooser=7))
    state = adaptive.State(truth.layout, segments=2, lapses=(0.02, 0.02), responses=answers, seed=7)
    assert np.allclose(np.sort(found.upper), np.sort(state.bounds[1]))


def test_the_entropy_of_a_chooser_lies_within_its_interval():
    """Test four segments of which nothing is known, with an entropy of more than one nat."""
    pairs = all_pairs(Grid(4))
    same = np.repeat([True, False, False, False], len(pairs))
    answers = Responses(pairs.layout, np.tile(pairs.i, 4), np.tile(pairs.j, 4), same)
    found = posterior_summary.compute_posterior(posterior_summary.PosteriorInputs(answers, 4, chooser=7))
    state = adaptive.State(pairs.layout, segments=4, lapses=(0.02, 0.02), responses=answers, seed=7)
    logs = np.log(state.draws, where=state.draws > 0, out=np.zeros_like(state.draws))
    entropies = np.sort(-(state.draws * logs).sum(axis=2).mean(axis=1))
    below, above = (np.searchsorted(entropies, end) for end in (found.entropy_low, found.entropy_high))
    assert found.entropy_low < found.entropy < found.entropy_high <= np.log(4)
    assert found.entropy == pytest.approx(np.median(entropies))
    share = (above - below) / len(entropies)
    assert share == pytest.approx(found.confidence, abs=2 / len(entropies))


@pytest.mark.filterwarnings(
    "ignore:Exception in thread vseg-posteriors"
)  # pytest reports what the test itself raises
def test_a_thread_that_has_died_is_replaced():
    service = PosteriorService()
    try:
        service.request("image", "1", partial(sys.exit, "the thread ends"))
        service._thread.join(LONG_S)
        assert not service._thread.is_alive()
        while (status := service.request("image", "1", make_inputs)).latest is None and not status.failed:
            service.wait(LONG_S)
        assert status.failed == ""
    finally:
        service.close()
