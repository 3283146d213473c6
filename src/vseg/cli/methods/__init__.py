"""How `vseg fit` fits: by the paper's estimator, or by the posterior.

A method has the columns of a table, counts the steps of its progress, fits all answers or everyone's, and draws what
it found.

found.py      Found, what a fit hands on; Refused, why there is none; tried(), which of the two it is
penalised.py  Penalised, the paper's estimator
believed.py   Believed, the posterior
"""

from vseg.cli.methods.believed import Believed
from vseg.cli.methods.found import Each, Found, Refused, tried
from vseg.cli.methods.penalised import Penalised

__all__ = ["Believed", "Each", "Found", "Penalised", "Refused", "tried"]
