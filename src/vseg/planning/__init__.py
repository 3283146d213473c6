"""Power and cost of a study before it is run, by simulating its participants.

assumptions     Assumptions: what is expected of the participants, checked
methods         which pairs a method asks, and how it estimates maps from the answers
simulation      simulate one participant with every method and number of trials
power           how often two conditions would be told apart
forecasting     forecast(): simulate participants and gather the Forecast
forecast_table  Forecast: its table, its advice, its files

Participants are simulated once. The power for any number of participants follows by drawing from them, without new
fits.
"""

from vseg.planning.assumptions import Assumptions
from vseg.planning.forecast_table import Forecast
from vseg.planning.forecasting import forecast
from vseg.planning.methods import METHODS

__all__ = ["METHODS", "Assumptions", "Forecast", "forecast"]
