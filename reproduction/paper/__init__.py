"""The paper's results, regenerated: one module a figure, with the paper's own algorithm and ours side by side.

Each figure module offers the same names: NAME, TITLE, WHERE, SETTINGS (or `settings(data)`), `trial`, `example`,
`claims` and `draw`; `running.run` and `page.write` treat them alike. Some also say which share of the resamples they
get (SHARE, or `share` of a setting, and LEAST), and which fits of Algorithm 1 a resample takes (`papers_fits`). Modules
are loaded when first asked for.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from vseg.errors import NotFound

FIGURES = {
    "deterministic": "Figure 1: deterministic maps",
    "losses": "Figure 2: equivalence of the losses, and regularisation",
    "blocks": "Figure 4: error over the number of blocks",
    "uncertainty": "Figure 5: error over uncertainty",
    "natural": "Figure 6: natural images with a free number of segments",
    "texture": "Figure 7 and S5: participants who see textures",
    "colours": "Figure 8: parametric maps of colours",
    "variance": "Figure 9: differential variance",
    "many_segments": "S3, first figure: nine segments",
    "unknown_segments": "S3, second figure: an unknown number of segments",
    "resolution": "S4, first figure: resolution",
    "kernels": "S4, second figure: wider kernels",
}
"""The figures by their names on the command line, in the paper's order."""


def figure(name: str) -> Any:
    """The module of one figure.

    Examples
    --------
    >>> figure("blocks").NAME
    'blocks'
    """
    return import_module(f"reproduction.paper.{known(name)}")


def known(name: str) -> str:
    """The name itself, where there is such a figure; a sentence with all names where there is none."""
    if name not in FIGURES:
        raise NotFound(f"There is no figure {name!r}; choose one of {', '.join(FIGURES)}, or all.")
    return name


def chosen(names: Iterable[str]) -> list[str]:
    """The figures asked for, each once, in the paper's order; 'all' stands for every one."""
    wanted = {each for name in names for each in (FIGURES if name == "all" else [known(name)])}
    return [name for name in FIGURES if name in wanted]
