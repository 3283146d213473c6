"""Posterior: maps with what is known about them: intervals, entropy, evidence, and whether the draws can be trusted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vseg import __version__
from vseg.bayes.diagnostics import Convergence, mean_entropies
from vseg.bayes.segment_evidence import SegmentsTable
from vseg.data.layout import Grid
from vseg.data.maps import Maps
from vseg.data.pairs import Pairs
from vseg.errors import InvalidInput

CONFIDENCE = 0.9


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """What the answers tell about the maps.

    Attributes
    ----------
    maps : Maps
        The posterior median of every probability, renormalised: the estimate to report.
    mode : Maps
        The most probable maps.
    draws : (S, n, K)
        Maps drawn from the posterior, under the labels of the mode.
    evidence : float
        Log probability of the answers under the model, in nats; comparable between priors and K.
    prior, kernel : str
        What was asked for, and the kind of covariance that the evidence chose: for a group prior "group", or one of the
        spatial ones.
    scale, length : float
        s, the standard deviation of the log-odds, and ξ in cells (NaN where the prior has none).
    lapses : (γ₀, γ₁)
        P('same') where all is different, P('different') where all is the same.
    diagnostics : Convergence
        R-hat and effective sample size of label-free quantities.
    table : SegmentsTable or None
        The evidence of each K, where several were tried.
    spatial : Posterior or None
        With an image prior: the same answers without the image, to be shown beside it.
    """

    maps: Maps
    mode: Maps
    draws: NDArray[np.float64]
    evidence: float
    objective: float
    penalty: float
    prior: str
    kernel: str
    scale: float
    length: float
    lapses: tuple[float, float]
    diagnostics: Convergence
    pairs: int
    trials: int
    locations_tested: int
    table: SegmentsTable | None = None
    seconds: float = 0.0
    seed: int | None = None
    spatial: "Posterior | None" = None

    @property
    def segments(self) -> int:
        """K."""
        return self.maps.segments

    @cached_property
    def _bounds(self) -> NDArray[np.float64]:
        return interval(self.draws)

    @property
    def lower(self) -> NDArray[np.float64]:
        """(n, K) lower ends of the 90 % intervals, see `interval`: 0 where the draws pile up there."""
        return self._bounds[0]

    @property
    def upper(self) -> NDArray[np.float64]:
        """(n, K) upper ends of the 90 % intervals, see `interval`: 1 where the draws pile up there."""
        return self._bounds[1]

    @cached_property
    def entropies(self) -> NDArray[np.float64]:
        """(S,) mean entropy of each draw, in nats."""
        return mean_entropies(self.draws)

    @property
    def entropy(self) -> float:
        """The mean entropy over locations, in nats: the posterior median."""
        return float(np.median(self.entropies))

    @property
    def entropy_interval(self) -> tuple[float, float]:
        """The 90 % interval of the mean entropy, with 5 % on either side."""
        low, high = equal_tailed(self.entropies)
        return float(low), float(high)

    @property
    def argmax_probability(self) -> NDArray[np.float64]:
        """(n, K) the probability that segment k wins location i."""
        return np.eye(self.segments)[self.draws.argmax(axis=2)].mean(axis=0)

    @property
    def expected_error(self) -> float:
        """The expected error of one probability, mean |p - median|: what a stopping rule compares with its target."""
        return expected_error(self.draws, self.maps.probabilities)

    def same_probability(self, pairs: Pairs) -> NDArray[np.float64]:
        """P(same) of each pair by the maps (Eq. 2), averaged over the draws; lapses left out."""
        if pairs.layout != self.maps.layout:
            raise InvalidInput(f"The pairs lie on {pairs.layout}, the maps on {self.maps.layout}.")
        q = np.einsum("smk,smk->m", self.draws[:, pairs.i], self.draws[:, pairs.j], optimize=True)
        return np.clip(q / len(self.draws), 0, 1)

    def aligned_to(self, maps: Maps) -> "Posterior":
        """The same under the labels of other maps with as many segments, since labels are arbitrary."""
        if maps.segments != self.segments:
            raise InvalidInput(
                f"The posterior has {self.segments} segments, the maps {maps.segments}; expected as many."
            )
        order = self.maps.order_in(maps)
        return replace(
            self,
            maps=self.maps.permuted(order),
            mode=self.mode.permuted(order),
            draws=self.draws[:, :, order],
            spatial=self.spatial and self.spatial._labelled_as(maps),
        )

    def _labelled_as(self, maps: Maps) -> "Posterior":
        """Without the image the evidence may choose another K, whose labels then are its own."""
        return self.aligned_to(maps) if self.segments == maps.segments else self

    @property
    def converged(self) -> bool:
        """Whether the chains agree."""
        return self.diagnostics.good

    @property
    def message(self) -> str:
        """One sentence for a person."""
        low, high = self.entropy_interval
        slips = f", lapses {sum(self.lapses):.1%}" if sum(self.lapses) else ""
        several = ""
        if self.table is not None and len(self.table.cells) > 1:
            several = f" (plausible: {self.table.said})"
        return (
            f"{self.segments} segments{several} from {self.trials} {'trial' if self.trials == 1 else 'trials'} on "
            f"{self.pairs} {'pair' if self.pairs == 1 else 'pairs'}, {self.prior} prior{slips}, mean entropy "
            f"{self.entropy:.3f} nats, 90 % interval {low:.3f} to {high:.3f}. {self.diagnostics.message}"
        )

    def __repr__(self) -> str:
        return f"<Posterior: {self.message}>"

    def summary(self) -> dict[str, Any]:
        """The numbers that `vseg fit` writes to summary.json, under the names that a Reconstruction uses too."""
        return {
            "method": "posterior",
            "objective": self.objective,
            "data_term": self.objective - self.penalty,
            "penalty": self.penalty,
            "smoothness": None,
            "loss": "cross_entropy",
            "segments": self.segments,
            "segments_won": self.maps.winning,
            "iterations": None,
            "draws": len(self.draws),
            "converged": self.converged,
            "message": self.message,
            "mean_entropy": self.entropy,
            "entropy_low": self.entropy_interval[0],
            "entropy_high": self.entropy_interval[1],
            "confidence": CONFIDENCE,
            "expected_error": self.expected_error,
            "evidence": self.evidence,
            "segments_table": None if self.table is None else self.table.rows(),
            "segments_plausible": None if self.table is None else self.table.plausible,
            "prior": self.prior,
            "scale": self.scale,
            "length": None if np.isnan(self.length) else self.length,
            "lapses": list(self.lapses),
            "rhat": _finite(self.diagnostics.rhat),
            "effective_draws": self.diagnostics.ess,
            "accepted": self.diagnostics.accepted,
            "seconds": self.seconds,
            "seed": self.seed,
            "version": __version__,
            "solver": "hmc",
            "kernel": self.kernel,
            "weights": "trials",
            "pairs": self.pairs,
            "trials": self.trials,
            "locations": len(self.maps.layout),
            "locations_tested": self.locations_tested,
            "held_out": None,
        }

    def save(self, folder: str | Path, about: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Write maps.npz, with `lower`, `upper` and `draws`, and summary.json into a folder.

        With an image prior, the map without the image goes beside it, as maps-spatial.npz.
        """
        self._write(Path(folder) / "maps.npz")
        if self.spatial is not None:
            self.spatial._write(Path(folder) / "maps-spatial.npz")
        text = json.dumps({**about, **self.summary()}, indent=2, ensure_ascii=False)
        (Path(folder) / "summary.json").write_text(text + "\n", encoding="utf-8")

    def _write(self, path: Path) -> None:
        layout = self.maps.layout
        rows = (layout.size, layout.size) if isinstance(layout, Grid) else (len(layout),)
        arrays: dict[str, Any] = {
            "probabilities": self.maps.probabilities.reshape(*rows, -1),
            "lower": self.lower.reshape(*rows, -1),
            "upper": self.upper.reshape(*rows, -1),
            "draws": self.draws.astype(np.float32).reshape(len(self.draws), *rows, -1),
        }
        if not isinstance(layout, Grid):
            arrays["positions"] = layout.positions
        with open(path, "wb") as file:
            np.savez_compressed(file, **arrays)


