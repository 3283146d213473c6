"""Real people's segmentations as observers: how many trials each method needs to know what they would say.

observing.py   a photograph of BSDS500, and its annotators as observers whose P(same) is known for every pair
methods.py     the paper's settings and ours: which pairs are asked, and what is made of the answers
running.py     study(): the front door; photograph(), the trial of its sweep
needed.py      how many trials reach an error, with an interval over photographs
result.py      Comparison: the table, the headline, the files
"""

from reproduction.annotators.methods import METHODS
from reproduction.annotators.result import Comparison
from reproduction.annotators.run import study

__all__ = ["METHODS", "Comparison", "study"]
