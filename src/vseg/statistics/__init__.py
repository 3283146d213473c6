"""Comparing groups of participants: a number each, or a number with its uncertainty.

groups.py     Welch's test, Cohen's d, bootstrap intervals, compare()
uncertain.py  compare_uncertain(): each participant's own uncertainty carried through; compare_known()
              the same by the participants' names

Differences are the second group minus the first, so a positive t or d means that the second is larger.
"""

from vseg.statistics.groups import (
    EXACT_UP_TO,
    Comparison,
    Estimate,
    Welch,
    bootstrap,
    cohens_d,
    compare,
    standard_error,
    welch,
)
from vseg.statistics.uncertain import (
    Group,
    Known,
    UncertainComparison,
    compare_known,
    compare_uncertain,
    group_of,
)

__all__ = [
    "EXACT_UP_TO", "Comparison", "Estimate", "Group", "Known", "UncertainComparison", "Welch", "bootstrap", "cohens_d",
    "compare", "compare_known", "compare_uncertain", "group_of", "standard_error", "welch",
]  # fmt: skip
