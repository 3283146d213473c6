"""What stands below the pictures of a posterior, and who is who."""

import warnings

import pytest
from matplotlib.collections import PathCollection

from vseg import Grid, figures, posterior, simulate, stimuli
from vseg.designs import covering
from vseg.errors import VsegWarning
from vseg.evaluation.random_effects import Measurement
from vseg.figures.posteriors import MOST_NAMED, medians, people


@pytest.fixture(scope="module")
def believed():
    truth = stimuli.random_maps(Grid(6), segments=2, entropy=0.2, seed=0)
    answers = simulate(truth, covering(truth.layout, segments=2, seed=1), blocks=2, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)  # few draws
        return posterior(answers, segments=2, draws=16, seed=3, threads=1)


def flat(drawn):
    return [text.get_text() for text in drawn.texts if not text.get_rotation()]


def test_pictures_have_the_entropy_of_the_numbers(believed):
    low, high = believed.entropy_interval
    said = f"{believed.entropy:.2f} [{low:.2f}, {high:.2f}] nats"
    assert flat(medians(believed)) == [said]
    assert flat(medians(believed, believed, names=["answers alone", "2 nats"])) == [said, said]
    assert flat(people({"0.1 nats": believed, "P2": believed})) == [said, said]


@pytest.mark.parametrize("count", [1, MOST_NAMED // 2, MOST_NAMED // 2 + 1])
def test_who_is_who(count):
    """Everyone's name stands at their own dot, up to 20 people; of more, the groups' names alone."""
    group = {f"P{at}": Measurement(0.5 - 0.01 * at, 0.02, 0.2, 0.6) for at in range(count)}
    (axes,) = figures.entropies({"low": group, "high": group}).axes
    names = [label.get_text() for label in axes.get_xticklabels()]
    if 2 * count > MOST_NAMED:
        assert names == [f"low\nn = {count}", f"high\nn = {count}"]
        return
    assert [text.get_text() for text in axes.texts] == [f"low\nn = {count}", f"high\nn = {count}"]
    assert names == 2 * [f"P{at}" for at in reversed(range(count))]
    drawn = [one for one in axes.collections if isinstance(one, PathCollection)]
    dots = [x for each in drawn for x, _ in each.get_offsets()]
    assert dots == pytest.approx(list(axes.get_xticks()))