def interval(draws: NDArray[np.float64], confidence: float = CONFIDENCE) -> NDArray[np.float64]:
    """(2, …) ends of an interval of probabilities over the first axis, in which a further draw falls that often.

    Of three intervals the shortest: from 0 up, with as much left out on either side, or up to 1. In the middle of a
    segment the others' probabilities are next to 0 or 0 itself, and an interval that leaves out the smallest draws, as
    one with equal tails does, could not hold them.

    Examples
    --------
    >>> piled, apart = np.linspace(0, 0.2, 39) ** 2, np.linspace(0.3, 0.5, 39)
    >>> interval(np.stack([piled, apart], axis=1)).round(2)
    array([[0.  , 0.31],
           [0.03, 0.49]])
    """
    low, high = equal_tailed(draws, confidence)
    upto, above = np.quantile(draws, [confidence, 1 - confidence], axis=0, method="weibull")
    shortest = np.argmin([high - low, upto, 1 - above], axis=0)
    return np.stack([np.choose(shortest, [low, 0.0, above]), np.choose(shortest, [high, upto, 1.0])])


def equal_tailed(draws: NDArray[np.float64], confidence: float = CONFIDENCE) -> NDArray[np.float64]:
    """(2, …) ends over the first axis, below and above which a further draw falls equally seldom."""
    tail = (1 - confidence) / 2
    return np.quantile(draws, [tail, 1 - tail], axis=0, method="weibull")


def median_maps(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, K) the median of every probability, renormalised."""
    p = np.median(draws, axis=0)
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0.01, p / np.maximum(total, 0.01), draws.mean(axis=0))


def expected_error(draws: NDArray[np.float64], centre: NDArray[np.float64]) -> float:
    """Mean |p - centre| over draws, locations and segments."""
    return float(np.abs(draws - centre).mean())


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
