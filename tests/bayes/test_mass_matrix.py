"""The mass matrix of a chain."""

import numpy as np

from vseg.bayes.mass_matrix import Mass, multiply_by_mass, reduce_mass


def make_mass(values, size):
    """Return a mass matrix with these values along random directions, and the matrix itself."""
    wide = np.linalg.qr(np.random.default_rng(0).standard_normal((size, len(values))))[0].T.copy()
    return Mass(wide, wide.T.copy(), values), np.eye(size) + wide.T @ np.diag(values - 1) @ wide


def draw_with_mass(mass, count):
    """Return draws whose covariance is the inverse of a mass matrix."""
    noise = np.random.default_rng(1).standard_normal((count, len(mass.tall)))
    return np.array([multiply_by_mass(row, mass, mass.values**-0.5) for row in noise])


def test_products_with_powers_of_a_mass_matrix():
    values = np.array([0.3, 2.0, 5.0, 90.0, 7.0])
    mass, matrix = make_mass(values, 22)
    x = np.random.default_rng(1).standard_normal(22)
    np.testing.assert_allclose(multiply_by_mass(x, mass, values), matrix @ x, atol=1e-12)
    np.testing.assert_allclose(multiply_by_mass(x, mass, 1 / values), np.linalg.solve(matrix, x), atol=1e-12)
    half = multiply_by_mass(x, mass, np.sqrt(values))
    np.testing.assert_allclose(multiply_by_mass(half, mass, np.sqrt(values)), matrix @ x, atol=1e-12)


def test_a_mass_matrix_that_fits_the_draws_stays():
    """Among 100 draws, the variance along some combination of 60 directions is three times the true one."""
    mass, matrix = make_mass(np.linspace(1.5, 50, 60), 300)
    found = reduce_mass(mass, draw_with_mass(mass, 100))
    np.testing.assert_allclose(
        np.eye(300) + found.wide.T @ np.diag(found.values - 1) @ found.wide, matrix, atol=1e-9
    )


def test_a_mass_matrix_is_reduced_along_a_long_direction():
    """Draws vary ten times as much along one direction; the variance by the new mass is within a factor of two."""
    mass, _ = make_mass(np.linspace(1.5, 50, 60), 300)
    draws = draw_with_mass(mass, 100)
    long = mass.wide[30]
    draws += (np.sqrt(10.0) - 1) * np.outer(draws @ long, long)
    found = reduce_mass(mass, draws)
    np.testing.assert_allclose(found.wide @ found.tall, np.eye(60), atol=1e-12)
    grown = long @ multiply_by_mass(long, found, 1 / found.values) * mass.values[30]
    assert 5 < grown < 20
