"""Score models against people, maps against maps, and groups of people against each other.

compare            compare(): models on answers they were not fitted to
folds, held_out    what is held out together; the fits without it
fit_jobs           one fit as a job for any executor, with results kept on disk
sandbox            processes with limits of time and memory for untried code
scores, ceilings   bits, Brier score, calibration; what any model could reach
resampling         intervals over participants and images
comparison         Comparison: the table of results
human_maps         people's maps, and how close a model's maps come to them
submissions        run a submitted model in a process of its own (submission_worker)
submission_scores  score a submission's maps
leaderboard        scores of many submissions, and their page
tasks, datasets    a dataset folder as a Task; datasets from BSDS500 or simulated people
metrics            maps against maps
group_tests        Welch's test, effect sizes, intervals for one number per person
random_effects     group comparisons that use each person's uncertainty
"""

from vseg.evaluation import metrics

__all__ = ["metrics"]
