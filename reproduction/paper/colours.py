"""Parametric maps: the probabilities of segments from the colour of each location, by the logistic model of Eq. 10.

The colours of a segment are a Gaussian cloud and a location's label is drawn from its probabilities; the paper does not
print its generator, so this one is ours. What can be reached at all is what an ideal observer of the colours, who knows
the clouds, says of each location. Between two clouds of one width, the plane that separates them best stands at right
angles to the line between their means.
"""

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.paper import parametric, simulation
from reproduction.paper.claims import Claim, interval, judged, spoken
from vseg.data.maps import Maps
from vseg.data.responses import Tally
from vseg.evaluation import metrics
from vseg.models import LinearModel, Task, logistic
from vseg.stimuli import colour_image
from vseg.stimuli.colours import PALETTE, ColourImage
from vseg.stimuli.random_maps import softmax

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vseg.sweeps import Table

NAME = "colours"
TITLE = "Parametric maps of colours"
WHERE = "Figure 8"
AMPLITUDES = (float("inf"), 20.0, 6.0)
SETTINGS = {"amplitude": AMPLITUDES}

SEGMENTS, SIZE, XI, BLOCKS, SPREAD = 3, 48, 10.0, 10, 0.1
STRENGTH = 1.0  # the paper's λ here
FITS = ("paper", "ours", "squared")
MEANS = PALETTE[:SEGMENTS]
CLOSE = 0.02  # to the ideal observer's error
AGREED = 0.95
BETWEEN = ((0, 1), (0, 2), (1, 2))


def truth(amplitude: float) -> Maps:
    """Maps of S2; an infinite amplitude gives one-hot maps."""
    return simulation.truth(size=SIZE, segments=SEGMENTS, amplitude=amplitude, xi=XI)


@cache
def shown(amplitude: float) -> ColourImage:
    """The picture: one colour a location."""
    return colour_image(truth(amplitude), spread=SPREAD, seed=1)


def ideal(amplitude: float) -> Maps:
    """What an observer who knows the clouds and the segments' shares says of each colour."""
    picture = shown(amplitude)
    far = ((picture.features[:, None] - MEANS) ** 2).sum(axis=2)
    share = truth(amplitude).probabilities.mean(axis=0)
    return Maps(picture.layout, softmax(-far / (2 * SPREAD**2) + np.log(share)))


def share(*, amplitude: float) -> float:
    """Each of our two fits to 69,120 answers takes up to half a second."""
    return 0.05


def trial(*, amplitude: float, seed: int) -> list[dict[str, Any]]:
    """One resample: errors and planes of the paper's fit, of ours, and of ours with the paper's loss."""
    tally = simulation.answered(truth(amplitude), blocks=BLOCKS, seed=seed)
    found = _fitted(amplitude, tally, seed)
    best = ideal(amplitude)
    return [
        {
            "fit": fit,
            "mae": metrics.mae(one.maps, truth(amplitude)),
            "ideal": metrics.mae(best, truth(amplitude)),
            "agreement": float(np.mean(one.maps.labels == best.labels)),
            "angle": angle(one.weights),
        }
        for fit, one in found.items()
    ]


class Planes(NamedTuple):
    """A fit: its maps, and the weights (K, 3) and offsets (K,) of its logits, segments named as in the truth."""

    maps: Maps
    weights: NDArray[np.float64]
    offsets: NDArray[np.float64]


def _fitted(amplitude: float, tally: Tally, seed: int) -> dict[str, Planes]:
    features, wanted = shown(amplitude).features, truth(amplitude)
    paper = parametric.logistic(features, tally, SEGMENTS, strength=STRENGTH, seed=seed)
    task = Task(simulation.one_by_one(tally), segments=SEGMENTS)
    fits = {
        "paper": Planes(paper.maps, paper.weights, paper.offsets),
        "ours": _planes_of(logistic({"image": features})(task, seed=seed)),
        "squared": _planes_of(logistic({"image": features}, loss="squared_error")(task, seed=seed)),
    }
    found = {}
    for fit, (maps, weights, offsets) in fits.items():
        order = maps.matching_order(wanted)
        found[fit] = Planes(maps.permute(order), weights[order], offsets[order])
    return found


def _planes_of(fit: LinearModel) -> Planes:
    """A logit is linear in the colour: its offset is what black has, its weights what each channel adds."""
    logits = fit.design(np.concatenate([np.zeros((1, 3)), np.eye(3)])) @ fit.theta
    return Planes(fit.maps("image"), (logits[1:] - logits[0]).T, logits[0])


