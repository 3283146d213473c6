import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from strategies import seeds
from vseg import Grid
from vseg.bayes import covariance_roots, priors
from vseg.bayes.linear_algebra import (
    cholesky_upper,
    combine_rows,
    dot8,
    multiply,
    orthogonal_root,
)

ROOTS = """
import hashlib, numpy as np, vseg
from vseg import Grid
from vseg.bayes import priors
from vseg.bayes.linear_algebra import cholesky_upper
root = priors.spatial(Grid(13), kernel="rough", lengths=[0.1]).families[0][0].root
curved = cholesky_upper(np.eye(256) + np.exp(-np.abs(np.subtract.outer(np.arange(256.0), np.arange(256.0)))))
truth = vseg.stimuli.random_maps(Grid(16), segments=3, entropy=0.3, seed=0)
answers = vseg.simulate(truth, vseg.designs.covering(Grid(16), segments=3, seed=0), seed=0)
drawn = vseg.posterior(answers, segments=3, prior=priors.spatial(Grid(16), lengths=[1 / 9.5]), draws=16, seed=0).draws
print(hashlib.sha256(root.wide.tobytes() + curved.tobytes() + drawn.tobytes()).hexdigest())
"""


@settings(deadline=None)
@given(size=st.integers(1, 30), seed=seeds)
def test_cholesky_upper(size, seed):
    """Also if the number of rows is not a multiple of four."""
    A = np.random.default_rng(seed).standard_normal((size, size))
    matrix = A @ A.T + np.eye(size)
    found = cholesky_upper(matrix)
    np.testing.assert_allclose(found, np.linalg.cholesky(matrix).T, atol=1e-9)
    assert (np.tril(found, -1) == 0).all()


@settings(deadline=None)
@given(size=st.integers(1, 12), rank=st.integers(1, 12), seed=seeds)
def test_orthogonal_root(size, rank, seed):
    """Orthogonal rows, at most as many as the rank, whose products sum to the matrix."""
    A = np.random.default_rng(seed).standard_normal((size, rank))
    rows = orthogonal_root(A @ A.T)
    assert len(rows) <= min(size, rank)
    np.testing.assert_allclose(rows.T @ rows, A @ A.T, atol=1e-5 * np.abs(A @ A.T).max())
    across = rows @ rows.T
    np.testing.assert_allclose(across, np.diag(np.diag(across)), atol=1e-8 * np.abs(across).max())


def test_orthogonal_root_of_the_identity():
    """No rotation is needed if all directions have the same variance."""
    np.testing.assert_array_equal(np.abs(orthogonal_root(np.eye(5))), np.eye(5))


@given(size=st.integers(0, 40), seed=seeds)
def test_dot8(size, seed):
    x, y = np.random.default_rng(seed).standard_normal((2, size))
    assert dot8(x, y) == pytest.approx(float(x @ y), abs=1e-12)


@pytest.mark.parametrize("size", [3, 4, 7, 10])
@pytest.mark.parametrize("kernel", ["rough", "matern32", "matern52"])
def test_symmetry_does_not_change_the_covariance(size, kernel):
    """Even and odd fields, decomposed separately, give the same covariance as all together."""
    distance = np.linalg.norm(Grid(size).positions[:, None] - Grid(size).positions, axis=2) / 0.3
    whole = covariance_roots.covariance_root(covariance_roots.evaluate_kernel(kernel, distance))
    parts = priors.spatial(Grid(size), kernel=kernel, lengths=[0.3]).families[0][0].root
    assert parts.wide.shape == whole.wide.shape
    np.testing.assert_allclose(parts.tall @ parts.wide, whole.tall @ whole.wide, atol=1e-6)


@pytest.mark.slow
def test_results_do_not_depend_on_blas_threads():
    """To the last digit: chains amplify rounding errors, and adaptive choices are replayed from the answers."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", ROOTS],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            check=True, capture_output=True, text=True,
        ).stdout
        for threads in ("1", "2")
    }  # fmt: skip
    assert len(digests) == 1
    assert len(digests.pop().strip()) == hashlib.sha256().digest_size * 2


@given(rows=st.integers(1, 6), inner=st.integers(1, 13), columns=st.integers(1, 9), seed=seeds)
def test_products(rows, inner, columns, seed):
    rng = np.random.default_rng(seed)
    left, right = rng.standard_normal((rows, inner)), rng.standard_normal((inner, columns))
    np.testing.assert_allclose(multiply(left, right), left @ right, atol=1e-12)
    np.testing.assert_allclose(combine_rows(left[0], right), left[0] @ right, atol=1e-12)
