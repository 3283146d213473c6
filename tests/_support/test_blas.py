"""One thread for linear algebra, for as long as anybody wants it."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from vseg._support.blas import single_blas_thread


def most_threads() -> int:
    return max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")


def test_until_the_last_has_left():
    assert np.ones((2, 2)).sum() == 4
    with threadpool_limits(2, user_api="blas"):
        before = most_threads()
        with single_blas_thread:
            with single_blas_thread:
                assert most_threads() == 1
            assert most_threads() == 1
        assert most_threads() == before


def test_an_error_inside_leaves_too():
    with threadpool_limits(2, user_api="blas"):
        before = most_threads()
        with pytest.raises(ZeroDivisionError), single_blas_thread:
            1 / 0  # noqa: B018
        assert most_threads() == before
