"""Bayesian inference of the maps: log-odds as Gaussian fields, sampled together with their hyper-parameters.

posterior          posterior(): from answers to maps with intervals; its result, Posterior
groups             posteriors(): the posterior of each of several participants
priors             what maps are expected to look like before any answer
spectra            the basis in which scale, length and share can be sampled
joint_sampling     draws of maps and hyper-parameters, until several chains agree
joint_model        cost, gradient and metric of maps and hyper-parameters, compiled
mass_matrix        the mass matrix of a chain
evidence           the most probable maps, and the evidence of scale and length
segment_evidence   the evidence of the number of segments K
lapses             the most probable share of lapses
model              maps from weights, their cost, gradient and curvature, compiled
hmc                draws given the hyper-parameters, for adaptive studies
draw_summaries     medians, intervals and entropy of draws
diagnostics        whether the draws can be trusted
covariance_roots, linear_algebra   numerical building blocks
"""

from vseg.bayes.diagnostics import Convergence
from vseg.bayes.groups import posteriors
from vseg.bayes.posterior import Posterior, compare_segments, posterior
from vseg.bayes.priors import Prior
from vseg.bayes.segment_evidence import SegmentsTable

__all__ = [
    "Convergence", "Posterior", "Prior", "SegmentsTable", "compare_segments", "posterior", "posteriors",
]  # fmt: skip
