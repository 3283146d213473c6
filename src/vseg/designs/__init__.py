"""Designs: which pairs to test, over how many blocks and sessions, and how well they cover the image.

pair_designs          covering, balanced, scattered, all_pairs, oracle: the pairs of one block; add a design there
pair_graphs           random graphs of pairs, from which the designs are built
blocks_and_sessions   the pairs of several blocks, and splitting them over sessions
coverage_report       coverage(): what a design tests and leaves open; check_independence(): Proposition 1
precision             how many answers a posterior needs, and the error to expect with fewer or more
"""

from vseg.designs.blocks_and_sessions import draw_blocks, save_trials, split
from vseg.designs.coverage_report import (
    Coverage,
    Independence,
    check_independence,
    coverage,
    find_ambiguous_locations,
)
from vseg.designs.pair_designs import (
    DESIGNS,
    Design,
    all_pairs,
    balanced,
    covering,
    get_design,
    minimal_trials,
    oracle,
    paper_trials,
    scattered,
)
from vseg.designs.precision import ExpectedPrecision, advised_answers, expected_precision

__all__ = [
    "DESIGNS",
    "Coverage",
    "Design",
    "ExpectedPrecision",
    "Independence",
    "advised_answers",
    "all_pairs",
    "balanced",
    "check_independence",
    "coverage",
    "covering",
    "draw_blocks",
    "expected_precision",
    "find_ambiguous_locations",
    "get_design",
    "minimal_trials",
    "oracle",
    "paper_trials",
    "save_trials",
    "scattered",
    "split",
]  # fmt: skip
