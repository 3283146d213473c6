"""The colours of segments in figures and on pages."""

# The paper's blue, green and yellow in Okabe and Ito's hues, then the rest of their palette. The others were added one
# by one, each as far as possible (OKLab) from black and from all colours before it, for normal, protanopic and
# deuteranopic vision. Colours repeat after sixteen segments; letters in the figures then tell segments apart.
SEGMENT_COLOURS = (
    "#0072B2", "#009E73", "#F0E442", "#D55E00", "#CC79A7", "#56B4E9", "#E69F00", "#78FFFF",
    "#962D00", "#0000FF", "#87D2A5", "#960F69", "#FFFFB4", "#5A87FF", "#C31E96", "#96D2FF",
)  # fmt: skip
