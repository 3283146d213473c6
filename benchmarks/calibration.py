"""Whether 90 % intervals hold the truth in 90 % of the cases: data from the model itself, other truths, short sessions.

Run by `make study`; every data set has its own fixed seed. `python benchmarks/calibration.py 20 5` prints the tables
from 20 data sets for each row of the first and 5 for each cell of the others, and writes nothing.
"""

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterior import gp
from tables import table
from vseg import Grid, Maps, designs, simulate
from vseg.bayes import posterior, priors
from vseg.bayes.joint_sampling import BIAS_SPREAD, FLOOR_SPREAD, SCALE_FACTOR, SCALE_SPREAD, USUAL_FLOOR
from vseg.bayes.lapses import BETA
from vseg.bayes.model import CovarianceRoot, compute_maps, helmert_contrasts
from vseg.bayes.spectra import DETAIL_FACTOR, MAX_DETAIL
from vseg.errors import VsegWarning
from vseg.observers import LapsingObserver
from vseg.sweeps import sweep

CATCH_TRIALS = 40
DECILES = 10
PAIRS = 6

Floats = NDArray[np.float64]


def main(sets: int, others: int) -> str:
    """Return the three tables: `sets` data sets for each row of the first, `others` for each cell of the others."""
    return "\n".join([own_model(sets), other_truths(others), short_sessions(others)])


def own_model(sets: int) -> str:
    """Simulation-based calibration: hyper-parameters, maps and answers are drawn from the model."""
    settings = {"blocks": [1, 5], "lapses": ["none", "estimated"]}
    found = sweep(_draw_from_model, settings, repeats=sets, executor="threads", seed=0)
    rows = []
    for blocks in settings["blocks"]:
        for lapses in settings["lapses"]:
            part = found.where(blocks=blocks, lapses=lapses).rows
            ranks = np.array([row["rank"] for row in part])
            pair_ranks = np.concatenate([np.array(row["ranks"].split(), float) for row in part])
            rows.append([
                str(blocks), lapses, *_shares(part, "entropy_covered", "pairs_covered", "entries_covered"),
                f"{_uniformity(ranks):.2f}", f"{_uniformity(pair_ranks):.2f}",
                *_diagnostics(part),
            ])  # fmt: skip
    columns = [
        "blocks", "lapses", "mean entropy", "P(same)", "entries", "χ² p, entropy", "χ² p, P(same)", "chains agree",
        "seconds, median",
    ]  # fmt: skip
    note = (
        f"8×8 locations, three segments, {sets} data sets per row: scale, length, share of detail, floor, maps and "
        f"lapses are drawn from the prior, {CATCH_TRIALS} catch trials where lapses are estimated. Shares of 90 % "
        "intervals that hold the truth; the p-value of a χ² test that the truth's ranks among the draws are uniform. "
        "Targets: 87 to 93 % without lapses, 85 to 93 % with lapses, p > 0.01."
    )
    return table("Calibration on the model's own data", columns, rows, note)


def other_truths(sets: int) -> str:
    """Calibration on maps that the model does not expect."""
    settings = {"truth": list(TRUTHS), "blocks": [1, 5], "lapse": [0.0, 0.05]}
    found = sweep(_fit_other_truth, settings, repeats=sets, executor="threads", seed=0)
    rows, shares = [], []
    for truth in TRUTHS:
        cells = []
        for blocks in settings["blocks"]:
            for lapse in settings["lapse"]:
                part = found.where(truth=truth, blocks=blocks, lapse=lapse).rows
                shares.append(np.mean([row["entropy_covered"] for row in part]))
                cells.append(f"{100 * shares[-1]:.0f} %")
        part = found.where(truth=truth).rows
        true, estimate = (np.mean([row[name] for row in part]) for name in ("true", "estimate"))
        rows.append([truth, f"{true:.3f}", f"{estimate:.3f}", *cells, _diagnostics(part)[0]])
    columns = [
        "truth", "true entropy", "estimate", "1 block", "1 block, 5 % lapses", "5 blocks", "5 blocks, 5 % lapses",
        "chains agree",
    ]  # fmt: skip
    note = (
        f"10×10 locations, three segments, {sets} data sets per cell, lapses estimated with {CATCH_TRIALS} catch "
        "trials. Shares "
        "of 90 % intervals of the mean entropy that hold the truth. These maps have sharp borders or plateaus, which "
        f"the model does not expect. Mean: {100 * np.mean(shares):.0f} %, lowest: {100 * np.min(shares):.0f} %. "
        "Targets: 80 % on average, none below 65 %."
    )
    return table("Calibration on truths outside the model", columns, rows, note)


