"""The posterior of an image as its answers stand: what it follows from, and how it is worked out in the background."""

import pickle
import threading
from functools import partial

import numpy as np
import pytest

from adaptive_participants import ADAPTIVE_STUDY, SHARED_STUDY, begin_adaptive_session
from servers import run_server
from stored_sessions import begin_session, register_study, response
from vseg import Grid, Responses, adaptive, bayes, monitor, stimuli, store
from vseg.designs import all_pairs, scattered
from vseg.errors import InvalidInput
from vseg.monitor import posterior_process, posterior_summary
from vseg.monitor.adaptive_progress import has_chooser, learnt
from vseg.monitor.posterior_process import Posteriors
from vseg.observers import simulate

LONG_S = 60
PAIRS = [(i, j) for i in range(9) for j in range(i + 1, 9)]
TOP = {0, 1, 2, 3, 4}  # one segment; the rest is another


@pytest.fixture
def db(tmp_path):
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as opened:
        yield opened


def seen(db, pairs=PAIRS, people=2):
    """People who answer these pairs of image "a" by the truth."""
    study = register_study(db, participants=10)
    for _ in range(people):
        begun = begin_session(db, study)
        rows = [
            response(seq, seq, i=i, j=j, same=(i in TOP) == (j in TOP)) for seq, (i, j) in enumerate(pairs)
        ]
        store.responses.append(db, begun.session.id, rows, []).result()
    return study, monitor.Watch(db).answers(study, LONG_S)


def some_question(entropy=0.2, seed=0, **other):
    truth = stimuli.random_maps(Grid(5), segments=2, entropy=entropy, seed=seed)
    answers = simulate(truth, scattered(truth.layout, segments=2, seed=1), blocks=3, seed=2)
    return posterior_summary.Question(answers.tally(), 2, **other)


def test_it_is_the_posterior_of_the_answers_under_the_names_of_the_classic_map(db):
    _, answers = seen(db)
    found = posterior_summary.believed(posterior_summary.question(answers, "a"))
    direct = bayes.posterior(
        answers.of("a"), segments="auto", lapses="estimate", draws=found.draws, seed=0, threads=1
    )
    assert (found.trials, found.pairs, found.segments) == (2 * len(PAIRS), len(PAIRS), 2)
    assert (found.chosen, found.plausible) == (direct.table.chosen, direct.table.plausible)
    assert (found.entropy, found.entropy_low, found.entropy_high) == (
        direct.entropy,
        *direct.entropy_interval,
    )
    classic = monitor.fitted(answers, "a", segments=2).maps
    assert np.array_equal(found.maps.labels, classic.labels)
    assert np.array_equal(found.upper, direct.aligned_to(classic).upper)
    assert ((found.width >= 0) & (found.width <= 1)).all()
    assert found.lapses_estimated
    assert found.warning == ""


def test_catch_trials_are_those_of_who_answered_about_the_image(db):
    study, _ = seen(db)
    for image, right in (("a", True), ("b", False)):
        begun = begin_session(db, study)
        rows = [
            response(0, 0, image=image, i=0, j=1),
            *(response(seq, seq, i=0, j=1, same=right, catch=True, image="practice") for seq in (1, 2)),
            response(3, 3, i=0, j=1, same=right, catch=True, image="practice", flags="late"),
        ]
        store.responses.append(db, begun.session.id, rows, []).result()
    answers = monitor.Watch(db).answers(study, LONG_S)
    known = answers.correct.copy()
    known[answers.catch] = answers.same[answers.catch]  # this study has no practice picture to know it from
    object.__setattr__(answers, "correct", known)
    assert posterior_summary.catch_of(answers, "a") == (2, 2)
    assert posterior_summary.catch_of(answers, "b") == (0, 2)
    assert posterior_summary.catch_of(answers, "a", answers.sessions[0].participant) == (0, 0)


def test_too_few_answers(db):
    _, answers = seen(db, PAIRS[:7], people=1)
    with pytest.raises(InvalidInput, match="at least 8 answers that count, got 7"):
        posterior_summary.question(answers, "a")


