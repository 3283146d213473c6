import numpy as np
import pytest

from vseg._support.seeds import check_seed
from vseg.errors import InvalidInput


@pytest.mark.parametrize("seed", [0, 7, 2**200, np.int64(7), np.uint8(7)])
def test_integers_are_returned_as_python_ints(seed):
    assert check_seed(seed) == int(seed)
    assert type(check_seed(seed)) is int


@pytest.mark.parametrize("seed", [np.random.SeedSequence(3), np.random.default_rng(3)])
def test_numpy_seeds_are_returned_unchanged(seed):
    assert check_seed(seed) is seed


@pytest.mark.parametrize("seed", [-1, np.int64(-1), None, 1.0, np.nan, True, "7", [1, 2]])
def test_anything_else_is_refused(seed):
    with pytest.raises(InvalidInput) as caught:
        check_seed(seed)
    assert str(caught.value) == f"A seed is a whole number from 0 up, got {seed!r}."
