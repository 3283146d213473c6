"""The texture experiment: its simulated participants, one small experiment, and its claims."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from reproduction.paper import participants, texture
from reproduction.paper.estimators import ESTIMATORS
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.evaluation.group_tests import cohens_d
from vseg.sweeps import Table, sweep


@pytest.fixture(scope="module")
def table():
    return sweep(texture.trial, {"picture": (0, 1)}, repeats=2, seed=0)


def test_both_conditions_show_the_same_areas():
    low, high = (participants.make_texture_image(condition) for condition in participants.CONDITIONS)
    assert low.truth == high.truth
    assert not np.array_equal(low.image, high.image)


def test_energies_peak_five_degrees_beside_the_vertical():
    """θ₀ = -5 and 5 degrees are contours at 85 and 95 (Table 1)."""
    first, second = participants.make_texture_image("low").by_texture
    assert (first.argmax() * 5, second.argmax() * 5) == (85, 95)


def test_beliefs_match_the_image_and_are_less_certain_at_high_uncertainty():
    """Entropies of 0.18 and 0.25 nats over 40 people of picture 0, each within a standard error of 0.01."""
    entropy = {}
    for condition in participants.CONDITIONS:
        shown, rng = participants.make_texture_image(condition), np.random.default_rng(0)
        believed = [participants.simulate_belief(shown, rng) for _ in range(40)]
        assert np.mean([one.labels == shown.truth.labels for one in believed]) > 0.97
        entropy[condition] = np.mean([one.mean_entropy for one in believed])
    assert entropy["high"] > entropy["low"] + 0.03


def test_a_session_is_the_papers():
    rng = np.random.default_rng(0)
    tally = participants.simulate_answers(
        participants.simulate_belief(participants.make_texture_image("low"), rng), rng
    )
    assert len(tally) == 242  # KN²
    assert (tally.n == 5).all()
    assert (tally.pairs.partners > 0).all()


@given(st.integers(0, 2**32 - 1))
def test_shuffling_keeps_the_number_of_same_answers(seed):
    rng = np.random.default_rng(seed)
    pairs = participants.designs.covering(participants.LAYOUT, segments=2, seed=rng)
    tally = Tally(pairs, rng.integers(0, 6, len(pairs)), np.full(len(pairs), 5))
    null = participants.shuffle_answers(tally, rng)
    assert null.k.sum() == tally.k.sum()
    assert null.k.max() <= 5
    assert not np.array_equal(null.k, tally.k)


def test_contours_have_a_tolerance_of_one_location():
    columns = np.tile(np.arange(11), 11)
    halves = [Maps.one_hot(participants.LAYOUT, (columns >= at).astype(int)) for at in (5, 6, 9)]
    assert texture.contour_score(halves[0], halves[0]) == 1
    assert texture.contour_score(halves[1], halves[0]) == 1
    assert texture.contour_score(halves[2], halves[0]) < 0.5


def test_an_experiment_finds_that_entropy_is_larger(table):
    """d over two replications of two pictures: 1.5 to 1.9 by estimator; a margin of 1."""
    for name in (texture.BELIEF, *ESTIMATORS):
        assert table.column("d", estimator=name).mean() > 0.5
    assert texture.claims(table)[0].why.startswith("Simulated participants show it.")


def test_d_is_cohens_d_and_follows_from_t(table):
    """With groups of one size d = t·√(2/n); the paper's own t and d obey it."""
    for name in (texture.BELIEF, *ESTIMATORS):
        t, d = table.column("t", estimator=name), table.column("d", estimator=name)
        assert d == pytest.approx(t * np.sqrt(2 / 15))
    assert 2.746 * np.sqrt(2 / 15) == pytest.approx(1.003, abs=1e-3)
    low, high = np.arange(15.0), np.arange(15.0) ** 1.2
    assert cohens_d(low, high).value == pytest.approx(texture.welch(low, high).t * np.sqrt(2 / 15))


def test_random_starts_give_some_participants_wrong_labels(table):
    """0.86 and 0.98 of the labels over ten replications of four pictures."""
    random, ours = (
        table.column("accuracy_low", estimator=name).mean() for name in ("paper_plain", "ours_plain")
    )
    assert random < 0.94
    assert ours > 0.96


def test_strong_smoothness_adds_entropy(table):
    """λ = 10 adds 0.066 nats to the beliefs', ours by default 0.022."""
    added = {
        name: np.mean(
            table.column("entropy_low", estimator=name) - table.column("entropy_low", estimator="belief")
        )
        for name in ("paper", "ours")
    }
    assert added["paper"] > 0.04 > added["ours"]


def test_claims_follow_the_table(table):
    """With the sign reversed, simulated participants do not show the effect; the method's own claim is judged."""
    turned = Table([row | {name: -row[name] for name in ("d", "t") if name in row} for row in table.rows])
    assert texture.claims(turned)[0].why.startswith("Simulated participants do not show it")
    even = Table([{**row, "f_low": row["f_high"], "between_low": row["between_high"]} for row in table.rows])
    assert all("drawn contours: F = " in claim.ours for claim in texture.claims(table)[3:5])
    for claim in texture.claims(even)[3:5]:
        assert claim.why.startswith("Simulated participants do not show it")
    verdicts = [claim.verdict for claim in texture.claims(table)]
    assert verdicts == ["not testable without the data"] * 5 + ["reproduced"] * 2


def test_the_figure_shows_every_participant(table):
    example = texture.example(seed=0)
    assert example["ours_plain_high"].shape == (15, 11, 11)
    drawn = texture.draw(table, example)
    pictures = [axes for axes in drawn.axes if axes.images]
    assert len(pictures) == 2 * 7 + 4 * 15
    labels = [axes.get_ylabel() or axes.get_xlabel() for axes in drawn.axes]
    assert {"mean entropy (nats)", "F of contours", "Cohen's d, high minus low uncertainty"} <= set(labels)


def test_drawn_contours_of_different_people_agree_less_at_high_uncertainty():
    """60 drawings and 420 pairs each; with seed 0 the median F between people is 0.60 and 0.45, 0.36 for the truth."""
    low, high = (texture.score_drawings(condition, seed=0) for condition in participants.CONDITIONS)
    assert (len(low[0]), len(low[1])) == (60, 4 * 105)
    assert np.median(low[1]) > np.median(high[1]) + 0.05
    assert np.median(low[0]) == pytest.approx(0.36, abs=0.05)


def test_drawings_are_judged_with_a_tolerance_of_one_location(table):
    """Mean F over two replications of two pictures: about 0.99 low and 0.97 high, against the truth and each other."""
    for score in ("f", "between"):
        low, high = (table.column(f"{score}_{c}", estimator=texture.DRAWING) for c in participants.CONDITIONS)
        assert 0.95 < high.mean() < low.mean() <= 1
