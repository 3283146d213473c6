"""Test the results of sweeps with every kind of executor."""

import itertools
import re
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sweeps.studies import leaving, noisy, raising, several, threads, unpicklable
from vseg.errors import InvalidInput, VsegError
from vseg.sweeps import open_workers, sweep
from vseg.sweeps.repetitions import FinishedRepetition, Repetition, derive_repetition_seed
from vseg.sweeps.scheduler import MAX_TASK_REPETITIONS, RepetitionCosts

BLOCKS = {"blocks": [1, 2, 4]}


@pytest.fixture(scope="module")
def plain():
    return sweep(noisy, BLOCKS, repeats=20, seed=5)


@pytest.fixture(scope="module")
def two_processes():
    """Workers started without OPENBLAS_NUM_THREADS, which `make test` sets: they must set it themselves."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("OPENBLAS_NUM_THREADS", raising=False)
        with open_workers("processes:2") as workers:
            yield workers


def test_rows_are_settings_repeat_results():
    table = sweep(several, {"blocks": [2, 1]}, repeats=2, seed=0)
    assert table.columns == ("blocks", "repeat", "method", "error")
    assert [(row["blocks"], row["repeat"], row["method"]) for row in table.rows] == list(
        itertools.product([2, 1], [0, 1], ["paper", "ours"])
    )


def test_a_mapping_is_expanded_and_a_list_is_not():
    def join(a, seed, b="none"):
        return {"joined": f"{a}{b}"}

    grid = sweep(join, {"a": [1, 2], "b": ["x", "y"]}, repeats=1, seed=0)
    assert grid.column("joined").tolist() == ["1x", "1y", "2x", "2y"]
    listed = sweep(join, [{"a": np.int64(1)}, {"a": 2, "b": "z"}], repeats=1, seed=0)
    assert listed.column("joined").tolist() == ["1none", "2z"]


def test_threads_and_any_executor_give_the_same_numbers(plain):
    with ThreadPoolExecutor(3) as pool:
        for executor in ("threads", "threads:3", pool):
            assert sweep(noisy, BLOCKS, repeats=20, seed=5, executor=executor) == plain
        assert pool.submit(int, 7).result() == 7  # the caller's pool is still open


def test_processes_give_the_same_numbers(plain, two_processes):
    assert sweep(noisy, BLOCKS, repeats=20, seed=5, executor=two_processes) == plain
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert sweep(noisy, BLOCKS, repeats=20, seed=5, executor=pool) == plain


def test_more_repeats_and_settings_keep_the_earlier_numbers(plain):
    more = sweep(noisy, {"blocks": [1, 2, 4, 8]}, repeats=23, seed=5)
    for blocks in (1, 2, 4):
        assert (
            more.column("error", blocks=blocks)[:20].tolist() == plain.column("error", blocks=blocks).tolist()
        )


@given(seed=st.integers(0, 2**64), setting=st.integers(0, 20), repeat=st.integers(0, 20))
def test_a_repetitions_seed_is_spawned(seed, setting, repeat):
    """Test that it equals spawning from a SeedSequence step by step, and fits a signed integer."""
    child = np.random.SeedSequence(seed).spawn(setting + 1)[setting].spawn(repeat + 1)[repeat]
    assert (
        derive_repetition_seed(seed, Repetition(setting, repeat))
        == int(child.generate_state(1, np.uint64)[0]) // 2
        < 2**63
    )


def test_every_repetition_has_its_own_seed():
    table = sweep(lambda x, seed: {"seed_was": seed}, {"x": list(range(10))}, repeats=100, seed=0)
    assert len(set(table.column("seed_was").tolist())) == 1000


def test_progress_counts_every_repetition_once(two_processes):
    calls = []
    sweep(noisy, BLOCKS, repeats=40, seed=5, executor=two_processes, progress=calls.append)
    assert sum(calls) == 120
    assert len(calls) > 4
    assert min(calls) > 0


def test_a_worker_process_has_one_thread(two_processes):
    assert sweep(threads, {"blocks": [1]}, repeats=1, seed=0, executor=two_processes).rows == [
        {"blocks": 1, "repeat": 0, "numba": 1, "others": "1,1,1"}
    ]


@pytest.mark.parametrize("executor", [None, "threads:2", "two processes"])
def test_a_repetition_that_raises_is_reported(executor, two_processes):
    executor = two_processes if executor == "two processes" else executor
    with pytest.raises(VsegError, match="raised ValueError: three is not allowed") as caught:
        sweep(raising, {"blocks": [1, 2, 3]}, repeats=9, seed=4, executor=executor)
    named = re.search(r"blocks=3, repeat (\d)", str(caught.value))
    assert named, "side by side, any of the failing repetitions may be the first to raise"
    assert f"seed={derive_repetition_seed(4, Repetition(2, int(named[1])))}" in str(caught.value)
    assert "in raising" in caught.value.__notes__[0]


def test_here_the_error_itself_is_the_cause():
    with pytest.raises(VsegError) as caught:
        sweep(raising, {"blocks": [3]}, repeats=1, seed=4)
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize(
    ("function", "message"), [(leaving, "SystemExit: exit called"), (unpicklable, "one and two")]
)
def test_errors_that_could_break_a_worker_are_reported(function, message, two_processes):
    """Test SystemExit, and an error that cannot be unpickled."""
    with pytest.raises(VsegError, match=message):
        sweep(function, {"blocks": [1]}, repeats=1, seed=0, executor=two_processes)


def test_a_lambda_cannot_be_sent(two_processes):
    with pytest.raises(InvalidInput, match="top level of a file, or use executor='threads'"):
        sweep(lambda blocks, seed: {}, BLOCKS, repeats=1, seed=0, executor=two_processes)


def test_a_partial_can_be_sent(two_processes, plain):
    table = sweep(partial(noisy, where=""), BLOCKS, repeats=20, seed=5, executor=two_processes)
    assert table == plain


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"settings": {}, "function": raising}, "blocks"),
        ({"settings": []}, "at least one setting"),
        ({"settings": 3}, "list of dicts, got 3"),
        ({"settings": [1, 2]}, r"list of dicts, got \[1, 2\]"),
        ({"settings": {"blocks": 3}}, "list of values, got 3"),
        ({"settings": {"blocks": "abc"}}, "list of values, got 'abc'"),
        ({"settings": {"blocks": [np.zeros(3)]}}, "make the rest of it in the function"),
        ({"settings": {"seed": [1]}}, "'seed'"),
        ({"settings": [{"blocks": 1}, {"blocks": 1}]}, "twice"),
        ({"repeats": 0}, "repeats.*got 0"),
        ({"repeats": 2.5}, "repeats.*got 2.5"),
        ({"seed": -1}, "got -1"),
        ({"seed": np.random.default_rng(0)}, "whole number"),
        ({"function": 3}, "needs a function, got 3"),
        ({"function": lambda blocks, seed: 3}, "dict of numbers and words.*got 3"),
        ({"function": lambda blocks, seed: {"maps": np.zeros(3)}}, "maps = array"),
        ({"function": lambda blocks, seed: {"blocks": 1}}, "'blocks', which is a column already"),
        ({"executor": "cloud"}, "'dask://HOST:PORT'.*got 'cloud'"),
        ({"executor": "threads:none"}, "from 1 up, got 'threads:none'"),
        ({"executor": "processes:0"}, "from 1 up"),
        ({"executor": 4}, "got 4"),
    ],
)
def test_invalid_arguments(argument, message):
    usual = {"function": noisy, "settings": BLOCKS, "repeats": 1, "seed": 0}
    with pytest.raises(VsegError, match=message):
        sweep(**{**usual, **argument})


def test_numpy_numbers_become_plain_ones():
    table = sweep(
        lambda x, seed: {"a": np.float32(0.5), "b": np.array(3), "c": np.True_}, {"x": [1]}, repeats=1, seed=0
    )
    assert [type(value) for value in table.rows[0].values()] == [int, int, float, int, bool]


def test_length_of_tasks():
    """Test the limits, shorter tasks towards the end, and that a setting without results counts as slow."""
    costs = RepetitionCosts()
    assert costs.estimate(0) == float("inf")
    costs.learn(
        [FinishedRepetition(Repetition(0, 0), [], 0.01), FinishedRepetition(Repetition(1, 0), [], 0.03)]
    )
    assert costs.estimate(7) == costs.estimate(1) == 0.03
    assert costs.task_seconds(10_000, 2) == 1.0
    assert costs.task_seconds(80, 2) == pytest.approx(80 * 0.02 / 8)
    assert costs.task_seconds(1, 2) == 0.05
    assert MAX_TASK_REPETITIONS >= 1000  # repetitions of a millisecond fill a second
