"""Designs: covering, balanced and scattered pairs, blocks, splitting, coverage."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import vseg
from vseg import Grid, Pairs, Scatter, designs
from vseg.designs import pair_graphs
from vseg.errors import InvalidInput, VsegWarning

RANDOM_DESIGNS = [designs.covering, designs.balanced, designs.scattered]


@st.composite
def layouts(draw):
    size = draw(st.integers(3, 9))
    if draw(st.booleans()):
        return Grid(size)
    points = np.random.default_rng(draw(st.integers(0, 1000))).random((size * 3 - 2, 2))
    return Scatter(points)


@st.composite
def layouts_and_trials(draw):
    layout = draw(layouts())
    n = len(layout)
    return layout, draw(st.integers(-(-n // 2), n * (n - 1) // 2))


def keys(pairs):
    return set(pairs)


@pytest.mark.parametrize("design", RANDOM_DESIGNS)
@given(case=layouts_and_trials(), seed=st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_every_design_covers_without_duplicates(design, case, seed):
    """`Pairs` rejects duplicates and identical points, so only the number needs checking."""
    layout, trials = case
    pairs = design(layout, trials=trials, seed=seed)
    assert len(pairs) == trials
    assert len(keys(pairs)) == trials
    assert pairs.partners.min() >= 1


@pytest.mark.parametrize("design", [designs.balanced, designs.scattered])
@given(case=layouts_and_trials(), seed=st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_balanced_designs_use_every_location_equally(design, case, seed):
    layout, trials = case
    pairs = design(layout, trials=trials, seed=seed)
    assert np.ptp(pairs.partners) <= (0 if 2 * trials % len(layout) == 0 else 1)


@pytest.mark.parametrize("design", RANDOM_DESIGNS)
def test_the_seed_determines_the_pairs(design):
    one, again, other = (design(Grid(8), segments=3, seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert keys(one) != keys(other)


@pytest.mark.parametrize("design", RANDOM_DESIGNS)
def test_the_default_is_the_number_of_the_paper(design):
    assert len(design(Grid(16), segments=3, seed=0)) == designs.paper_trials(Grid(16), 3) == 768


def test_minimal_trials_of_the_paper():
    """N=16, up to K=5: 'N_t = (K-1)N² = 1024 trials' (the natural images)."""
    assert designs.minimal_trials(Grid(16), 5) == 1024


def test_small_layouts_use_all_pairs_if_they_have_fewer_than_advised():
    assert len(designs.covering(Grid(3), segments=8, seed=0)) == 36


@pytest.mark.parametrize("segments", [2, 3, 5])
@pytest.mark.parametrize("layout", [Grid(14), Scatter(np.random.default_rng(0).random((211, 2)))], ids=str)
def test_scattered_partners_lie_in_different_regions(layout, segments):
    """Every location has a partner in nearly every other region; rounding affects a few at the borders."""
    pairs = designs.scattered(layout, segments=segments, seed=3)
    region = pair_graphs.divide_into_regions(layout.positions, 2 * segments + 1, np.random.default_rng(3))
    partners = np.zeros((len(layout), 2 * segments + 1), int)
    np.add.at(partners, (pairs.i, region[pairs.j]), 1)
    np.add.at(partners, (pairs.j, region[pairs.i]), 1)
    assert np.bincount(region).max() - np.bincount(region).min() <= 1
    assert (partners > 0).sum(axis=1).mean() > 2 * segments - 0.35
    assert np.median(pairs.distances) > np.median(
        designs.balanced(layout, segments=segments, seed=3).distances
    )


def test_switching_removes_the_regularity_of_the_circulant_graph():
    """A circulant graph has about n·C(shifts, 2) closed walks of four pairs; a random graph has few."""
    pairs = designs.balanced(Grid(16), segments=3, seed=0)
    joined = np.zeros((256, 256), int)
    joined[pairs.i, pairs.j] = joined[pairs.j, pairs.i] = 1
    common = joined @ joined
    np.fill_diagonal(common, 0)
    squares = (common * (common - 1) // 2).sum() // 4
    assert squares < 200  # 78 expected at random with 6 partners (5⁴/8); the circulant has over 700


@given(st.integers(3, 12), st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_a_single_cycle_is_connected(size, seed):
    """N² trials give each location two partners, in one random cycle."""
    pairs = designs.balanced(Grid(size), trials=size**2, seed=seed)
    assert designs.coverage(pairs).connected


def test_all_pairs():
    assert len(keys(designs.all_pairs(Grid(4)))) == 120
    assert keys(designs.all_pairs(Grid(4), seed=1)) == keys(designs.all_pairs(Grid(4)))
    with pytest.raises(InvalidInput, match="2147450880"):
        designs.all_pairs(Grid(256))
    with pytest.raises(InvalidInput, match="120 pairs, but trials is 50"):
        designs.all_pairs(Grid(4), trials=50)


@given(st.integers(4, 3000), st.data())
def test_ranks_and_pairs_correspond(n, data):
    rank = data.draw(st.integers(0, n * (n - 1) // 2 - 1))
    i, j = divmod(int(pair_graphs.key_of_rank(n, np.array([rank]))[0]), n)
    assert 0 <= i < j < n
    assert j * (j - 1) // 2 + i == rank


def test_ranks_are_exact_on_the_largest_grid():
    """A square root with 17 significant digits must not round a rank of 2³¹ into the next row."""
    n = 65536
    j = np.array([n - 1, n - 2, n - 1])
    i = np.array([0, n - 3, n - 2])
    assert (pair_graphs.key_of_rank(n, j * (j - 1) // 2 + i) == i * n + j).all()


@pytest.mark.parametrize("design", RANDOM_DESIGNS)
def test_blocks_repeat_the_same_pairs(design):
    same = designs.draw_blocks(design, Grid(6), blocks=3, segments=2, seed=0)
    assert keys(same[0]) == keys(same[1]) == keys(same[2])
    assert same[0] != same[1]


@pytest.mark.parametrize("design", RANDOM_DESIGNS)
def test_fresh_blocks_share_no_pair(design):
    fresh = designs.draw_blocks(design, Grid(8), blocks=6, fresh=True, segments=3, seed=0)
    assert len(set().union(*map(keys, fresh))) == 6 * 192
    assert all(block.partners.min() >= 1 for block in fresh)
    if design is not designs.covering:
        assert all(set(block.partners) == {6} for block in fresh)


@pytest.mark.parametrize(
    ("layout", "blocks", "trials"), [(Grid(8), 4, 504), (Grid(3), 2, 18), (Grid(8), 3, 600)]
)
@pytest.mark.parametrize("seed", range(5))
def test_fresh_covering_blocks_use_every_pair_before_repeating_one(layout, blocks, trials, seed):
    fresh = designs.draw_blocks(designs.covering, layout, blocks=blocks, fresh=True, trials=trials, seed=seed)
    assert len(set().union(*map(keys, fresh))) == blocks * trials
    assert all(len(block) == trials and block.partners.min() >= 1 for block in fresh)


@given(case=layouts_and_trials(), seed=st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_a_covering_block_repeats_only_necessary_pairs(case, seed):
    """All new pairs are used, or as many as fit; only locations without a new partner repeat a pair."""
    layout, trials = case
    first = designs.covering(layout, trials=trials, seed=seed)
    second = designs.covering(layout, trials=trials, avoid=[first], seed=seed + 1)
    n = len(layout)
    left = n * (n - 1) // 2 - trials
    without_new_partner = int((first.partners == n - 1).sum())
    assert (len(second), second.partners.min() >= 1) == (trials, True)
    if trials >= n:  # with fewer trials, a cover may need a matching that the new pairs do not contain
        assert len(keys(first) & keys(second)) <= max(trials - left, 0) + without_new_partner


@pytest.mark.parametrize("design", RANDOM_DESIGNS)
@pytest.mark.parametrize("seed", range(3))
def test_fresh_blocks_repeat_when_pairs_run_out(design, seed):
    """3 · 18 pairs of 36: after two blocks without a repeat, the third must repeat, without a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fresh = designs.draw_blocks(design, Grid(3), blocks=3, fresh=True, trials=18, seed=seed)
    distinct = len(set().union(*map(keys, fresh)))
    assert [len(block) for block in fresh] == [18] * 3
    assert all(block.partners.min() >= 1 for block in fresh)
    assert distinct == 36 or (design is not designs.covering and distinct > 30)
    assert bool(caught) == (len(keys(fresh[0]) | keys(fresh[1])) < 36)