def angle(weights: NDArray[np.float64]) -> float:
    """Mean angle in degrees between the separating planes' normals and the lines between the clouds' means.

    Examples
    --------
    >>> angle(MEANS) < 0.001
    True
    """
    found = []
    for a, b in BETWEEN:
        normal, line = weights[a] - weights[b], MEANS[a] - MEANS[b]
        cosine = normal @ line / np.linalg.norm(normal) / np.linalg.norm(line)
        found.append(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    return float(np.mean(found))


def example(*, seed: int) -> dict[str, NDArray[np.float64]]:
    """Truth, picture, ideal observer and fits at the first and the last amplitude; weights for the planes."""
    found: dict[str, NDArray[np.float64]] = {}
    for name, amplitude in (("certain", AMPLITUDES[0]), ("uncertain", AMPLITUDES[-1])):
        found[f"truth_{name}"] = truth(amplitude).image
        found[f"picture_{name}"] = shown(amplitude).image
        found[f"ideal_{name}"] = ideal(amplitude).image
        tally = simulation.answered(truth(amplitude), blocks=BLOCKS, seed=seed)
        for fit, one in _fitted(amplitude, tally, seed).items():
            found[f"{fit}_{name}"] = one.maps.image
            found[f"{fit}_weights_{name}"] = one.weights
            found[f"{fit}_offsets_{name}"] = one.offsets
    return found


def claims(table: "Table") -> list[Claim]:
    """What the paper says about its colour simulation."""
    return [_recovered(table), _planes(table)]


def _recovered(table: "Table") -> Claim:
    def said(fit: str) -> str:
        return "; ".join(f"{spoken(interval(_of(table, 'mae', fit, a)))} {_certainty(a)}" for a in AMPLITUDES)

    ideals = ", ".join(f"{_of(table, 'ideal', 'paper', a).mean():.3f}" for a in AMPLITUDES)
    near = [interval(_of(table, "mae", "paper", a) - _of(table, "ideal", "paper", a)) for a in AMPLITUDES]
    close = [high < CLOSE for _, _, high in near]
    return judged(
        "The parametric model recovers the maps up to the noise of the colours.",
        paper=f"MAE {said('paper')}; the ideal observer, who knows the colours' distributions: {ideals}",
        ours=f"{said('ours')} by the likelihood of the answers, which pays for confident mistakes with softer maps; "
        f"with the paper's squared error: {said('squared')}",
        holds=all(close),
        holds_if=any(close),
        condition=f"the maps are {_where(close)}: there the error is within {CLOSE} of the ideal observer's, elsewhere "
        f"up to {max(near)[0]:.2f} above it",
        reason=f"the error is more than {CLOSE} above the ideal observer's even where maps are certain",
    )


def _planes(table: "Table") -> Claim:
    def said(fit: str) -> str:
        return "; ".join(
            f"{spoken(interval(_of(table, 'agreement', fit, a)))} and "
            f"{spoken(interval(_of(table, 'angle', fit, a)), 1)}° {_certainty(a)}"
            for a in AMPLITUDES
        )

    found = [interval(_of(table, "agreement", "paper", a))[1] > AGREED for a in AMPLITUDES]
    return judged(
        "Segments are told apart by planes in the space of colours.",
        paper=f"locations labelled as by the ideal observer, and the planes' angle to the best ones: {said('paper')}",
        ours=said("ours"),
        holds=all(found),
        holds_if=any(found),
        condition=f"the maps are {_where(found)}",
        reason=f"fewer than {AGREED:.0%} of the locations have the label of the ideal observer",
    )


def _where(fine: list[bool]) -> str:
    return " or ".join(_certainty(a) for a, each in zip(AMPLITUDES, fine, strict=True) if each)


def _certainty(amplitude: float) -> str:
    return {AMPLITUDES[0]: "certain", AMPLITUDES[1]: "nearly certain"}.get(amplitude, "uncertain")


def _of(table: "Table", value: str, fit: str, amplitude: float) -> NDArray[np.float64]:
    return table.column(value, fit=fit, amplitude=amplitude)


def draw(table: "Table", example: dict[str, NDArray[np.float64]]) -> "Figure":
    """Maps of the truth and of both fits, colours with the planes between them, and errors over certainty."""
    from reproduction.paper.colours_drawing import drawn

    return drawn(table, example)
