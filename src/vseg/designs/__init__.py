"""Designs: which pairs to test, over how many blocks and people, and what that covers."""

from vseg.designs.coverage_report import Coverage, coverage, find_ambiguous_locations
from vseg.designs.division import draw_blocks, save_trials, split
from vseg.designs.pair_designs import (
    DESIGNS,
    Design,
    all_pairs,
    balanced,
    covering,
    get_design,
    minimal_trials,
    recommended_trials,
    scattered,
)

__all__ = [
    "DESIGNS", "Coverage", "Design", "all_pairs", "find_ambiguous_locations", "balanced", "draw_blocks", "coverage", "covering",
    "minimal_trials", "get_design", "recommended_trials", "save_trials", "scattered", "split",
]  # fmt: skip
