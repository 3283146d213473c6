"""Test that linear algebra has one thread until the last user has left."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from vseg._support.blas import single_blas_thread


def most_threads() -> int:
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


def test_nested_uses():
    assert np.ones((2, 2)).sum() == 4
    with threadpool_limits(2, user_api="blas"):
        before = most_threads()
        with single_blas_thread:
            with single_blas_thread:
                assert most_threads() == 1
            assert most_threads() == 1
        assert most_threads() == before


def test_an_error_ends_the_limit():
    with threadpool_limits(2, user_api="blas"):
        before = most_threads()
        with pytest.raises(ZeroDivisionError), single_blas_thread:
            1 / 0  # noqa: B018
        assert most_threads() == before


def test_another_thread_than_the_first():
    """threadpoolctl ignores the limits that it sets, unless it is told otherwise."""
    seen = []

    def use() -> None:
        with single_blas_thread:
            seen.append(most_threads())
        seen.append(most_threads())

    with threadpool_limits(2, user_api="blas"):
        before = most_threads()
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert seen == [1, before]
        assert before == 2, "else this test shows nothing"
