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
    "Responses": "responses", "Tally": "responses",
    "load": "tables",
    "Maps": "maps",
    "simulate": "observers",
    "reconstruct": "reconstruction", "reconstruct_each": "reconstruction", "Reconstruction": "reconstruction",
    "choose_segments": "selection",
    "bootstrap": "uncertainty",
    "Live": "live",
    "compare": "comparison",
    "posterior": "bayesian", "posteriors": "bayesian", "Posterior": "bayesian",
    "sweep": "sweeps",
}  # fmt: skip
_ROOMS = (
    "adaptive", "bayesian", "benchmark", "bots", "choosing", "comparison", "dataset", "demo", "designs",
    "errors", "export", "features", "figures", "forecast", "importing", "layout", "live", "losses", "maps",
    "metrics", "models", "monitor", "objective", "observers", "pairs", "paper", "plan", "reconstruction",
    "report", "responses", "seeds", "selection", "smoothness", "solvers", "statistics", "stimuli", "store",
    "study", "sweeps", "tables", "texts", "uncertainty", "validation",
)  # fmt: skip

__all__ = [*_HOME, *_ROOMS]

if TYPE_CHECKING:
    from vseg import (
        adaptive as adaptive,
        bayesian as bayesian,
        benchmark as benchmark,
        bots as bots,
        choosing as choosing,
        comparison as comparison,
        dataset as dataset,
        demo as demo,
        designs as designs,
        errors as errors,
        export as export,
        features as features,
        figures as figures,
        forecast as forecast,
        importing as importing,
        layout as layout,
        live as live,
        losses as losses,
        maps as maps,
        metrics as metrics,
        models as models,
        monitor as monitor,
        objective as objective,
        observers as observers,
        pairs as pairs,
        paper as paper,
        plan as plan,
        reconstruction as reconstruction,
        report as report,
        responses as responses,
        seeds as seeds,
        selection as selection,
        smoothness as smoothness,
        solvers as solvers,
        statistics as statistics,
        stimuli as stimuli,
        store as store,
        study as study,
        sweeps as sweeps,
        tables as tables,
        texts as texts,
        uncertainty as uncertainty,
        validation as validation,
    )
    from vseg.bayesian import Posterior as Posterior, posterior as posterior, posteriors as posteriors
    from vseg.comparison import compare as compare
    from vseg.layout import Grid as Grid, Layout as Layout, Scatter as Scatter
    from vseg.live import Live as Live
    from vseg.maps import Maps as Maps
    from vseg.observers import simulate as simulate
    from vseg.pairs import Pairs as Pairs
    from vseg.reconstruction import (
        Reconstruction as Reconstruction,
        reconstruct as reconstruct,
        reconstruct_each as reconstruct_each,
    )
    from vseg.responses import Responses as Responses, Tally as Tally
    from vseg.selection import choose_segments as choose_segments
    from vseg.sweeps import sweep as sweep
    from vseg.tables import load as load
    from vseg.uncertainty import bootstrap as bootstrap


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"vseg.{_HOME[name]}"), name)
    if name in _ROOMS:
        return import_module(f"vseg.{name}")
    raise AttributeError(f"module 'vseg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
