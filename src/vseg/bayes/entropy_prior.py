"""The mean entropy before any answer, and the estimate of it from the answers alone.

A posterior is the likelihood times the prior. The prior of the hyper-parameters makes mean entropies close to 0 and to
log K more probable than those between, so with few answers the estimate of a participant is pulled there. That is right
for one participant, but averaged over a group the pull remains, however many participants there are. Dividing the
density of the draws by that of the prior leaves the likelihood of the mean entropy.
"""

import numpy as np
from numpy.typing import NDArray

from vseg.bayes.draw_summaries import mean_entropies
from vseg.bayes.joint_model import HYPERPARAMETERS, JointModel
from vseg.bayes.joint_sampling import draw_maps

PRIOR_DRAWS = 1000
DRAWS_AT_ONCE = 50  # in memory: 50 draws of eight maps of 10,000 locations take 32 MB
TAIL = 0.005  # share of the prior's draws on either side beyond which its density counts as constant
GRID_POINTS = 200
MIN_SHARE = 1e-9  # of log K, so that the logit is finite

Floats = NDArray[np.float64]


def draw_prior_entropies(model: JointModel, draws: int = PRIOR_DRAWS) -> Floats:
    """Draw hyper-parameters and maps from the prior of a model; return their mean entropies (draws,)."""
    rng = np.random.default_rng(0)  # always the same draws: they approximate an integral
    contrasts, functions = model.contrasts.shape[1], len(model.wide)
    weights = rng.standard_normal((draws, contrasts * functions))
    theta = model.prior.centre + model.prior.spread * rng.standard_normal((draws, HYPERPARAMETERS))
    # Without centring, positions are the standard normal weights u themselves.
    uncentred = model._replace(centring=np.zeros(functions))
    parts = np.array_split(np.hstack([weights, theta]), -(-draws // DRAWS_AT_ONCE))
    return np.concatenate([mean_entropies(draw_maps(part, uncentred)) for part in parts])


def flatten_prior(entropies: Floats, prior_entropies: Floats, segments: int) -> tuple[float, float]:
    """Return the mean and standard deviation of the mean entropy if all values from 0 to log K were equally probable.

    Parameters
    ----------
    entropies : (S,)
        Mean entropies of draws from the posterior.
    prior_entropies : (R,)
        Those of draws from the prior.
    segments : int
        K.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> prior = 1 / (1 + np.exp(1 - 2 * rng.standard_normal(2000)))  # most close to 0
    >>> mean, spread = flatten_prior(np.log(2) * prior, np.log(2) * prior, 2)  # no answers
    >>> f"{mean / np.log(2):.2f} {spread / np.log(2):.2f}"  # a uniform distribution has 0.50 and 0.29
    '0.49 0.28'
    """
    from scipy.stats import gaussian_kde

    share, prior_share = (
        np.clip(values / np.log(segments), MIN_SHARE, 1 - MIN_SHARE)
        for values in (entropies, prior_entropies)
    )
    logits = np.log(prior_share / (1 - prior_share))
    low, high = np.quantile(logits, [TAIL, 1 - TAIL])
    grid = np.linspace(low, high, GRID_POINTS)
    log_density = np.log(gaussian_kde(logits)(grid))
    # np.interp is constant beyond the grid; share·(1 - share) turns a density of the logit into one of the share.
    log_weights = np.log(share * (1 - share)) - np.interp(np.log(share / (1 - share)), grid, log_density)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    mean = float(weights @ entropies)
    return mean, float(np.sqrt(weights @ (entropies - mean) ** 2))