@pytest.mark.parametrize("design", [designs.balanced, designs.scattered])
def test_avoidable_repeats_give_a_warning(design):
    """504 pairs cannot give 64 locations equally many partners, so the fourth block cannot use all remaining pairs."""
    with pytest.warns(
        VsegWarning, match="of 2016 pairs repeat those of an earlier block although new"
    ) as caught:
        fresh = designs.draw_blocks(design, Grid(8), blocks=4, fresh=True, trials=504, seed=0)
    repeated = 2016 - len(set().union(*map(keys, fresh)))
    assert str(caught[0].message).startswith(f"{repeated} of 2016 ")
    assert 0 < repeated < 100


def test_perfect_matchings_use_nearly_all_pairs():
    """63 matchings of 32 pairs contain all pairs of 64 locations, but the last ones may not fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)
        fresh = designs.draw_blocks(designs.covering, Grid(8), blocks=63, fresh=True, trials=32, seed=0)
    assert all(set(block.partners) == {1} for block in fresh)
    assert len(set().union(*map(keys, fresh))) > 2016 - 10


def test_blocks_of_all_pairs_repeat_without_a_warning():
    assert len(designs.draw_blocks(designs.all_pairs, Grid(3), blocks=2, fresh=True, seed=0)) == 2


@given(case=layouts_and_trials(), sessions=st.integers(1, 9), seed=st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_split_assigns_every_pair_to_one_session(case, sessions, seed):
    layout, trials = case
    pairs = designs.covering(layout, trials=trials, seed=seed)
    parts = designs.split(pairs, min(sessions, trials), seed=seed)
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert sorted(pair for part in parts for pair in part) == sorted(pairs)


def test_sessions_of_the_paper_cover_the_image():
    """1024 trials on a 16x16 grid over 8 sessions: 128 pairs can include all 256 locations."""
    parts = designs.split(designs.balanced(Grid(16), trials=1024, seed=0), 8, seed=1)
    assert [len(part) for part in parts] == [128] * 8
    assert min((part.partners > 0).sum() for part in parts) > 238


def test_split_reaches_the_bound_of_a_covering_design():
    """A location with d partners can be in at most min(d, 8) sessions."""
    pairs = designs.covering(Grid(16), trials=1024, seed=0)
    touched = sum((part.partners > 0).sum() for part in designs.split(pairs, 8, seed=1))
    assert touched >= 0.99 * np.minimum(pairs.partners, 8).sum()


@pytest.mark.parametrize(
    ("design", "trials", "share", "margin"),
    [
        # science.md, section 1: ~3 % with KN² random pairs, ~9 % with (K-1)N²; balanced designs do better.
        (designs.covering, 768, 0.03, 0.01),
        (designs.covering, 512, 0.09, 0.02),
        # Six partners of equally frequent labels: 2·3⁻⁶ = 0.3 %, a little more as segments differ in size.
        (designs.balanced, 768, 0.005, 0.004),
        (designs.scattered, 768, 0.002, 0.003),
    ],
)
def test_ambiguous_locations(design, trials, share, margin):
    found = [
        designs.coverage(design(Grid(16), trials=trials, seed=s), segments=3).ambiguous for s in range(4)
    ]
    assert abs(np.mean(found) - share) < margin


def test_ambiguity_of_a_small_example():
    """K=2: one partner determines a label; without a partner it is ambiguous."""
    found = designs.coverage(Pairs(Grid(3), [0, 1], [4, 8]), segments=2)
    assert found.ambiguous == pytest.approx(5 / 9)
    assert found.tested == pytest.approx(4 / 9)
    assert (found.fewest, found.most, found.connected, found.advised) == (0, 1, False, 200)


def test_coverage_as_text():
    pairs = designs.all_pairs(Grid(3))
    assert str(designs.coverage(pairs)) == (
        "36 pairs on a 3x3 grid test 100% of 9 locations, each with 8 partners "
        "at a median distance of 0.47 of the image's side, in one connected graph."
    )
    assert str(designs.coverage(pairs, segments=2)).endswith(
        "200 answers are advised, 100.0% of the locations of a one-hot map would have partners in all of them, and "
        "0.0% would stay ambiguous."
    )


def test_coverage_by_labels_needs_segments():
    with pytest.raises(InvalidInput, match="needs segments, the number K"):
        designs.coverage(designs.all_pairs(Grid(3)), labels=[0] * 9)


def test_coverage_of_no_pairs():
    found = designs.coverage(Pairs(Grid(3), [], []), segments=2)
    assert (found.tested, found.ambiguous) == (0, 1)


@pytest.mark.parametrize("design", RANDOM_DESIGNS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "segments .* or trials"),
        ({"segments": 1}, "from 2 up, got segments=1"),
        ({"segments": 2.5}, "from 2 up, got segments=2.5"),
        ({"trials": 7}, "8 trials .* to 120 .* got trials=7"),
        ({"trials": 121}, "got trials=121"),
        ({"trials": 30.5}, "got trials=30.5"),
    ],
)
def test_invalid_designs(design, options, message):
    with pytest.raises(InvalidInput, match=message):
        design(Grid(4), seed=0, **options)


def test_invalid_blocks_sessions_and_names():
    pairs = designs.covering(Grid(4), segments=2, seed=0)
    with pytest.raises(InvalidInput, match="1 to 32 sessions for 32 pairs, got 33"):
        designs.split(pairs, 33, seed=0)
    with pytest.raises(InvalidInput, match=r"1 to 32 sessions for 32 pairs, got 1\.5"):
        designs.split(pairs, 1.5, seed=0)
    for blocks in (0, 1.5):
        with pytest.raises(InvalidInput, match=f"whole number of blocks from 1 up, got blocks={blocks}"):
            designs.draw_blocks(designs.covering, Grid(4), blocks=blocks, segments=2, seed=0)
    with pytest.raises(InvalidInput, match="covering, balanced, scattered, all, oracle, got 'sobol'"):
        designs.get_design("sobol")


@pytest.mark.parametrize(
    "draw",
    [
        *(lambda seed, design=design: design(Grid(4), segments=2, seed=seed) for design in RANDOM_DESIGNS),
        lambda seed: designs.all_pairs(Grid(4), seed=seed),
        lambda seed: designs.draw_blocks(designs.covering, Grid(4), blocks=2, segments=2, seed=seed),
        lambda seed: designs.split(designs.all_pairs(Grid(4)), 2, seed=seed),
        lambda seed: designs.coverage(designs.all_pairs(Grid(4)), segments=2, seed=seed),
    ],
)
def test_seeds(draw):
    """A seed is a whole number from 0 up, a SeedSequence or a Generator; seed 1 means SeedSequence(1)."""
    assert draw(1) == draw(np.int64(1)) == draw(np.random.SeedSequence(1)) == draw(np.random.default_rng(1))
    for seed in (-1, 1.5, "a"):
        with pytest.raises(InvalidInput, match=f"A seed is a whole number from 0 up, got {seed!r}"):
            draw(seed)


def test_every_design_has_the_same_parameters():
    for name in designs.DESIGNS:
        labels = {"labels": np.arange(16) % 2} if name == "oracle" else {}
        assert len(designs.get_design(name)(Grid(4), segments=2, trials=None, seed=0, **labels)) in (32, 120)


def test_save_trials(tmp_path):
    """The file has dots in image pixels; with a column `same` added, `load` reads it."""
    blocks = designs.draw_blocks("covering", Grid(4), blocks=2, segments=2, seed=0)
    designs.save_trials(blocks, tmp_path / "trials.csv", width_px=400, height_px=200)
    rows = [line.split(",") for line in (tmp_path / "trials.csv").read_text().splitlines()]
    assert rows[0] == ["block", "trial", "i", "j", "x1", "y1", "x2", "y2"]
    assert len(rows) == 1 + 2 * 32
    i, j = int(rows[1][2]), int(rows[1][3])
    assert (i, j) == next(iter(blocks[0]))
    centres = Grid(4).pixels(400, 200)
    assert [float(cell) for cell in rows[1][4:]] == [*centres[i], *centres[j]]
    answered = [[*rows[0], "same"], *([*row, "1"] for row in rows[1:])]
    (tmp_path / "responses.csv").write_text("\n".join(",".join(row) for row in answered))
    assert len(vseg.load(tmp_path / "responses.csv", Grid(4))) == 64


# ── oracle designs and Proposition 1 ──


@st.composite
def labelled_layouts(draw):
    layout = draw(layouts())
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    segments = draw(st.integers(1, 5))
    labels = rng.choice(segments, len(layout), p=rng.dirichlet(np.full(segments, 0.7)))
    n = len(layout)
    return layout, labels, draw(st.integers(-(-n // 2), n * (n - 1) // 2))


def count_partners(pairs, labels, segments):
    """(n, K): the number of partners of each location in each segment."""
    found = np.zeros((len(labels), segments), np.int64)
    for i, j in pairs:
        found[i, labels[j]] += 1
        found[j, labels[i]] += 1
    return found


@given(case=labelled_layouts(), seed=st.integers(0, 2**31))
@settings(max_examples=100, deadline=None)
def test_oracle_pairs_reach_every_segment_as_soon_as_there_are_enough(case, seed):
    """One partner in each segment takes half a segment's size within it, the larger size between two."""
    layout, labels, trials = case
    pairs = designs.oracle(layout, labels=labels, trials=trials, seed=seed)
    assert len(pairs) == trials
    sizes = np.bincount(labels, minlength=5)
    within = sum(-(-size // 2) for size in sizes[sizes > 1])
    between = sum(max(a, b) for k, a in enumerate(sizes) for b in sizes[:k] if a and b)
    possible = np.tile(sizes > 0, (len(labels), 1))
    possible[np.arange(len(labels)), labels] = sizes[labels] > 1
    if trials >= within + between:
        assert (count_partners(pairs, labels, 5)[possible] > 0).all()


@given(size=st.sampled_from([4, 8, 12]), segments=st.sampled_from([2, 4]), seed=st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_oracle_pairs_of_equal_segments_are_balanced(size, segments, seed):
    """KN²/2 pairs give exactly one partner in each segment, KN² pairs two: 2K partners in all."""
    labels = np.random.default_rng(seed).permutation(np.arange(size**2) % segments)
    for times in (1, 2):
        trials = times * segments * size**2 // 2
        pairs = designs.oracle(Grid(size), labels=labels, trials=trials, seed=seed)
        assert (count_partners(pairs, labels, segments) == times).all()
    assert designs.oracle(Grid(size), labels=labels, seed=seed) == pairs  # KN² is the default


@pytest.mark.parametrize("seed", range(5))
def test_paper_trials_suffice_for_any_segments(seed):
    """KN² pairs reach every segment however unequal the segments are."""
    labels = np.random.default_rng(seed).choice(4, 144, p=[0.9, 0.04, 0.03, 0.03])
    pairs = designs.oracle(Grid(12), labels=labels, segments=4, seed=seed)
    assert (count_partners(pairs, labels, 4)[:, np.bincount(labels) > 1] > 0).all()


def test_oracle_labels_beyond_the_number_of_segments_are_refused():
    with pytest.raises(InvalidInput, match="Labels must be 0 to 1 if there are 2 segments, got 4"):
        designs.oracle(Grid(5), labels=np.arange(25) % 5, segments=2, seed=0)


def test_oracle_blocks_avoid_earlier_pairs_and_keep_the_segments():
    labels = np.arange(64) // 16
    blocks = designs.draw_blocks("oracle", Grid(8), labels=labels, blocks=3, fresh=True, trials=128, seed=0)
    assert len({pair for block in blocks for pair in block}) == 384
    for block in blocks:
        assert (count_partners(block, labels, 4) == 1).all()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "Expected labels, the segment of each location, for an oracle design, got none"),
        ([0, 1], "each of the 16 locations of a 4x4 grid, got int64 numbers of shape"),
        (np.zeros(16), "got float64 numbers"),
        ([-1] * 16, "Expected labels from 0 up, got -1 to -1"),
    ],
)
def test_invalid_labels(labels, message):
    with pytest.raises(InvalidInput, match=message):
        designs.oracle(Grid(4), labels=labels, seed=0)


