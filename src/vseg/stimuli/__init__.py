"""Stimuli: random maps, composite textures, images of coloured locations, photographs.

random_maps    random_maps(): smooth random segments with a chosen uncertainty
textures       composite(), texture(): oriented textures, as in the paper's experiment
colours        colour_image(): locations coloured by segment
photographs    read_image(), load_sample(), crop_square(), Bsds
"""

from vseg.stimuli.colours import ColourImage, colour_image
from vseg.stimuli.photographs import SAMPLES, Bsds, crop_square, load_sample, read_image
from vseg.stimuli.random_maps import gaussian_fields, random_maps
from vseg.stimuli.textures import HIGH, LOW, PRESETS, Texture, TextureImage, composite, texture

__all__ = [
    "HIGH",
    "LOW",
    "PRESETS",
    "SAMPLES",
    "Bsds",
    "ColourImage",
    "Texture",
    "TextureImage",
    "colour_image",
    "composite",
    "crop_square",
    "gaussian_fields",
    "load_sample",
    "random_maps",
    "read_image",
    "texture",
]  # fmt: skip
