"""Regenerate the paper's figures with the paper's own algorithm and with vseg, one module per figure.

Figure modules (see FigureModule for their interface) are loaded on first use. They share:

runner.py        run(): simulate, draw and judge figures; resume interrupted runs
claims.py        claims of the paper with computed verdicts
page.py          the HTML page and the Markdown table of all claims
drawing.py       charts and rows of maps
simulation.py    ground truths and simulated answers
participants.py  simulated participants of the texture experiment
estimators.py    the estimators compared: Algorithm 1 and vseg
algorithm.py     Algorithm 1, compiled; pytorch.py, the same in PyTorch, for its running time
parametric.py    the paper's parametric fits
costs.py         running times
"""

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, cast

from vseg.errors import NotFound

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reproduction.paper.claims import Claim
    from vseg.sweeps import Table

FIGURES = {
    "deterministic": "Figure 1: deterministic maps",
    "losses": "Figure 2: equivalence of the losses, and regularisation",
    "pairs": "Figure 3: pairs from Proposition 1",
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


class FigureModule(Protocol):
    """The names that every figure module defines.

    A module may also define `settings(data)` instead of SETTINGS; SHARE or `share(**setting)`, the share of the
    resamples that it gets; MIN_RESAMPLES; and `paper_fits(**setting, seed)`, the fits of Algorithm 1 in one resample.
    """

    NAME: str
    TITLE: str
    WHERE: str
    SETTINGS: Any

    @property
    def trial(self) -> Callable[..., Any]:
        """Run one resample of one setting: `(**setting, seed)` to a row or several."""
        ...

    @property
    def example(self) -> Callable[..., dict[str, Any]]:
        """Compute the arrays of the maps that are drawn: `(seed)`, or `(seed, data)`."""
        ...

    @property
    def claims(self) -> "Callable[[Table], list[Claim]]":
        """Judge the paper's claims from all rows."""
        ...

    @property
    def draw(self) -> "Callable[[Table, Any], Figure]":
        """Draw the figure from all rows and the example."""
        ...


def load_figure(name: str) -> FigureModule:
    """Import and return the module of a figure.

    Examples
    --------
    >>> load_figure("blocks").NAME
    'blocks'
    """
    module: ModuleType = import_module(f"reproduction.paper.{check_name(name)}")
    return cast(FigureModule, module)


def check_name(name: str) -> str:
    """Return the name, or raise NotFound with all names if there is no such figure."""
    if name not in FIGURES:
        raise NotFound(
            f"There is no figure {name!r}; choose one of {', '.join(FIGURES)}, a number such as fig2 or s4, or all."
        )
    return name


def find_figures(name: str) -> list[str]:
    """Return the figures with this name or number; 'all' selects every figure.

    Examples
    --------
    >>> find_figures("fig2"), find_figures("s4")
    (['losses'], ['resolution', 'kernels'])
    """
    if name == "all":
        return list(FIGURES)
    return [figure for figure, title in FIGURES.items() if name in _list_numbers(title)] or [check_name(name)]


def _list_numbers(title: str) -> list[str]:
    """Return the numbers in a title as typed: 'fig7' and 's5' of 'Figure 7 and S5: …'."""
    where = title.partition(":")[0]
    return [
        *(f"fig{number}" for number in re.findall(r"Figure (\d+)", where)),
        *(f"s{number}" for number in re.findall(r"\bS(\d+)", where)),
    ]


def select_figures(names: Iterable[str]) -> list[str]:
    """Return the requested figures without duplicates, in the paper's order; 'all' selects every figure."""
    wanted = {selected for name in names for selected in find_figures(name)}
    return [name for name in FIGURES if name in wanted]
