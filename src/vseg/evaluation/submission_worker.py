"""The child process that runs a submission: set limits, load its file, call `model(image)` for every image.

submissions.py starts it as a script with the folder of the job as its argument. It writes the maps into that folder as
arrays (never pickled) and what happened as JSON. The limits are a safeguard against accidents, not against malice: a
submission runs with all rights of its user.
"""

import importlib.util
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg._support.subprocesses import limit_memory
from vseg._support.user_code import DEFAULT_FUNCTION, describe_error, load_function
from vseg.data.layout import Grid, Layout, Scatter
from vseg.data.maps import Maps
from vseg.errors import InvalidInput, VsegError
from vseg.features.pixels import as_image
from vseg.models.black_box import to_location_probabilities

JOB, IMAGES, MAPS, REPORT = "job.json", "images.npz", "maps.npz", "report.json"

SubmittedModel = Callable[[NDArray[np.uint8]], Any]


def main(folder: Path) -> None:
    """Run the job in this folder."""
    job = json.loads((folder / JOB).read_text("utf-8"))
    with np.load(folder / IMAGES, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    layout: Layout = Grid(job["grid"]) if job["grid"] else Scatter(arrays.pop("positions"))
    images = {name: arrays[f"image-{number}"] for number, name in enumerate(job["images"])}
    report: dict[str, float | bool | str] = {}
    try:
        limit_memory(job["memory_mb"])
        model = load_submission(job["source"])
        started = time.monotonic()
        maps = {name: segment_image(model, image, name, layout) for name, image in images.items()}
        report["seconds"] = time.monotonic() - started
        report["repeatable"] = _is_repeatable(model, images, layout, maps)
        arrays = {f"maps-{number}": each.probabilities for number, each in enumerate(maps.values())}
        np.savez_compressed(folder / MAPS, **arrays)
    except MemoryError:
        report["out_of_memory"] = True
    except VsegError as error:
        report["error"] = str(error)
    (folder / REPORT).write_text(json.dumps(report), encoding="utf-8")


def load_submission(source: str) -> SubmittedModel:
    """Return the function of FILE.py[:NAME], or of a package FOLDER[:NAME]."""
    folder, _, name = source.partition(":") if ":" in Path(source).name else (source, "", "")
    package = Path(folder)
    if not package.is_dir():
        return load_function(source)
    spec = importlib.util.spec_from_file_location(
        package.name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    if spec is None or spec.loader is None or not (package / "__init__.py").is_file():
        raise InvalidInput(
            f"{package} is a folder without __init__.py; expected a package with `{DEFAULT_FUNCTION}(image)`."
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[package.name] = module  # so that it can import its own modules
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidInput(f"{package} could not be run: {describe_error(error)}.") from error
    function = getattr(module, name or DEFAULT_FUNCTION, None)
    if not callable(function):
        raise InvalidInput(
            f"{package} has no function {name or DEFAULT_FUNCTION}; name one as {package}:NAME."
        )
    return function


def segment_image(model: SubmittedModel, image: NDArray[np.uint8], name: str, layout: Layout) -> Maps:
    """Return the model's maps of an image; the global random states are seeded alike for every image."""
    try:
        seeded = _seed_global_states()
        output = model(as_image(image).copy())
        if (
            "torch" in sys.modules and not seeded
        ):  # the call has imported it: call again with its state seeded
            _seed_global_states()
            output = model(as_image(image).copy())
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidInput(
            f"The model failed on image {name}: {describe_error(error)}. Here it is called with the image alone."
        ) from error
    try:
        return to_maps(output, image, layout)
    except VsegError as error:
        raise InvalidInput(f"What the model returned for image {name} cannot be used. {error}") from error


def _seed_global_states() -> bool:
    """Seed the random states that models may draw from; return whether PyTorch's is among them."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
    return "torch" in sys.modules


def to_maps(output: Any, image: NDArray[np.uint8], layout: Layout) -> Maps:
    """Convert labels (H, W), probabilities (H, W, K) or Maps to maps at these locations, averaged over their cells."""
    if isinstance(output, Maps):
        return output if output.layout == layout else output.resample(layout)
    values = output.detach().cpu() if hasattr(output, "detach") else output
    return Maps(layout, to_location_probabilities(values, image, layout))


def _is_repeatable(
    model: SubmittedModel, images: dict[str, NDArray[np.uint8]], layout: Layout, maps: dict[str, Maps]
) -> bool:
    """Return whether the model gives the same maps of the first image a second time."""
    name, image = next(iter(images.items()))
    return bool(segment_image(model, image, name, layout) == maps[name])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
