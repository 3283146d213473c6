"""Test the progress of a study and the summaries of participants, with each reason to check a session."""

import csv
import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from servers import STUDY, register_studies
from stored_sessions import event, response
from vseg import monitor, store
from vseg.data.catch_trials import count_catch_trials
from vseg.data.durations import MedianEstimate, measure_durations
from vseg.export import write_dataset
from vseg.monitor.participants import summarise_durations
from vseg.monitor.summaries import Distribution, approximate_session_medians, session_medians
from vseg.study import pictures
from vseg.study.schema import parse_study
from vseg.study.trials import draw_trials

LONG_S = 60
LARGER_STUDY = STUDY.replace("participants = 3", "participants = 50").replace(
    "trials = 12, blocks = 2", "trials = 24, blocks = 4"
)


@pytest.fixture
def db(tmp_path):
    """Open a SQLite database; test_live_data.py tests both kinds."""
    with store.open(f"sqlite:///{tmp_path}/vseg.db") as opened:
        register_studies(opened, LARGER_STUDY)
        yield opened


def take_part(
    db, *, now_ms=1_800_000_000_000, same=None, right=True, complete=True, simulated=False, **columns
):
    """Answer all trials by `same(i, j, item)`; catch and practice trials right or wrong. Return the participant."""
    study = store.studies.get_study(db, "tiny")
    sizes = {name: (image.width_px, image.height_px) for name, image in study.images.items()}
    begun = store.sessions.begin(
        db, study, lambda units: draw_trials(study.study, units, sizes), now_ms=now_ms
    )
    trials, rows = begun.session.trials, []
    for item in range(len(trials)):
        expected = trials.answer[item]
        if expected is not None:
            is_same = expected == right
        else:
            is_same = bool(same(trials.i[item], trials.j[item], item))
        trial = {
            name: getattr(trials, name)[item]
            for name in ("image", "block", "trial", "i", "j", "practice", "catch")
        }
        rows.append(response(item + 1, item, same=is_same, **trial) | columns)
    events = [event(0, "consent", simulated=simulated)]
    store.responses.append(db, begun.session.id, rows, events, now_ms=now_ms + 60_000).result()
    if complete:
        assert store.sessions.complete(db, begun.session, len(rows) + 1) == []
    return begun.session.participant


def summarise(db):
    """Return the study, its answers, and the summaries by participant."""
    study = store.studies.get_study(db, "tiny")
    answers = monitor.LiveData(db).answers(study, LONG_S)
    return (
        study,
        answers,
        {summary.participant: summary for summary in monitor.summarise_participants(study, answers)},
    )


def by_pair(i, j, item):
    """Answer a pair always in the same way."""
    return min(i, j) % 2 == 0


def test_a_careful_participant_has_no_reasons(db):
    participant = take_part(db, same=by_pair)
    _, _, summaries = summarise(db)
    summary = summaries[participant]
    assert summary.reasons == []
    assert (summary.catch.right, summary.catch.of, summary.catch.value) == (4, 4, 1.0)
    assert (summary.practice.right, summary.practice.of) == (2, 2)
    assert (summary.consistency.right, summary.consistency.of) == (72, 72), "24 pairs, three repeats of each"
    assert (summary.answers, summary.used, summary.flagged) == (102, 96, 0)
    assert (summary.median_rt_ms, summary.timing.refresh_hz, summary.timing.within_half_frame) == (
        412.5,
        60.0,
        1.0,
    )
    assert summary.status == "completed"


def test_catch_trials_that_were_not_shown_right_are_not_counted(db):
    """Nobody could see them, so a right answer to them is no sign of attention."""
    participant = take_part(db, same=by_pair, flags="late", complete=False)
    summary = summarise(db)[2][participant]
    assert (summary.catch.right, summary.catch.of, summary.used) == (0, 0, 0)


