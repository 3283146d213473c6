"""Before a study: what it would find, by simulating its participants.

guess.py      Guess: what you expect of the people, checked
people.py     one simulated person, asked and estimated by every method at every number of trials
methods.py    the paper's method and ours: which pairs are asked, and what is made of the answers
power.py      how often two conditions would be told apart, by drawing simulated people again
minutes.py    how long a person would take
result.py     Forecast: the table, the advice, the files
running.py    forecast(): the front door

People are simulated once; how many of them a study needs is then a matter of drawing from them, without new fits.
"""

from vseg.planning.assumptions import Guess
from vseg.planning.forecast_table import Forecast
from vseg.planning.methods import METHODS
from vseg.planning.simulation import forecast

__all__ = ["METHODS", "Forecast", "Guess", "forecast"]
