"""A study: its file, the texts participants read, its pictures, its trials and its cost.

schema        Study: the study file, checked; sections.py has its tables
toml_errors   the line of a TOML file in which an error lies
texts         every text a participant reads, in three languages
pictures      the images of a study as PNG, with the true maps of generated ones
trials        the trials of one session
cost          trials, minutes, participants and coverage of a study
"""
