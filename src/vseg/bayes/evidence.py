"""Which scale s and which length ξ: those under which the answers are most probable, all maps considered.

Laplace's approximation: log evidence = -cost at the mode - ½ log det(I + JᵀWJ). The K! modes that differ in labels
alone are not counted: with their log K!, superfluous maps would pay. The search climbs over the prior's grid, in wide
steps first; each fit starts from the fields of the best so far. `grown` then adds all that is nearly as probable, over
which draws are spread. The cells of a round are independent, so threads do not change the result.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vseg.bayes.linear_algebra import products, upper
from vseg.bayes.mode import Mode, mode, weights_of
from vseg.bayes.model import Answers, Root, contrasts, curvature, maps_of, slopes_of
from vseg.bayes.priors import Place, Prior
from vseg.data.responses import Tally
from vseg.reconstruction.objective import objective
from vseg.reconstruction.solvers import coordinate_descent

ROUGHLY = 1e-5  # tolerance while searching
START_STRENGTH = 3.0  # λ of the paper's estimator that gives the first start
RANDOM_STARTS = 2
ROUNDS = 8
FEW = 1.5  # so many times fewer answers than directions
LIKELY = 2.0  # nats below the best, within which scales and lengths are carried along

Run = Callable[[Callable[[Place], "Cell"], Iterable[Place]], "list[Cell]"]


@dataclass(frozen=True, eq=False)
class Cell:
    """One scale, covariance and (γ₀, γ₁), the mode there, and its log evidence, the prior of the place included."""

    place: Place
    kind: str
    scale: float
    length: float
    root: Root
    mode: Mode
    evidence: float
    lapses: tuple[float, float] = (0.0, 0.0)

    @property
    def segments(self) -> int:
        """K."""
        return len(self.mode.u) + 1

    @property
    def fields(self) -> NDArray[np.float64]:
        """(K-1, n) contrasts of the log-odds at the mode."""
        return self.mode.u @ self.root.wide

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """(n, K) maps at the mode."""
        return maps_of(self.mode.u, self.root, contrasts(self.segments))


def search(
    answers: Answers,
    prior: Prior,
    first: Sequence[NDArray[np.float64]],
    *,
    known: Cell | None = None,
    threads: int = 1,
) -> list[Cell]:
    """The cells of the prior's grid that were looked at, the one with the highest evidence first.

    Parameters
    ----------
    first : fields (K-1, n) to start from in the first cell
    known : where to begin climbing, in small steps: the result of an earlier search
    """
    with ThreadPoolExecutor(threads) as pool:
        run: Run = lambda work, places: list(pool.map(work, places))  # noqa: E731
        middle = prior.start if known is None else known.place
        best = cell_at(answers, prior, middle, first, tolerance=ROUGHLY)
        seen = {middle: best}
        for stride in (2, 1) if known is None else (1,):
            for _ in range(ROUNDS):
                here = best.place
                best = _look(answers, prior, best, seen, prior.around(here, stride), run)
                if best.place == here:
                    break
    best = cell_at(answers, prior, best.place, [best.fields, first[0]])
    others = [cell for cell in seen.values() if cell.place != best.place]
    return [best, *sorted(others, key=lambda cell: -cell.evidence)]


def cell_at(
    answers: Answers,
    prior: Prior,
    place: Place,
    starts: Sequence[NDArray[np.float64]],
    *,
    tolerance: float | None = None,
) -> Cell:
    """The lowest mode from these fields (K-1, n) at one covariance and one scale, and its evidence."""
    kind, length, unit = prior.families[place.kind][place.length]
    scale = prior.scales[place.scale]
    root = unit.scaled(scale)
    begin = [weights_of(fields, root) for fields in starts]
    found = (
        mode(answers, root, begin) if tolerance is None else mode(answers, root, begin, tolerance=tolerance)
    )
    evidence = log_evidence(answers, root, found) + prior.belief(place)
    return Cell(place, kind, scale, length, root, found, evidence, (answers.gamma0, answers.gamma1))


def grown(answers: Answers, prior: Prior, cells: Sequence[Cell], *, threads: int = 1) -> list[Cell]:
    """These cells, the best first, and all around them that are likely, found from one to the next."""
    seen = {cell.place: cell for cell in cells}

    def fit(job: tuple[Place, Cell]) -> Cell:
        return cell_at(answers, prior, job[0], [job[1].fields], tolerance=ROUGHLY)

    with ThreadPoolExecutor(threads) as pool:
        for _ in range(ROUNDS):
            top = max(cell.evidence for cell in seen.values())
            origin: dict[Place, Cell] = {}
            for cell in [each for each in seen.values() if top - each.evidence <= LIKELY]:
                for place in prior.around(cell.place):
                    if place not in seen:
                        origin.setdefault(place, cell)
            if not origin:
                break
            seen.update(zip(origin, pool.map(fit, origin.items()), strict=True))
    best, *others = sorted(seen.values(), key=lambda cell: -cell.evidence)
    if best is not cells[0]:
        best = cell_at(answers, prior, best.place, [best.fields])
    return [best, *others]


def spread(cells: Sequence[Cell], count: int) -> list[Cell]:
    """So many cells, evenly spread over their posterior: what is not known about scale and length is carried along."""
    ordered = sorted(cells, key=lambda cell: (cell.lapses, cell.place))
    evidence = np.array([cell.evidence for cell in ordered])
    share = np.exp(evidence - evidence.max())
    upto = np.cumsum(share / share.sum())
    at = np.searchsorted(upto, (np.arange(count) + 0.5) / count)
    return [ordered[min(index, len(ordered) - 1)] for index in at]


def log_evidence(answers: Answers, root: Root, found: Mode) -> float:
    """Laplace's log probability of the answers under this prior, in nats."""
    mixing = contrasts(len(found.u) + 1)
    if FEW * len(answers.i) < found.u.size:
        # det(I + JᵀJ) = det(I + JJᵀ), among answers instead of directions.
        factor = upper(products(slopes_of(found.u, root, mixing, answers)))
    else:
        factor = upper(curvature(found.u, root, mixing, answers))
    return float(-found.value - np.log(np.diag(factor)).sum())


def first_fields(tally: Tally, segments: int, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Fields (K-1, n) to start from: those of the paper's estimator, which seldom lies in a bad minimum, and noise."""
    problem = objective(tally, segments, strength=START_STRENGTH)
    p = coordinate_descent(problem, seed=int(rng.integers(2**31)), tolerance=1e-3).probabilities
    noise = rng.standard_normal((RANDOM_STARTS, segments - 1, len(p)))
    return [fields_of(p), *noise]


def fields_of(p: NDArray[np.float64], floor: float = 0.01) -> NDArray[np.float64]:
    """(K-1, n) contrasts of log p, kept away from log 0."""
    return contrasts(p.shape[1]).T @ np.log(np.maximum(p, floor)).T


def _look(
    answers: Answers, prior: Prior, best: Cell, seen: dict[Place, Cell], places: Iterable[Place], run: Run
) -> Cell:
    """The best of the cells seen so far and of these, each fitted from the best one's fields."""
    fields = best.fields
    new = [place for place in places if place not in seen]
    found = run(lambda place: cell_at(answers, prior, place, [fields], tolerance=ROUGHLY), new)
    seen.update(zip(new, found, strict=True))
    return max(seen.values(), key=lambda cell: cell.evidence)
