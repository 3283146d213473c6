"""Figures in the style of the paper; the only room with matplotlib.

Every function returns a `matplotlib.figure.Figure`, made without pyplot: no global state changes, no
screen is needed, and `.savefig("name.png")` (or .svg, .pdf) writes it.

map_rows     maps
panels       segmentation, entropy, boundaries, participants, contours
charts       curves, groups, smoothness_curve, segments, design
posteriors   intervals, entropies, evidence
comparisons  forest, calibration, side_by_side
planning     forecast
style        colours, sizes, and the conversion of layouts to pixels
"""

from vseg._support.palette import SEGMENT_COLOURS
from vseg.figures.charts import curves, design, groups, segments, smoothness_curve
from vseg.figures.comparisons import calibration, forest, side_by_side
from vseg.figures.map_rows import maps
from vseg.figures.panels import boundaries, contours, entropy, participants, segmentation
from vseg.figures.planning import forecast
from vseg.figures.posteriors import entropies, evidence, intervals

__all__ = [
    "SEGMENT_COLOURS",
    "boundaries",
    "calibration",
    "contours",
    "curves",
    "design",
    "entropies",
    "entropy",
    "evidence",
    "forecast",
    "forest",
    "groups",
    "intervals",
    "maps",
    "participants",
    "segmentation",
    "segments",
    "side_by_side",
    "smoothness_curve",
]
