"""What a study asks of people: the pictures they see, the trials of each of them, and what that costs.

pictures   shown(): every image as PNG, with its truth where vseg generated it; the practice picture
trials     trials(): all that one session is asked, drawn from the study alone
costs      cost(): trials, minutes, people and coverage before anyone is invited
"""

from vseg.plan.costs import Cost, cost
from vseg.plan.pictures import PRACTICE, Shown, shown
from vseg.plan.trials import Trials, Unit, trials

__all__ = ["PRACTICE", "Cost", "Shown", "Trials", "Unit", "cost", "shown", "trials"]
