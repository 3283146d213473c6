"""The process in which a submission runs: limits first, then its file, then `model(image)` on every image.

Started as a script by submissions.py, with the folder of the job. What it finds is left there as arrays (never
pickled) and as sentences. It is a fence against accidents, not against malice: a submission runs as its user.
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

from vseg._support import user_code
from vseg._support.user_code import DEFAULT_FUNCTION
from vseg.data.layout import Grid, Layout, Scatter
from vseg.data.maps import Maps
from vseg.errors import InvalidInput, VsegError
from vseg.evaluation.sandbox import limit_memory
from vseg.features.cells import as_image
from vseg.models.black_box import to_location_probabilities

JOB, IMAGES, FOUND, SAID = "job.json", "images.npz", "found.npz", "said.json"


def main(folder: Path) -> None:
    """Run the job in this folder."""
    job = json.loads((folder / JOB).read_text("utf-8"))
    with np.load(folder / IMAGES, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    layout: Layout = Grid(job["grid"]) if job["grid"] else Scatter(arrays.pop("positions"))
    images = {name: arrays[f"image-{number}"] for number, name in enumerate(job["images"])}
    said: dict[str, Any] = {}
    try:
        limit_memory(job["memory_mb"])
        model = loaded(job["source"])
        started = time.monotonic()
        maps = {name: asked(model, image, name, layout) for name, image in images.items()}
        said["seconds"] = time.monotonic() - started
        said["repeatable"] = _repeats(model, images, layout, maps)
        found = {f"maps-{place}": each.probabilities for place, each in enumerate(maps.values())}
        np.savez_compressed(folder / FOUND, **found)  # type: ignore[arg-type]
    except MemoryError:
        said["out_of_memory"] = True
    except VsegError as error:
        said["error"] = str(error)
    (folder / SAID).write_text(json.dumps(said), encoding="utf-8")


def loaded(source: str) -> Callable[[NDArray[np.uint8]], Any]:
    """The function of FILE.py[:NAME], or of a package as FOLDER[:NAME]."""
    place, _, name = source.partition(":") if ":" in Path(source).name else (source, "", "")
    package = Path(place)
    if not package.is_dir():
        return user_code.load_function(source)
    spec = importlib.util.spec_from_file_location(
        package.name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    if spec is None or spec.loader is None or not (package / "__init__.py").is_file():
        raise InvalidInput(
            f"{package} is a folder without __init__.py; expected a package with `{DEFAULT_FUNCTION}(image)`."
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[package.name] = module  # so that it can import its own parts
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidInput(f"{package} could not be run: {user_code.describe_error(error)}.") from error
    found = getattr(module, name or DEFAULT_FUNCTION, None)
    if not callable(found):
        raise InvalidInput(
            f"{package} has no function {name or DEFAULT_FUNCTION}; name one as {package}:NAME."
        )
    return found


def asked(model: Callable[..., Any], image: NDArray[np.uint8], name: str, layout: Layout) -> Maps:
    """What the model says of an image, as maps at the locations; chance begins at the same place for every image."""
    try:
        seeded = _seed()
        said = model(as_image(image).copy())
        if "torch" in sys.modules and not seeded:  # it has only now been imported
            _seed()
            said = model(as_image(image).copy())
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidInput(
            f"The model failed on image {name}: {user_code.describe_error(error)}. Here it is called with the image alone."
        ) from error
    try:
        return as_maps(said, image, layout)
    except VsegError as error:
        raise InvalidInput(f"What the model returned for image {name} cannot be used. {error}") from error


def _seed() -> bool:
    """For models that draw from the global state; whether PyTorch's could be set."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
    return "torch" in sys.modules


def as_maps(said: Any, image: NDArray[np.uint8], layout: Layout) -> Maps:
    """Labels (H, W), probabilities (H, W, K) or Maps, at the locations: shares of each location's cell."""
    if isinstance(said, Maps):
        return said if said.layout == layout else said.resampled(layout)
    return Maps(
        layout,
        to_location_probabilities(said.detach().cpu() if hasattr(said, "detach") else said, image, layout),
    )


def _repeats(
    model: Callable[..., Any], images: dict[str, NDArray[np.uint8]], layout: Layout, maps: dict[str, Maps]
) -> bool:
    """Whether asking about the first image again gives the same."""
    name, image = next(iter(images.items()))
    return bool(asked(model, image, name, layout) == maps[name])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
