import numpy as np
from hypothesis import given, strategies as st

from strategies import seeds
from vseg.bayes.hmc import multiply_transposed
from vseg.bayes.joint_sampling import multiply_lower_rows
from vseg.bayes.linear_algebra import invert_lower


@given(size=st.integers(1, 12), seed=seeds)
def test_whitened_coordinates(size, seed):
    """L⁻¹ of a Cholesky factor, and its products from both sides."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((size, size))
    factor = np.linalg.cholesky(A @ A.T + np.eye(size))
    inverse = invert_lower(factor)
    np.testing.assert_allclose(inverse @ factor, np.eye(size), atol=1e-9)
    v = rng.standard_normal(size)
    np.testing.assert_allclose(multiply_transposed(v, inverse), inverse.T @ v, atol=1e-9)
    np.testing.assert_allclose(multiply_lower_rows(v, inverse), inverse @ v, atol=1e-9)