def test_coverage_of_given_labels():
    labels = np.arange(36) // 12
    pairs = designs.oracle(Grid(6), labels=labels, trials=54, seed=0)
    report = designs.coverage(pairs, segments=3, labels=labels)
    assert (report.ambiguous, report.spanning) == (0, 1)
    assert "100.0% of the locations of the given map would have partners in all of them" in str(report)
    assert designs.coverage(pairs, segments=3).spanning < 0.5  # random maps have their segments elsewhere
    with pytest.raises(InvalidInput, match="Expected labels from 0 to 1, for 2 segments, got 0 to 2"):
        designs.coverage(pairs, segments=2, labels=labels)


@given(case=layouts_and_trials(), segments=st.integers(2, 5), seed=st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_independence_equals_numpy_location_by_location(case, segments, seed):
    layout, trials = case
    pairs = designs.covering(layout, trials=trials, seed=seed)
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(segments), len(layout))
    p[rng.random(len(layout)) < 0.5] = np.eye(segments)[0]  # many equal vectors
    found = designs.check_independence(pairs, vseg.Maps(layout, p))
    partners = [[] for _ in range(len(layout))]
    for i, j in pairs:
        partners[i].append(j)
        partners[j].append(i)
    for location, own in enumerate(partners):
        rank = np.linalg.matrix_rank(p[own])
        assert (found.partners[location], found.rank[location]) == (len(own), rank)
        assert found.independent[location] == (rank == len(own))
        assert found.spanning[location] == (rank == segments)
        if rank == segments:
            np.testing.assert_allclose(found.condition[location], np.linalg.cond(p[own]), rtol=1e-6)
        else:
            assert np.isinf(found.condition[location])


