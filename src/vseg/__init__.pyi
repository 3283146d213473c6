from . import (
    adaptive as adaptive,
    designs as designs,
    errors as errors,
    features as features,
    figures as figures,
    models as models,
    stimuli as stimuli,
)
from .bayes import posterior as posterior, posteriors as posteriors
from .data.layout import Grid as Grid, Scatter as Scatter
from .data.maps import Maps as Maps
from .data.pairs import Pairs as Pairs
from .data.responses import Responses as Responses
from .data.tables import load as load
from .evaluation import metrics as metrics
from .evaluation.model_comparison import compare as compare
from .observers import simulate as simulate
from .reconstruction.bootstrap import bootstrap as bootstrap
from .reconstruction.reconstruct import reconstruct as reconstruct, reconstruct_each as reconstruct_each
from .reconstruction.segment_selection import choose_segments as choose_segments
from .sweeps import sweep as sweep
from .workflows.compare_groups import compare_groups as compare_groups
from .workflows.fit_dataset import fit_dataset as fit_dataset
from .workflows.plan_study import plan_study as plan_study
from .workflows.score_models import score_models as score_models

__version__: str