def short_sessions(sets: int) -> str:
    """Calibration in the sessions of real studies: few answers, some lapses."""
    settings = {"trials": [180, 360], "segments": [3, 5], "lapses": ["estimated", "given"]}
    found = sweep(_fit_short_session, settings, repeats=sets, executor="threads", seed=0)
    rows = []
    for trials in settings["trials"]:
        for segments in settings["segments"]:
            for lapses in settings["lapses"]:
                part = found.where(trials=trials, segments=segments, lapses=lapses).rows
                ratio = np.median([row["estimate"] / row["true"] for row in part])
                rows.append([
                    str(trials), str(segments), lapses, *_shares(part, "entropy_covered"), f"{ratio:.2f}",
                    *_diagnostics(part),
                ])  # fmt: skip
    columns = [
        "answers", "K", "lapses", "mean entropy", "estimate ÷ true", "chains agree", "seconds, median",
    ]  # fmt: skip
    note = (
        f"12×12 locations, maps as in the paper's S2 at moderate uncertainty, 5 % lapses, {sets} data sets per row, "
        f"{CATCH_TRIALS} catch trials where lapses are estimated. Shares of 90 % intervals that hold the truth. "
        "Target: 85 %."
    )
    return table("Calibration in short sessions", columns, rows, note)


def _draw_from_model(blocks: int, lapses: str, *, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    truth = Maps(Grid(8), _draw_maps(8, 3, rng))
    lapse = float(rng.beta(1, BETA)) if lapses == "estimated" else 0.0
    bias = float(1 / (1 + np.exp(-BIAS_SPREAD * rng.standard_normal())))
    return _fit(truth, blocks, lapse, bias, lapses, rng)


def _fit_other_truth(truth: str, blocks: int, lapse: float, *, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    p = TRUTHS[truth](10, rng)
    return _fit(Maps(Grid(10), p / p.sum(axis=1, keepdims=True)), blocks, lapse, 0.5, "estimated", rng)


def _fit_short_session(trials: int, segments: int, lapses: str, *, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    truth = gp(12, segments, "moderate", int(rng.integers(2**31)))
    return _fit(truth, 1, 0.05, 0.5, lapses, rng, trials=trials)


def _fit(
    truth: Maps,
    blocks: int,
    lapse: float,
    bias: float,
    lapses: str,
    rng: np.random.Generator,
    trials: int | None = None,
) -> dict[str, Any]:
    """Simulate answers to a truth and fit them; return what the tables count."""
    seeds = [int(number) for number in rng.integers(2**31, size=blocks + 2)]
    size: dict[str, Any] = {"segments": truth.segments} if trials is None else {"trials": trials}
    pairs = [designs.covering(truth.layout, **size, seed=seed) for seed in seeds[:blocks]]
    answers = simulate(truth, pairs, observer=LapsingObserver(lapse, bias=bias), seed=seeds[-2])
    options: dict[str, Any] = {"lapses": None}
    if lapses == "estimated":
        half = CATCH_TRIALS // 2
        wrong = int(rng.binomial(half, lapse * bias) + rng.binomial(half, lapse * (1 - bias)))
        options = {"lapses": "estimate", "catch": (CATCH_TRIALS - wrong, CATCH_TRIALS)}
    elif lapses == "given":
        options = {"lapses": (lapse * bias, lapse * (1 - bias))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VsegWarning)
        result = posterior(answers, segments=truth.segments, seed=seeds[-1], threads=1, **options)
    low, high = result.entropy_interval
    i, j = rng.integers(len(truth.layout), size=(2, PAIRS))
    same = np.sum(truth.probabilities[i] * truth.probabilities[j], axis=1)
    drawn = np.sum(result.draws[:, i] * result.draws[:, j], axis=2)
    bounds = np.quantile(drawn, [0.05, 0.95], axis=0)
    entries = truth.align_to(result.maps).probabilities
    return {
        "true": truth.mean_entropy,
        "estimate": result.entropy,
        "entropy_covered": float(low <= truth.mean_entropy <= high),
        "pairs_covered": float(np.mean((bounds[0] <= same) & (same <= bounds[1]))),
        "entries_covered": float(np.mean((result.lower <= entries) & (entries <= result.upper))),
        "rank": float(np.mean(result.entropies < truth.mean_entropy)),
        "ranks": " ".join(f"{rank:.4f}" for rank in np.mean(drawn < same, axis=0)),
        "agree": float(result.converged),
        "seconds": result.seconds,
    }


def _draw_maps(size: int, segments: int, rng: np.random.Generator) -> Floats:
    """Draw maps (n, K) from the spatial prior of the posterior."""
    scale = SCALE_FACTOR * priors.USUAL_SCALE * np.exp(SCALE_SPREAD * rng.standard_normal())
    length = np.exp(np.log(priors.USUAL_LENGTH) + priors.LENGTH_SPREAD * rng.standard_normal())
    share = MAX_DETAIL / (1 + np.exp(-priors.USUAL_DETAIL - priors.SHARE_SPREAD * rng.standard_normal()))
    distances = np.sum((Grid(size).positions[:, None] - Grid(size).positions) ** 2, axis=2)
    smooth, detail = (np.exp(-distances / (2 * each**2)) for each in (length, length / DETAIL_FACTOR))
    values, vectors = np.linalg.eigh((1 - share) * smooth + share * detail)
    tall = scale * vectors * np.sqrt(np.maximum(values, 0))
    root = CovarianceRoot(np.ascontiguousarray(tall.T), tall)
    maps = compute_maps(rng.standard_normal((segments - 1, size**2)), root, helmert_contrasts(segments))
    floor = 1 / (1 + np.exp(-USUAL_FLOOR - FLOOR_SPREAD * rng.standard_normal()))
    return np.asarray((1 - floor) * maps + floor / segments)


def _places(size: int) -> tuple[Floats, Floats]:
    y, x = np.mgrid[:size, :size] / (size - 1)
    return y, x


def _soften(labels: NDArray[np.int64], blur: float = 0.3) -> Floats:
    """Return maps (n, 3) of labels (N, N), blurred a little."""
    from scipy.ndimage import gaussian_filter

    p = gaussian_filter(np.eye(3)[labels], (blur, blur, 0), mode="nearest")
    return np.maximum(p, 1e-6).reshape(-1, 3)


def _ambiguous(size: int, rng: np.random.Generator) -> Floats:
    """Sharp regions around six points, one of which belongs to two segments with probability one half each."""
    y, x = _places(size)
    points = rng.random((6, 2))
    region = np.argmin([(y - point[0]) ** 2 + (x - point[1]) ** 2 for point in points], axis=0)
    labels = np.concatenate([[0, 1, 2], rng.integers(0, 3, 3)])
    p = np.eye(3)[labels]
    unsure = rng.integers(6)
    p[unsure] = (p[unsure] + np.eye(3)[(labels[unsure] + 1) % 3]) / 2
    return np.maximum(p[region], 1e-6).reshape(-1, 3)


def _gradient(size: int, rng: np.random.Generator) -> Floats:
    """One segment turns into another across the image, below a strip that is certain."""
    y, x = _places(size)
    angle = rng.uniform(0, 2 * np.pi)
    along = np.clip((x - 0.5) * np.cos(angle) + (y - 0.5) * np.sin(angle) + 0.5, 0, 1)
    p = np.stack([along, 1 - along, 0 * along], axis=2)
    p[y < 0.25 + 0.1 * rng.random()] = [0.02, 0.02, 0.96]
    return np.maximum(p, 1e-6).reshape(-1, 3)


def _tiny(size: int, rng: np.random.Generator) -> Floats:
    """Two halves and a disc of a few locations."""
    y, x = _places(size)
    labels = (x + 0.3 * y > rng.uniform(0.4, 0.8)).astype(np.int64)
    down, across = rng.uniform(0.2, 0.8, 2)
    labels[np.hypot(y - down, x - across) < 0.13] = 2
    return _soften(labels)


def _ring(size: int, rng: np.random.Generator) -> Floats:
    """A disc within a ring."""
    y, x = _places(size)
    distance = np.hypot(y - rng.uniform(0.4, 0.6), x - rng.uniform(0.4, 0.6))
    return _soften(np.digitize(-distance, [-0.4, -0.2]))


def _disconnected(size: int, rng: np.random.Generator) -> Floats:
    """Two halves, and a third segment in two opposite corners."""
    y, x = _places(size)
    labels = (x > 0.5).astype(np.int64)
    for low, high in ((0.1, 0.3), (0.7, 0.9)):
        down, across = rng.uniform(low, high, 2)
        labels[np.hypot(y - down, x - across) < 0.25] = 2
    return _soften(labels)


TRUTHS: Mapping[str, Callable[[int, np.random.Generator], Floats]] = {
    "sharp, one region ambiguous": _ambiguous,
    "gradient": _gradient,
    "tiny segment": _tiny,
    "ring": _ring,
    "disconnected": _disconnected,
}


def _shares(rows: list[dict[str, Any]], *names: str) -> list[str]:
    return [f"{100 * np.mean([row[name] for row in rows]):.0f} %" for name in names]


def _diagnostics(rows: list[dict[str, Any]]) -> list[str]:
    return [*_shares(rows, "agree"), f"{np.median([row['seconds'] for row in rows]):.2f}"]


def _uniformity(ranks: Floats) -> float:
    """Return the p-value of a χ² test that ranks between 0 and 1 are uniform."""
    from scipy.stats import chisquare

    return float(chisquare(np.histogram(ranks, np.linspace(0, 1, DECILES + 1))[0]).pvalue)


if __name__ == "__main__":
    main(*(int(count) for count in sys.argv[1:3] or (20, 5)))
