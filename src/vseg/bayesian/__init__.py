"""The posterior: maps as Gaussian fields of log-odds, everything else chosen by evidence, uncertainty by draws.

`posterior()` is the front door. Behind it: `priors` (what maps are like), `fields` (cost and slope, compiled), `mode`
(the most probable maps), `evidence` (scale and length), `segments` (K), `lapses`, `draws` (Hamiltonian Monte Carlo),
`convergence` (whether to trust them), `groups` (everyone of several people).
"""

from vseg.bayesian.convergence import Convergence
from vseg.bayesian.groups import compare_entropies, posteriors
from vseg.bayesian.inference import posterior
from vseg.bayesian.priors import Prior
from vseg.bayesian.result import Posterior
from vseg.bayesian.segments import SegmentsTable

__all__ = [
    "Convergence", "Posterior", "Prior", "SegmentsTable", "compare_entropies", "posterior", "posteriors",
]  # fmt: skip
