"""What is shown: random maps, composite textures, colours, photographs."""

from vseg.stimuli.colours import ColourImage, colour_image
from vseg.stimuli.photographs import SAMPLES, Bsds, read, sample, square
from vseg.stimuli.random_maps import gaussian_fields, random_maps
from vseg.stimuli.textures import HIGH, LOW, PRESETS, Stimulus, Texture, composite, texture

__all__ = [
    "HIGH", "LOW", "PRESETS", "SAMPLES", "Bsds", "ColourImage", "Stimulus", "Texture",
    "colour_image", "composite", "gaussian_fields", "random_maps", "read", "sample", "square", "texture",
]  # fmt: skip
