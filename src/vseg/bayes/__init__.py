"""Bayesian inference of the maps: log-odds as Gaussian fields, hyperparameters by evidence, uncertainty by draws.

posterior          posterior(): from answers to maps with intervals; its result, Posterior
groups             posteriors(): the posterior of each of several participants
priors             what maps are expected to look like before any answer
model              maps from weights, their cost, gradient and curvature, compiled
evidence           the most probable maps, and the evidence of scale and length
segment_evidence   the evidence of the number of segments K
lapses             the share of lapses, estimated
hmc                draws by Hamiltonian Monte Carlo
draw_summaries     medians, intervals and entropy of draws
diagnostics        whether the draws can be trusted
covariance_roots, linear_algebra   numerical building blocks
"""

from vseg.bayes.diagnostics import Convergence
from vseg.bayes.groups import posteriors
from vseg.bayes.posterior import Posterior, posterior
from vseg.bayes.priors import Prior
from vseg.bayes.segment_evidence import SegmentsTable

__all__ = [
    "Convergence", "Posterior", "Prior", "SegmentsTable", "posterior", "posteriors",
]  # fmt: skip
