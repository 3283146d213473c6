"""Models of segmentation: they predict maps or P(same), and are fitted to the same answers with the same cost.

task                 Task: answers, images, K
model_interface      the interface of a model, and how it is sent to another process
catalogue            models by name, and a user's own from a file
check                find problems of a model before a long run
baselines            chance, the base rate of 'same', the reconstructed maps and the posterior
discrimination       P(same) from how different two locations look, or from how far apart they lie
linear               logistic (Eq. 10) and the K = 2 variance model of the texture experiment
differential_variance  σ₁² - σ₂² of that model as the paper fits it
fisher_scoring       fits models with linear logits
hierarchical         shared and individual weights of many participants
parameter_bootstrap  bootstrap intervals for the parameters of any family
mixture              components in feature space, smoothed over space
black_box            any function from an image to a segmentation, or from features to P(same)
classical            k-means, SLIC, Felzenszwalb, watershed, random walker
search               finds the settings of black boxes
networks             any torch network (the only module here that imports torch)

A family is a function `fit(task, *, seed) -> FittedModel`; a fitted model has `same_probability(image, pairs)` and, if
it predicts maps, `maps(image)`. There is no base class.
"""

from vseg.models.baselines import (
    ConstantModel,
    FreeMaps,
    PosteriorModel,
    base_rate,
    chance,
    free_maps,
    posterior_maps,
)
from vseg.models.black_box import BlackBox, PairModel, black_box, fixed_maps, pair_model
from vseg.models.catalogue import MODEL_DESCRIPTIONS, as_family, get_model
from vseg.models.check import check
from vseg.models.differential_variance import DifferentialVariance, fit_differential_variance
from vseg.models.discrimination import DiscriminationModel, discrimination, distance_only
from vseg.models.hierarchical import HierarchicalModel, hierarchical
from vseg.models.linear import LinearModel, VarianceModel, logistic, variance
from vseg.models.mixture import MixtureModel, mixture
from vseg.models.networks import NetworkModel, image_network, load_weights, network
from vseg.models.parameter_bootstrap import BootstrapDraws, bootstrap
from vseg.models.task import Task

__all__ = [
    "MODEL_DESCRIPTIONS",
    "BlackBox",
    "BootstrapDraws",
    "ConstantModel",
    "DifferentialVariance",
    "DiscriminationModel",
    "FreeMaps",
    "HierarchicalModel",
    "LinearModel",
    "MixtureModel",
    "NetworkModel",
    "PairModel",
    "PosteriorModel",
    "Task",
    "VarianceModel",
    "as_family",
    "base_rate",
    "black_box",
    "bootstrap",
    "chance",
    "check",
    "discrimination",
    "distance_only",
    "fit_differential_variance",
    "fixed_maps",
    "free_maps",
    "get_model",
    "hierarchical",
    "image_network",
    "load_weights",
    "logistic",
    "mixture",
    "network",
    "pair_model",
    "posterior_maps",
    "variance",
]