def guessing(i, j, item):
    return np.random.default_rng(item).random() < 0.5


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        (
            {"same": by_pair, "right": False},
            "Only 0 of 4 attention checks (catch trials) were answered right.",
        ),
        ({"same": by_pair, "rt_ms": 120.0}, "Half of the answers came within 120 ms"),
        ({"same": lambda *_: True}, "100% of the answers were “same”."),
        ({"same": lambda *_: False}, "100% of the answers were “different”."),
        ({"same": by_pair, "refresh_hz": 30.0}, "The screen showed only 30 pictures a second."),
        ({"same": guessing}, "no better than guessing"),
        ({"same": by_pair, "flags": "late", "complete": False}, "100% of the trials were not shown right"),
    ],
)
def test_reasons_to_check_a_session(db, behaviour, message):
    fine, suspicious = take_part(db, same=by_pair), take_part(db, **behaviour)
    summaries = summarise(db)[2]
    assert summaries[fine].reasons == []
    reasons = summaries[suspicious].reasons
    assert [message in reason for reason in reasons].count(True) == 1, reasons


def test_consistency_of_a_participant_who_always_answers_same(db):
    """Test that chance is 1, so that consistency is not a second reason."""
    participant = take_part(db, same=lambda *_: True)
    summary = summarise(db)[2][participant]
    assert (summary.consistency.value, summary.chance) == (1.0, 1.0)
    assert len(summary.reasons) == 1


def test_progress_counts(db):
    take_part(db, same=by_pair)
    take_part(db, same=by_pair, simulated=True)
    take_part(db, same=by_pair, complete=False)
    study, answers, _ = summarise(db)
    progress = monitor.compute_progress(db, study, answers)
    assert (progress.started, progress.completed, progress.wanted, progress.simulated) == (3, 2, 50, 1)
    assert progress.active + progress.silent == 1
    assert progress.places_left == 50 - 2 - progress.active
    assert (progress.answers, progress.used) == (306, 288)
    assert (progress.catch.right, progress.catch.of, progress.practice.of) == (12, 12, 6)
    assert progress.consistency.value == 1.0
    assert sum(progress.rt_ms.counts) == 288
    assert progress.rt_ms.median == 412.5
    assert len(progress.per_hour) == 48
    image = progress.images[0]
    assert (image.name, image.wanted, image.completed, image.answers) == ("patches", 50, 2, 288)
    assert (image.needed, image.advised) == (16, 200)
    assert image.distinct_pairs == len(answers.tally("patches"))
    assert json.loads(json.dumps(asdict(progress)))["minutes"]["unit"] == "minutes"


def test_minutes_are_exact_to_a_second(db):
    begun_ms = store.database.now_ms() - 4_000
    participant = take_part(db, same=by_pair, now_ms=begun_ms)
    summary = summarise(db)[2][participant]
    assert summary.minutes * 60 == pytest.approx((summary.finished_at_ms - begun_ms) / 1000, abs=0.01)


def test_a_study_without_sessions(db):
    study, answers, summaries = summarise(db)
    progress = monitor.compute_progress(db, study, answers)
    assert (summaries, progress.started, progress.used, progress.rt_ms.counts) == ({}, 0, 0, [])
    assert (
        progress.timing.median_off_ms,
        progress.catch.value,
        progress.consistency.value,
        progress.chance,
    ) == (None,) * 4


def test_a_session_without_answers(db):
    study = store.studies.get_study(db, "tiny")
    sizes = {name: (image.width_px, image.height_px) for name, image in study.images.items()}
    begun = store.sessions.begin(
        db, study, lambda units: draw_trials(study.study, units, sizes), now_ms=10**12
    )
    summary = summarise(db)[2][begun.session.participant]
    assert (summary.answers, summary.median_rt_ms, summary.same_share, summary.reasons) == (0, None, None, [])


def test_correct_answers_are_those_of_the_trials(db):
    """Test that `correct`, from the practice picture's maps, agrees with the answers stored with the trials."""
    take_part(db, same=by_pair, right=True)
    take_part(db, same=by_pair, right=False)
    _, answers, _ = summarise(db)
    known = answers.practice | answers.catch
    assert (answers.correct[known] == (answers.session[known] == 0)).all()
    assert (answers.correct[~known] == -1).all()


def test_medians_of_sessions():
    rng = np.random.default_rng(1)
    session = rng.integers(0, 7, 500).astype(np.int32)
    values = rng.gamma(4, 180, 500).round(1)
    expected = [np.median(values[session == number]) for number in range(7)]
    assert np.allclose(session_medians(session, values, 8)[:7], expected, atol=0.051)
    assert np.isnan(session_medians(session, values, 8)[7])
    off = rng.exponential(3, 500).astype(np.float32)
    expected = [np.median(off[session == number]) for number in range(7)]
    assert np.allclose(approximate_session_medians(session, off, 8)[:7], expected, atol=0.4)


