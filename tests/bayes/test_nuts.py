"""Quantiles of the posterior against those by NUTS, on a model written anew; benchmarks/nuts.py stores them."""

import json
from pathlib import Path

import numpy as np
import pytest

import vseg
from vseg.bayes.diagnostics import bulk_ess
from vseg.data.responses import Tally

STORED = json.loads(Path(__file__).with_name("nuts.json").read_text(encoding="utf-8"))
LEVELS = np.array(STORED["levels"])
SEEDS = range(4)
LIMIT = 4.0  # standard errors; there are about 200 comparisons with each kind of reference
# Share of the probability that lies elsewhere because the basis is truncated, beyond these errors.
TRUNCATED = 0.02


@pytest.fixture(scope="module", params=list(STORED["problems"]))
def problem(request):
    """Return what is stored about a problem, and our draws of the same quantities: a list of (chains, draws)."""
    stored = STORED["problems"][request.param]
    pairs = vseg.Pairs(vseg.Grid(stored["grid"]), stored["i"], stored["j"])
    tally = Tally(pairs, stored["same"], stored["trials"])
    found = [draw(tally, stored, seed) for seed in SEEDS]
    return stored, {name: [each[name] for each in found] for name in found[0]}


def draw(tally, stored, seed):
    result = vseg.posterior(
        tally, segments=stored["segments"], catch=stored["catch"], draws=400, seed=seed, threads=1, warn=False
    )
    chains = result.chains
    maps = result.draws.reshape(-1, len(chains.scale), *result.draws.shape[1:]).swapaxes(0, 1)
    quantities = {"mean entropy": chains.entropies, "log scale": np.log(chains.scale)}
    quantities |= {"log length": np.log(chains.length), "share": chains.share, "floor": chains.floor}
    for i, j in np.transpose(stored["pairs"]):
        quantities[f"P(same) {i} {j}"] = np.sum(maps[:, :, i] * maps[:, :, j], axis=2)
    return quantities | ({"lapses": chains.lapses, "bias": chains.bias} if stored["catch"] else {})


def compare(ours, reference):
    """Return how much of our probability lies below each of NUTS's quantiles, less what should, and its standard error.

    Both are (levels,); the error is that of both samplers, by the effective sample sizes for each quantile.
    """
    below = [[(draws <= at).astype(float) for draws in ours] for at in reference["quantiles"]]
    shares = np.array([np.mean(np.concatenate(each, axis=1)) for each in below])
    ess = np.array([sum(bulk_ess(draws) for draws in each) for each in below])
    return shares - LEVELS, np.sqrt(LEVELS * (1 - LEVELS) * (1 / ess + 1 / np.array(reference["ess"])))


@pytest.mark.slow
def test_quantiles_are_those_by_nuts_in_the_same_basis(problem):
    """If the basis or a prior has been changed on purpose, run: python benchmarks/nuts.py store."""
    stored, ours = problem
    for name, reference in stored["basis"]["quantities"].items():
        difference, error = compare(ours[name], reference)
        assert np.all(np.abs(difference) < LIMIT * error), (name, difference, error)


@pytest.mark.slow
def test_maps_are_about_those_by_nuts_with_the_exact_covariance(problem):
    """The basis leaves out functions of little variance, which shifts quantiles a little."""
    stored, ours = problem
    for name, reference in stored["exact"]["quantities"].items():
        if name.startswith(("mean entropy", "P(same)")):
            difference, error = compare(ours[name], reference)
            assert np.all(np.abs(difference) < TRUNCATED + LIMIT * error), (name, difference, error)
