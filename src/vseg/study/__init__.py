"""A study: its file, the texts participants read, its pictures, its trials and its cost.

schema        Study: the study file, read and checked
sections      the tables of the study file, one class each; add a setting there
starters      write_study(): study files to start from, among them the paper's experiments
toml_errors   errors in a TOML file as sentences that name the line
texts         the texts that participants read, in three languages
pictures      the images of a study as PNG, with the true maps of generated ones
trials        the trials of one session
cost          trials, minutes, participants and coverage of a study
summary       a study and its cost in sentences
"""