def test_distributions_count_all_values():
    values = np.random.default_rng(0).gamma(4, 180, 1000)
    distribution = Distribution.from_values(values, "ms")
    assert sum(distribution.counts) == 1000
    assert len(distribution.edges) == len(distribution.counts) + 1
    assert distribution.median == pytest.approx(np.median(values), abs=0.01)
    assert Distribution.from_values(np.zeros(3), "ms").counts == [3]


def test_a_study_without_practice_and_catch_trials(tmp_path):
    text = LARGER_STUDY.replace("trials = 2}", "trials = 0}").replace("per_block = 1", "per_block = 0")
    study = parse_study(text)
    with store.open(f"sqlite:///{tmp_path}/plain.db") as db:
        store.studies.register(db, text, study, pictures.render_pictures(study, Path()))
        participant = take_part(db, same=by_pair)
        summary = summarise(db)[2][participant]
        assert (summary.catch.of, summary.practice.of, summary.catch.value) == (0, 0, None)


def test_times_of_dashboard_export_and_python_are_the_same(db, tmp_path):
    """Seven participants, one of whom has not finished; each has their own reaction time."""
    for number in range(7):
        take_part(db, same=by_pair, rt_ms=400.0 + 100 * number, complete=number < 6)
    study, answers, summaries = summarise(db)
    durations = monitor.compute_progress(db, study, answers).durations
    write_dataset(db, study, tmp_path)
    table = measure_durations(tmp_path)
    assert durations == replace(table.study, minutes=durations.minutes)
    assert durations.minutes.median == pytest.approx(table.study.minutes.median, abs=1e-3)
    presentation = table.participants[next(iter(summaries))].trial_ms.median - 400
    assert (durations.participants, durations.completed) == (7, 6)
    assert durations.trial_ms == MedianEstimate(700 + presentation, 400 + presentation, 1000 + presentation)
    assert durations.engaged_minutes.median == pytest.approx(102 * (650 + presentation) / 60_000, abs=1e-3)
    [sessions] = tmp_path.glob("data/*_description-sessions_data.csv")
    with open(sessions, newline="", encoding="utf-8") as file:
        rows = {row["participant"]: row for row in csv.DictReader(file)}
    for name, summary in summaries.items():
        own = table.participants[name]
        assert (summary.trial_ms, summary.engaged_minutes) == (own.trial_ms, own.engaged_minutes)
        assert float(rows[name]["engaged_minutes"]) == own.engaged_minutes
        assert float(rows[name]["trial_low_ms"]) == own.trial_ms.low
        assert float(rows[name]["minutes"]) == summary.minutes == own.minutes


def test_catch_trials_shown_late_are_not_scored_anywhere(db, tmp_path):
    """The fit, the export and the dashboard count the same catch trials."""
    participant = take_part(db, same=by_pair, right=False, flags="late", complete=False)
    careful = take_part(db, same=by_pair)
    study, _, summaries = summarise(db)
    assert (summaries[participant].catch.of, summaries[participant].practice.of) == (0, 0)
    write_dataset(db, study, tmp_path)
    assert count_catch_trials(tmp_path) == {careful: (4, 4)}
    [sessions] = tmp_path.glob("data/*_description-sessions_data.csv")
    with open(sessions, newline="", encoding="utf-8") as file:
        rows = {row["participant"]: row for row in csv.DictReader(file)}
    assert (rows[participant]["catch_correct"], rows[careful]["catch_correct"]) == ("", "1.0")


def test_the_sessions_of_a_participant_are_taken_together_in_the_study(db):
    """Two sessions of one participant: one median over the answers of both, and the sum of their minutes."""
    for rt_ms in (400.0, 600.0):
        take_part(db, same=by_pair, rt_ms=rt_ms)
    _, answers, summaries = summarise(db)
    joined = replace(
        answers, sessions=[replace(session, participant="Ann") for session in answers.sessions], _cache={}
    )
    durations = summarise_durations(joined)
    assert (durations.participants, durations.completed) == (1, 1)
    assert (durations.rt_ms.median, durations.trial_ms.median) == (500.0, 1100.0)
    assert durations.engaged_minutes.median == pytest.approx(204 * 1100 / 60_000)
    assert durations.minutes.median == pytest.approx(sum(each.minutes for each in summaries.values()))
