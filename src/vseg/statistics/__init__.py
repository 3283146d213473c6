"""Comparing groups of participants: a number each, or a number with its uncertainty.

groups.py     Welch's test, Cohen's d, bootstrap intervals, compare()
uncertain.py  compare_uncertain(): each participant's own uncertainty carried through

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
from vseg.statistics.uncertain import Group, UncertainComparison, compare_uncertain, group_of

__all__ = [
    "EXACT_UP_TO", "Comparison", "Estimate", "Group", "UncertainComparison", "Welch", "bootstrap", "cohens_d",
    "compare", "compare_uncertain", "group_of", "standard_error", "welch",
]  # fmt: skip
