import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import integrate

from vseg.errors import InvalidInput
from vseg.planning import Assumptions
from vseg.planning.assumptions import participant_entropy


@given(st.integers(2, 8), st.floats(0.02, 0.98), st.none() | st.floats(0, 1))
@settings(max_examples=30, deadline=None)
def test_participants_have_the_assumed_mean_and_spread(segments, level, share):
    """Over all ranks, for any mean and standard deviation."""
    entropy = level * float(np.log(segments))
    spread = Assumptions(grid=8, segments=segments, entropy=entropy).spread_at(entropy)
    spread *= 1 if share is None else share
    ranks = (np.arange(2000) + 0.5) / 2000
    found = np.array([participant_entropy(entropy, spread, segments, rank) for rank in ranks])
    assert found.mean() == pytest.approx(entropy, abs=0.002)
    assert found.std() == pytest.approx(spread, abs=0.01 * spread + 1e-9)
    assert (found >= 0).all()
    assert (found < np.log(segments)).all()
    assert (np.diff(found) >= 0).all()


def test_the_default_spread_gives_about_the_papers_effect():
    """0.2 against 0.3 nats, measured exactly, are d = 1.18 apart; the paper's participants, with errors, 1.003."""
    assumptions = Assumptions(grid=11, segments=2, entropy=0.2, against=0.3)
    pooled = np.sqrt(np.mean([assumptions.spread_at(entropy) ** 2 for entropy in (0.2, 0.3)]))
    assert 0.1 / pooled == pytest.approx(1.18, abs=0.01)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"grid": 2}, "3 to 64 locations along a side, got 2"),
        ({"grid": 70}, "3 to 64 locations along a side, got 70"),
        ({"segments": 1}, "segments from 2 to 121, got 1"),
        ({"entropy": 0.7}, "from 0 to below log 2 = 0.693 nats, got 0.7"),
        ({"against": 0.2}, "nothing to tell apart"),
        ({"against": -1.0}, "got -1"),
        ({"spread": 0.5}, r"standard deviation from 0 to 0\.\d+, got a spread of 0.5"),
        ({"spread": -0.1}, "got a spread of -0.1"),
        ({"lapse": 1.0}, "lapse rate is a share"),
        ({"design": "all"}, "covering, balanced, scattered"),
        ({"smoothness": -1.0}, "from 0 up"),
        ({"smoothness": None}, "from 0 up, got None"),
        ({"entropy": "0.2"}, "Expected a number as entropy, got '0.2'"),
        ({"entropy": None}, "Expected a number as entropy, got None"),
        ({"against": "0.3"}, "Expected a number as against, got '0.3'"),
        ({"spread": "wide"}, "Expected a number as spread, got 'wide'"),
        ({"lapse": None}, "Expected a number as lapse, got None"),
        ({"entropy": float("nan")}, "got nan"),
        ({"design": ["covering"]}, "Unknown design"),
    ],
)
def test_impossible_assumptions_are_refused(wrong, message):
    with pytest.raises(InvalidInput, match=message):
        Assumptions(**{"grid": 11, "segments": 2, "entropy": 0.2, **wrong})


def test_the_widest_spread_is_accepted():
    """There the beta density still has no more than one infinite end, so that its mean can be integrated."""
    with pytest.raises(InvalidInput) as refused:
        Assumptions(grid=11, segments=2, entropy=0.2, spread=10)
    widest = float(str(refused.value).split("from 0 to ")[1].split(",")[0]) - 0.001
    Assumptions(grid=11, segments=2, entropy=0.2, spread=widest)
    mean, _ = integrate.quad(lambda rank: participant_entropy(0.2, widest, 2, rank), 0, 1)
    assert mean == pytest.approx(0.2, abs=1e-3)
