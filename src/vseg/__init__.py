"""vseg measures how a person segments an image, and how sure they are.

    truth = vseg.stimuli.random_maps(vseg.Grid(16), segments=3, seed=0)
    pairs = vseg.designs.scattered(truth.layout, segments=3, seed=1)
    responses = vseg.simulate(truth, pairs, blocks=10, seed=2)
    result = vseg.reconstruct(responses, segments=3, seed=3)
    vseg.figures.maps(truth, result.maps).savefig("maps.png")

Names are loaded when first used, so that `import vseg` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Layout": "layout", "Grid": "layout", "Scatter": "layout",
    "Pairs": "pairs",
    "Responses": "responses", "Tally": "responses", "load": "responses",
    "Maps": "maps",
    "simulate": "observers",
    "reconstruct": "reconstruction", "reconstruct_each": "reconstruction", "Reconstruction": "reconstruction",
    "choose_segments": "selection",
    "Live": "live",
}  # fmt: skip
_ROOMS = (
    "demo", "designs", "errors", "figures", "layout", "losses", "maps", "metrics", "objective", "observers",
    "pairs", "reconstruction", "report", "responses", "selection", "smoothness", "solvers", "statistics",
    "stimuli", "validation",
)  # fmt: skip

__all__ = [*_HOME, *_ROOMS]

if TYPE_CHECKING:
    from vseg import (
        designs as designs,
        errors as errors,
        layout as layout,
        maps as maps,
        observers as observers,
        pairs as pairs,
        responses as responses,
        stimuli as stimuli,
    )
    from vseg.layout import Grid as Grid, Layout as Layout, Scatter as Scatter
    from vseg.maps import Maps as Maps
    from vseg.observers import simulate as simulate
    from vseg.pairs import Pairs as Pairs
    from vseg.responses import Responses as Responses, Tally as Tally, load as load


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"vseg.{_HOME[name]}"), name)
    if name in _ROOMS:
        return import_module(f"vseg.{name}")
    raise AttributeError(f"module 'vseg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
