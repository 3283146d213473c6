"""Models of segmentation: whatever predicts maps, or judgments, fitted to the same answers with the same cost.

task             Task: answers, images, K
families         what a model is, and how it reaches another process
catalogue        models by name, and a user's own from a file
check            what will not work with a model, said before a long run
references       chance, the base rate of 'same', the free maps and the posterior
discrimination   P(same) from how different two locations look, or from how far apart they lie
linear           logistic (Eq. 10) and the K = 2 variance model of the texture experiment
scoring          how models with linear logits are fitted
hierarchical     shared and individual weights of many people
intervals        the bootstrap of any family's parameters
mixture          clouds in the space of features, smoothed over space
black_box        any function from an image to a segmentation, or from features to P(same)
classical        k-means, SLIC, Felzenszwalb, watershed, random walker
search           how settings of black boxes are found
networks         any torch network, trained through the cost of the free maps (the only file here with torch)

A family is a function `fit(task, *, seed) -> Fitted`; a Fitted has `same_probability(image, pairs)` and, if it
predicts maps, `maps(image)`. No base class: whatever has these is a model.
"""

from vseg.models.baselines import Believed, Constant, Free, base_rate, chance, free_maps, posterior_maps
from vseg.models.black_box import BlackBox, Judge, black_box, judge
from vseg.models.catalogue import NAMES, named, own
from vseg.models.check import check
from vseg.models.discrimination import Discrimination, discrimination, distance_only
from vseg.models.hierarchical import Hierarchical, hierarchical
from vseg.models.intervals import Draws, bootstrap
from vseg.models.linear import Linear, Variance, logistic, variance
from vseg.models.mixture import Mixture, mixture
from vseg.models.networks import Network, image_network, load_weights, network
from vseg.models.task import Task

__all__ = [
    "NAMES", "Believed", "BlackBox", "Constant", "Discrimination", "Draws", "Free", "Hierarchical", "Judge",
    "Linear", "Mixture", "Network", "Task", "Variance", "base_rate", "black_box", "bootstrap", "chance",
    "check", "discrimination", "distance_only", "free_maps", "hierarchical", "image_network", "judge",
    "load_weights", "logistic", "mixture", "named", "network", "own", "posterior_maps", "variance",
]  # fmt: skip