@pytest.mark.parametrize("text", [ADAPTIVE_STUDY, SHARED_STUDY])
def test_an_adaptive_study_shows_what_its_pairs_are_chosen_by(tmp_path, text):
    """The very state: the error that the chooser stored with its last batch is that of the same answers here."""
    with run_server(f"sqlite:///{tmp_path}/vseg.db", text) as running:
        people = (
            [begin_adaptive_session(running)]
            if text == ADAPTIVE_STUDY
            else [begin_adaptive_session(running), begin_adaptive_session(running)]
        )
        for item in range(24):
            for one in people:
                one.answer_patiently([item])
        study = store.studies.get_study(running.db, "ada")
        answers = monitor.Watch(running.db).answers(study, LONG_S)
        who = people[-1].person.state["participant"]
        subject = who if text == ADAPTIVE_STUDY else None
        assert has_chooser(study, subject)
        assert not has_chooser(study, None if text == ADAPTIVE_STUDY else who)
        order = learnt(running.db, study, answers, "patches", subject)
        assert len(order) == answers.tally("patches", subject).trials
        last = max(store.choices.list_outcomes(running.db, study.id, who), key=lambda each: each.answers)
        then = slice(last.answers)
        known = Responses(order.layout, order.i[then], order.j[then], order.same[then])
        found = posterior_summary.believed(posterior_summary.chooser_question(study.study, "patches", known))
        assert found.expected_error == pytest.approx(last.expected_error, rel=1e-9)
        assert (found.by_chooser, found.segments, found.lapses_estimated) == (True, 2, False)


def test_draws_that_cannot_be_trusted_are_said(monkeypatch):
    """Chains too short to agree, by a rule that nothing can pass."""
    monkeypatch.setattr("vseg.bayes.diagnostics.HIGHEST_RHAT", 0.0)
    found = posterior_summary.believed(some_question())
    assert found.warning.startswith("The chains do not agree (R-hat")
    assert found.warning.endswith("may be too narrow.")
    assert found.draws == posterior_summary.MORE_DRAWS


# ── in the background ──


