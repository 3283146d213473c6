"""Score models against human answers, maps against maps, and groups of participants against each other.

model_comparison   compare(): models on answers they were not fitted to; ModelComparison, its result
folds, fits        what is held out together; the fits without it, in any executor, with checkpoints on disk
scores             bits, Brier score, calibration; floor and ceilings; bootstrap intervals
sandbox            an executor of processes with limits of time and memory, for models from files
submissions        run a submitted model in a process of its own (submission_worker)
leaderboard        stored scores of many models, and their page
datasets           datasets from BSDS500 or with simulated observers
metrics            maps against maps
contours           drawn contours against maps, and against each other
group_tests        Welch's test, effect sizes, intervals for one number per participant
random_effects     group comparisons that use the uncertainty of each participant
"""

from vseg.evaluation import metrics

__all__ = ["metrics"]
