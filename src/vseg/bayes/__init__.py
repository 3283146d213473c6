"""The posterior: maps as Gaussian fields of log-odds, everything else chosen by evidence, uncertainty by draws.

`posterior()` is the front door. Behind it: `priors` (what maps are like), `fields` (cost and slope, compiled), `mode`
(the most probable maps), `evidence` (scale and length), `segments` (K), `lapses`, `draws` (Hamiltonian Monte Carlo),
`convergence` (whether to trust them), `groups` (everyone of several people).
"""

from vseg.bayes.diagnostics import Convergence
from vseg.bayes.groups import posteriors
from vseg.bayes.inference import posterior
from vseg.bayes.posterior import Posterior
from vseg.bayes.priors import Prior
from vseg.bayes.segment_evidence import SegmentsTable

__all__ = [
    "Convergence", "Posterior", "Prior", "SegmentsTable", "posterior", "posteriors",
]  # fmt: skip
