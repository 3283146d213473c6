"""Designs: which pairs to test, over how many blocks and people, and what that covers."""

from vseg.designs.coverage_report import Coverage, ambiguous_locations, coverage
from vseg.designs.division import blocks, save_trials, split
from vseg.designs.pair_designs import (
    DESIGNS,
    Design,
    all_pairs,
    balanced,
    covering,
    minimal_trials,
    named,
    recommended_trials,
    scattered,
)

__all__ = [
    "DESIGNS", "Coverage", "Design", "all_pairs", "ambiguous_locations", "balanced", "blocks", "coverage", "covering",
    "minimal_trials", "named", "recommended_trials", "save_trials", "scattered", "split",
]  # fmt: skip
