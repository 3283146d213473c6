"""What is shown: random maps, composite textures, colours, photographs."""

from vseg.stimuli.colours import ColourImage, colour_image
from vseg.stimuli.photographs import SAMPLES, Bsds, crop_square, load_sample, read_image
from vseg.stimuli.random_maps import gaussian_fields, random_maps
from vseg.stimuli.textures import HIGH, LOW, PRESETS, Texture, TextureImage, composite, texture

__all__ = [
    "HIGH", "LOW", "PRESETS", "SAMPLES", "Bsds", "ColourImage", "TextureImage", "Texture",
    "colour_image", "composite", "gaussian_fields", "random_maps", "read_image", "load_sample", "crop_square", "texture",
]  # fmt: skip
