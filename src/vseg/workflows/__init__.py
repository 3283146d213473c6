"""Whole analyses as one call each: what the commands and the dashboard run, usable from Python.

fit_dataset     fit_dataset(): maps for a data set, for each participant or for each image
compare_groups  compare_groups(): the mean entropies of two groups of participants
plan_study      plan_study(): how many trials and participants a study needs, by simulation
score_models    score_models(): models scored on answers they have not seen; leaderboards
score_contours  score_contours(): drawn contours against the truth, the participants' maps, and each other
fit_model       fit_model(): one model fitted to all answers
simulate_group  simulate_group(): random maps, and the responses of several participants who see them

A workflow takes Python objects or paths, returns a result object, and writes files only in the result's `save`;
score_models() writes to its folder as it goes, so that an interrupted run resumes.
"""
