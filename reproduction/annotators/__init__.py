"""A study with BSDS500's annotators as observers: how many trials does each method need to predict their answers?

observers.py      a photograph of BSDS500 and its annotators as observers whose P(same) is known for every pair
methods.py        the methods compared: how each selects pairs and estimates P(same) from the answers
run.py            run_study(), the entry point, and evaluate_photograph(), one trial of its sweep
trials_needed.py  the number of trials that reach an error, with an interval over photographs
result.py         StudyResult: tables, headline and files
figure.py         the figure: error over trials for every method
expected_error.py compare_expected_errors(): is the error by which adaptive studies stop the true one?
"""

from reproduction.annotators.methods import METHODS
from reproduction.annotators.result import StudyResult
from reproduction.annotators.run import run_study

__all__ = ["METHODS", "StudyResult", "run_study"]
