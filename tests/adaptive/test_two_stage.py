"""Two-stage designs: the second half of the pairs from a map of the first half's answers."""

import numpy as np
import pytest

import vseg
from vseg.adaptive import two_stage_pairs
from vseg.data.responses import concatenate
from vseg.designs import check_independence

GRID = vseg.Grid(12)
TRUTH = vseg.stimuli.random_maps(GRID, segments=3, entropy=0, min_area=0.28, seed=0)


def ask_first(trials=216, blocks=3):
    pairs = vseg.designs.scattered(GRID, trials=trials, seed=1)
    return vseg.simulate(TRUTH, pairs, blocks=blocks, seed=2)


def test_second_stage_reaches_every_segment_where_scattered_pairs_do_not():
    """A certain observer's coarse map is nearly right, so most locations get a partner in each true segment."""
    first = ask_first()
    second = two_stage_pairs(first, segments=3, seed=3)
    assert len(second) == 216
    assert not set(second) & set(first.tally().pairs)
    scattered = vseg.designs.scattered(GRID, trials=216, avoid=[first.tally().pairs], seed=3)
    shares = [check_independence(pairs, TRUTH).spanning.mean() for pairs in (second, scattered)]
    assert shares[0] > 2 * shares[1]  # 0.81 against 0.21 with other seeds


def test_the_second_stage_improves_the_map():
    first = ask_first()
    later = vseg.simulate(TRUTH, two_stage_pairs(first, segments=3, seed=3), blocks=3, seed=4)
    with pytest.warns(vseg.errors.VsegWarning, match="Only 216 distinct pairs"):
        before = vseg.reconstruct(first, segments=3, seed=5).maps
    after = vseg.reconstruct(concatenate([first, later]), segments=3, seed=5).maps
    assert vseg.metrics.mae(after, TRUTH) < 0.5 * vseg.metrics.mae(before, TRUTH)


def test_seeds_trials_and_one_image():
    first = ask_first()
    one, again, other = (two_stage_pairs(first, segments=3, trials=100, seed=seed) for seed in (0, 0, 1))
    assert one == again != other
    assert len(one) == 100
    assert one == two_stage_pairs(first.tally(), segments=3, trials=100, seed=0)
    images = concatenate([first, vseg.simulate(TRUTH, one, image="other", seed=0)])
    with pytest.raises(vseg.errors.InvalidInput, match="about 2 images"):
        two_stage_pairs(images, segments=3, seed=0)


def test_all_pairs_tested_before_are_asked_again_only_if_none_are_left():
    small = vseg.Grid(3)
    truth = vseg.Maps.one_hot(small, np.arange(9) % 3)
    first = vseg.simulate(truth, vseg.designs.all_pairs(small), seed=0)
    assert len(two_stage_pairs(first, segments=3, trials=20, seed=0)) == 20
