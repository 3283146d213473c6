"""Figures in the manner of the paper, and the only room with matplotlib.

Every function returns a `matplotlib.figure.Figure`, made without pyplot: nothing global is touched, no
screen is needed, and `.savefig("name.png")` (or .svg, .pdf) writes it.

rows    maps
panels  segmentation, entropy, boundaries, participants
charts  curves, groups, path, segments, design
style   colours, sizes, and how a layout becomes pixels
"""

from vseg.figures.charts import curves, design, groups, path, segments
from vseg.figures.panels import boundaries, entropy, participants, segmentation
from vseg.figures.rows import maps
from vseg.figures.style import SEGMENT_COLOURS

__all__ = [
    "SEGMENT_COLOURS",
    "boundaries",
    "curves",
    "design",
    "entropy",
    "groups",
    "maps",
    "participants",
    "path",
    "segmentation",
    "segments",
]