def test_nearly_equal_vectors_span_but_are_ill_conditioned():
    """Vectors that differ by 1e-9 have a condition number of about 1e9: a matrix of inner products would lose them."""
    p = np.full((16, 2), 0.5)
    p[:, 0] += 1e-9 * np.arange(16)
    p[:, 1] -= 1e-9 * np.arange(16)
    maps, pairs = vseg.Maps(Grid(4), p), designs.all_pairs(Grid(4))
    found = designs.check_independence(pairs, maps)
    assert found.spanning.all()
    assert (found.condition > 1e7).all()
    assert not designs.check_independence(pairs, maps, tolerance=1e-6).spanning.any()


def test_independence_of_stacks_in_parts(monkeypatch):
    """Large designs are computed in parts, with the same result."""
    maps = vseg.stimuli.random_maps(Grid(9), segments=3, seed=0)
    pairs = designs.covering(Grid(9), segments=3, seed=0)
    whole = designs.check_independence(pairs, maps)
    monkeypatch.setattr(designs.coverage_report, "MAX_STACK", 50)
    np.testing.assert_array_equal(designs.check_independence(pairs, maps).condition, whole.condition)


def test_the_paper_contradicts_itself_about_the_number_of_partners():
    """KN² pairs give 2K partners, which are never independent; K partners take KN²/2 pairs, fewer than (K-1)N²."""
    maps = vseg.stimuli.random_maps(Grid(16), segments=4, seed=0)
    found = designs.check_independence(designs.balanced(Grid(16), segments=4, seed=0), maps)
    assert set(found.partners.tolist()) == {8}
    assert not found.independent.any()
    assert "linearly independent at 0 of 256 tested locations, and 256 have more than 4 partners" in str(
        found
    )
    assert designs.minimal_trials(Grid(16), 4) > 4 * 256 // 2


def test_invalid_independence():
    pairs = designs.all_pairs(Grid(4))
    with pytest.raises(InvalidInput, match="maps are on a 3x3 grid, but the pairs lie on a 4x4 grid"):
        designs.check_independence(pairs, vseg.stimuli.random_maps(Grid(3), segments=2, seed=0))
    with pytest.raises(InvalidInput, match="tolerance from 0 to below 1, got 2"):
        designs.check_independence(pairs, vseg.stimuli.random_maps(Grid(4), segments=2, seed=0), tolerance=2)
