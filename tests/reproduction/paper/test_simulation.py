"""One truth per condition; new pairs and answers at each resample."""

import numpy as np

from reproduction.paper import simulation
from vseg import Grid, designs
from vseg.data.responses import Tally


def test_the_fields_have_the_amplitude_asked_for():
    """At a small amplitude softmax is linear: the log-odds' standard deviation is that of the fields, √2 amplitude."""
    maps = simulation.sample_maps(size=64, segments=2, amplitude=0.5, xi=2.0, min_area=0.0, seed=0)
    p = maps.probabilities
    assert abs(np.std(np.log(p[:, 0] / p[:, 1])) - 0.5 * np.sqrt(2)) < 0.07


def test_an_infinite_amplitude_is_certainty():
    maps = simulation.truth(size=12, amplitude=float("inf"), xi=2.0)
    assert set(np.unique(maps.probabilities)) == {0.0, 1.0}
    assert np.array_equal(maps.labels, simulation.truth(size=12, amplitude=6.0, xi=2.0).labels)


def test_a_resample_is_the_papers():
    """KN² distinct pairs that cover every location, each tested once per block."""
    truth = simulation.truth(size=12, amplitude=6.0, xi=2.0)
    tally = simulation.simulate_tally(truth, blocks=7, seed=3)
    assert len(tally) == 3 * 144
    assert tally.pairs.partners.min() >= 1
    assert set(tally.n.tolist()) == {7}
    again, other = (simulation.simulate_tally(truth, blocks=7, seed=seed) for seed in (3, 4))
    assert np.array_equal(tally.k, again.k)
    assert tally.pairs == again.pairs
    assert tally.pairs != other.pairs


def test_answers_one_by_one_are_the_same_answers():
    asked = designs.scattered(Grid(4), trials=9, seed=0)
    tally = Tally(asked, np.array([0, 1, 2, 3, 0, 1, 2, 0, 1]), np.array([3, 3, 3, 3, 2, 2, 2, 1, 1]))
    again = simulation.expand_tally(tally).tally()
    assert again.pairs == tally.pairs
    assert again.k.tolist() == tally.k.tolist()
    assert again.n.tolist() == tally.n.tolist()


def test_answers_follow_the_truth():
    truth = simulation.truth(size=12, amplitude=3.0, xi=2.0)
    tally = simulation.simulate_tally(truth, blocks=2000, seed=0)
    assert np.abs(tally.share - truth.same_probability(tally.pairs)).max() < 0.06  # 5 standard errors
