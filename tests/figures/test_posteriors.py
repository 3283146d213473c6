"""What stands below the pictures of a posterior, and who is who."""

import warnings

import numpy as np
import pytest
from matplotlib.collections import PathCollection

from vseg import Grid, figures, posterior, simulate, stimuli
from vseg.designs import covering
from vseg.errors import VsegWarning
from vseg.evaluation.random_effects import Measurement
from vseg.figures.posteriors import MAX_NAMED
from vseg.figures.style import format_interval


@pytest.fixture(scope="module")
def believed():
    truth = stimuli.random_maps(Grid(6), segments=2, entropy=0.2, seed=0)
    answers = simulate(truth, covering(truth.layout, segments=2, seed=1), blocks=2, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)  # few draws
        return posterior(answers, segments=2, draws=16, budget=20, seed=3, threads=1)


def flat(drawn):
    return [text.get_text() for text in drawn.texts if not text.get_rotation()]


def test_map_titles_state_the_entropy_of_the_posterior(believed):
    low, high = believed.entropy_interval
    said = f"{believed.entropy:.2f} [{low:.2f}, {high:.2f}] nats"
    assert flat(figures.maps(believed)) == [said]
    assert flat(figures.maps(believed, believed, names=["answers alone", "2 nats"])) == [said, said]
    assert flat(figures.participants({"0.1 nats": believed, "P2": believed})) == [said, said]
    assert flat(figures.entropy(believed)) == [said]
    assert said in flat(figures.side_by_side({"image": {"people": believed}}))
    beside = flat(figures.maps(believed, believed.maps))
    assert beside == [said, f"mean {believed.maps.mean_entropy:.2f} nats"]


def test_entropy_maps_show_the_mean_over_the_draws(believed):
    """Maps of the same entropy at each location as the draws have on average, not that of the median map."""
    p = believed.draws
    expected = -np.sum(p * np.log(np.where(p > 0, p, 1)), axis=2).mean(axis=0).reshape(6, 6)
    assert np.abs(expected - believed.maps.entropy.reshape(6, 6)).max() > 0.02
    for drawn, place in (
        (figures.maps(believed), 3),
        (figures.entropy(believed), 0),
        (figures.participants({"P1": believed}), 0),
        (figures.intervals(believed), 6),
    ):
        assert np.allclose(drawn.axes[place].images[0].get_array(), expected)


@pytest.mark.parametrize("count", [1, MAX_NAMED // 2, MAX_NAMED // 2 + 1])
def test_names_are_at_the_dots_of_their_participants(count):
    """Up to 20 participants are named at their dots; with more, only the groups are named."""
    group = {f"P{at}": Measurement(0.5 - 0.01 * at, 0.02, 0.2, 0.6) for at in range(count)}
    (axes,) = figures.entropies({"low": group, "high": group}).axes
    names = [label.get_text() for label in axes.get_xticklabels()]
    if 2 * count > MAX_NAMED:
        assert names == [f"low\nn = {count}", f"high\nn = {count}"]
        return
    assert [text.get_text() for text in axes.texts] == [f"low\nn = {count}", f"high\nn = {count}"]
    assert names == 2 * [f"P{at}" for at in reversed(range(count))]
    drawn = [one for one in axes.collections if isinstance(one, PathCollection)]
    dots = [x for each in drawn for x, _ in each.get_offsets()]
    assert dots == pytest.approx(list(axes.get_xticks()))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0.25, 0.2, 0.31), "0.25 [0.20, 0.31]"),
        ((0.123, 0.1207, 0.126), "0.123 [0.121, 0.126]"),
        ((0.0063, 0.003, 0.0164), "0.006 [0.003, 0.016]"),
        ((0.0021, 0.0014, 0.0034), "0.0021 [0.0014, 0.0034]"),
        ((0.0002, 0.0001, 0.0004), "0.0002 [0.0001, 0.0004]"),
        ((0.00002, 0.00001, 0.00004), "< 0.0001"),
        ((0.3, 0.3, 0.3), "0.3000 [0.3000, 0.3000]"),
    ],
)
def test_an_interval_has_enough_digits_to_distinguish_its_ends(values, text):
    assert format_interval(*values) == text


def test_the_evidence_axis_states_where_it_is_logarithmic(believed):
    class Table:
        chosen, plausible_text = 2, "2 and 3"

        def rows(self):
            return [{"segments": k, "below_best": below} for k, below in ((2, 0.5), (3, 0.0), (4, 30.0))]

    (axes,) = figures.evidence(Table()).axes
    axes.figure.canvas.draw()
    assert axes.get_ylabel() == "log evidence below the best\n(nats; logarithmic below −4)"
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["0", "−2", "−4", "−10", "−30"]