class Clock:
    """Moves when told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(scope="module")
def background():
    """One for all tests, since each process takes a while to begin; every test asks about subjects of its own."""
    clock = Clock()
    made = Posteriors(clock)
    made.clock = clock
    yield made
    made.close()


def settled(background, ask):
    """Ask until nothing more is coming, as a page does."""
    while (found := ask()).is_coming:
        background.wait(1)
    return found


def test_asking_never_waits_and_the_answer_comes(background):
    ask = partial(background.ask, "first image", "1", some_question)
    first = ask()
    assert (first.latest, first.is_coming) == (None, True)
    found = settled(background, ask)
    assert found.is_current
    assert background.found(found.mark, "first image") is found.latest
    assert background.found(found.mark, "another image") is None
    direct = posterior_summary.believed(some_question())
    # Not to the last digit: the other process has one BLAS thread, and chains amplify how sums are rounded.
    assert np.abs(found.latest.maps.probabilities - direct.maps.probabilities).max() < 0.05
    assert found.latest.seconds > 0


def test_newer_answers_keep_what_is_there_until_the_next_is_there(background):
    old = settled(background, partial(background.ask, "newer image", "1", some_question))
    newer = partial(background.ask, "newer image", "2", partial(some_question, seed=5))
    between = newer()
    assert (between.mark, between.is_current, between.is_coming) == (old.mark, False, True)
    background.clock.now += 1000  # it has rested
    assert settled(background, newer).mark != old.mark
    assert background.found(old.mark, "newer image") is old.latest, (
        "pictures of a page that is a moment old can still be had"
    )


def test_answers_that_come_while_one_waits_replace_it(background):
    """Of a hundred versions nobody wants the ninety-nine in between."""
    made = []
    release = threading.Event()

    def first():
        release.wait(LONG_S)
        return some_question()

    def make(version):
        made.append(version)
        return some_question()

    background.ask("replaced other", "1", first)
    for version in range(100):
        background.ask("replaced image", str(version), partial(make, version))
    release.set()
    settled(background, partial(background.ask, "replaced image", "99", partial(make, 99)))
    assert made == [99]


def test_what_nobody_asks_for_any_more_is_dropped(background):
    release, made = threading.Event(), []

    def first():
        release.wait(LONG_S)
        return some_question()

    background.ask("dropped other", "1", first)
    background.ask("dropped image", "1", lambda: made.append("image") or some_question())
    background.clock.now += posterior_process.FORGOTTEN_S + 1
    release.set()
    settled(background, partial(background.ask, "dropped third", "1", some_question))
    assert made == []
    assert background.ask("dropped other", "1", some_question).latest is None, "given up half-way"


def test_what_cannot_be_worked_out_is_said_once(background):
    made = []

    def make():
        made.append(1)
        raise InvalidInput("Nothing to see.")

    found = settled(background, partial(background.ask, "failed image", "1", make))
    assert (found.failed, found.latest, found.is_coming) == ("Nothing to see.", None, False)
    assert background.ask("failed image", "1", make).failed == "Nothing to see."
    assert made == [1]


def test_what_took_long_and_failed_rests_before_newer_answers_begin_it_again(background):
    """Or a study whose posterior takes too long would keep a core busy with every answer that comes."""
    made = []

    def failing():
        background.clock.now += posterior_process.LONGEST_S
        for _ in range(2):  # a page asks on meanwhile
            background.ask("long image", "1", failing)
        raise InvalidInput(posterior_process.TOO_LONG)

    def newer():
        made.append(1)
        return some_question()

    assert settled(background, partial(background.ask, "long image", "1", failing)).failed
    background.clock.now += (posterior_process.REST - 0.1) * posterior_process.LONGEST_S
    ask = partial(background.ask, "long image", "2", newer)
    still = ask()
    assert (still.failed, still.is_coming) == (posterior_process.TOO_LONG, False), (
        "nobody waits for what is not begun"
    )
    settled(background, partial(background.ask, "long other", "1", some_question))  # it is another's turn
    ask()
    assert made == []
    background.clock.now += 0.2 * posterior_process.LONGEST_S
    assert settled(background, ask).is_current
    assert (made, ask().failed) == ([1], "")


def test_a_process_that_dies_is_said_and_replaced(background):
    """As one that takes too much memory does."""
    dying = some_question(catch=_Deadly())
    assert (
        settled(background, partial(background.ask, "dying image", "1", lambda: dying)).failed
        == posterior_process.STOPPED
    )
    assert settled(background, partial(background.ask, "dying image", "2", some_question)).is_current


class _Deadly:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        import os

        return os._exit, (1,)


def test_questions_and_answers_travel():
    asked = some_question()
    assert np.array_equal(pickle.loads(pickle.dumps(asked)).answers.k, asked.answers.k)
    found = posterior_summary.believed(asked)
    assert np.array_equal(pickle.loads(pickle.dumps(found)).lower, found.lower)


def test_a_chooser_is_a_state():
    """Made by hand, it has the same intervals, up to the names of segments."""
    truth = stimuli.random_maps(Grid(4), segments=2, entropy=0.1, seed=0)
    answers = simulate(truth, scattered(truth.layout, segments=2, seed=1), blocks=1, seed=2)
    found = posterior_summary.believed(posterior_summary.Question(answers, 2, chooser=7))
    state = adaptive.State(truth.layout, segments=2, lapses=(0.02, 0.02), responses=answers, seed=7)
    assert np.allclose(np.sort(found.upper), np.sort(state.bounds[1]))


def test_a_chooser_s_entropy_lies_within_its_interval():
    """Four segments of which nothing is known have more than one nat, which no probability reaches."""
    pairs = all_pairs(Grid(4))
    same = np.repeat([True, False, False, False], len(pairs))
    answers = Responses(pairs.layout, np.tile(pairs.i, 4), np.tile(pairs.j, 4), same)
    found = posterior_summary.believed(posterior_summary.Question(answers, 4, chooser=7))
    state = adaptive.State(pairs.layout, segments=4, lapses=(0.02, 0.02), responses=answers, seed=7)
    logs = np.log(state.draws, where=state.draws > 0, out=np.zeros_like(state.draws))
    entropies = np.sort(-(state.draws * logs).sum(axis=2).mean(axis=1))
    below, above = (np.searchsorted(entropies, end) for end in (found.entropy_low, found.entropy_high))
    assert found.entropy_low < found.entropy < found.entropy_high <= np.log(4)
    assert found.entropy == pytest.approx(np.median(entropies))
    share = (above - below) / len(entropies)
    assert share == pytest.approx(found.confidence, abs=2 / len(entropies))
