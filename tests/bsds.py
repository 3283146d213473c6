"""A small folder in the form of BSDS500: `from bsds import write_bsds`."""

from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

HALVES = np.repeat([[1, 2]], 64, axis=0).repeat(32, axis=1).astype(np.uint16)
QUARTERS = HALVES + 2 * HALVES.T - 2
BORDER = np.repeat([[1] * 40 + [2] * 24], 64, axis=0).astype(np.uint16)
PEOPLE = (HALVES, QUARTERS, BORDER)


def write_bsds(folder: Path, names=("7", "12"), people=PEOPLE) -> Path:
    """Photographs of two grey halves, each with these annotators."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = np.where(HALVES == 1, 60, 190).astype(np.uint8)[:, :, None].repeat(3, axis=2)
    for name in names:
        Image.fromarray(picture).save(folder / f"{name}.jpg")
        truth = np.empty((1, len(people)), object)
        for place, labels in enumerate(people):
            truth[0, place] = np.array([[(labels,)]], dtype=[("Segmentation", object)])
        savemat(folder / f"{name}.mat", {"groundTruth": truth})
    return folder
