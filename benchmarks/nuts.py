"""The posterior against NUTS, on a model written anew in numpyro: the same quantiles, and how much faster.

`python benchmarks/nuts.py` measures the CPU time of both at equal effective sample size (`make bench ARGS=nuts` also
writes docs/benchmarks.md). `python benchmarks/nuts.py store` runs NUTS on three fixed problems and writes
tests/bayes/nuts.json, with which tests/bayes/test_nuts.py compares `vseg.posterior`; `store basis` renews only what
depends on vseg's basis. `make .venv/.numpyro` installs numpyro.

NUTS samples standard normal weights and hyper-parameters in their plainest form, starting from draws of the prior.
The covariance of the fields is either exact, or that of the truncated basis in which vseg samples. Of vseg only this
basis and the diagnostics are used.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

import vseg
from posterior import gp
from tables import table, verdict
from vseg import Grid, designs, simulate, stimuli
from vseg.bayes.coarse_grid import interpolate
from vseg.bayes.covariance_roots import spatial_root
from vseg.bayes.diagnostics import assess_convergence, bulk_ess, rhat
from vseg.bayes.joint_sampling import JointStart, prepare_starts
from vseg.bayes.lapses import check_catch_counts
from vseg.bayes.model import count_answers
from vseg.bayes.posterior import as_seed_sequence, search_segments
from vseg.bayes.priors import WIDE_SCALES, make_prior
from vseg.bayes.spectra import LOG_LENGTHS, spatial_basis
from vseg.data.responses import Tally
from vseg.observers import LapsingObserver

STORED = Path(__file__).parent.parent / "tests" / "bayes" / "nuts.json"
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
CHAINS, SEED = 4, 0
LENGTHS = {
    "basis": (400, 2000),
    "exact": (200, 300),
}  # warm-up and draws of each chain, for the stored quantiles
SIZES = ((11, 3, 363), (16, 8, 1024), (64, 3, 2048))  # N, K and trials of the timed problems
TARGETS = (0.3, 1.0, 2.0)  # CPU seconds
TIMED_WARM_UP, TIMED_DRAWS = 300, 300  # of each chain of NUTS
MAX_SECONDS = 300.0  # CPU time after which NUTS is stopped
REPEATS = 9
HYPERPARAMETERS = ("log_scale", "log_length", "logit_share", "logit_floor")
NOISE = ("lapses", "logit_bias")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Answers of one observer, the number of segments, and catch trials (right, asked)."""

    tally: Tally
    segments: int
    catch: tuple[int, int] | None = None

    @property
    def locations(self) -> int:
        return len(self.tally.layout)


def main(quick: bool = False) -> str:
    """Measure the CPU time of vseg until its chains agree, and that of NUTS for as many effective draws."""
    try:
        import numpyro  # noqa: F401
    except ImportError:
        sys.exit("This needs numpyro; install it with: make .venv/.numpyro")
    rows, missed, repeats = [], [], 3 if quick else REPEATS
    for (size, K, trials), target in list(zip(SIZES, TARGETS, strict=True))[: 1 if quick else None]:
        truth = gp(size, K, "moderate", 0)
        pairs = designs.covering(truth.layout, segments=K, trials=trials, seed=0)
        problem = Problem(simulate(truth, pairs, seed=0).tally(), K)
        seconds, ess, worst = _time_vseg(problem, repeats)
        nuts = run_nuts(
            problem, own_basis(problem), _random_pairs(problem.locations, 20),
            warm_up=TIMED_WARM_UP, draws=TIMED_DRAWS, seconds=20.0 if quick else MAX_SECONDS,
        )  # fmt: skip
        watched = [values for name, values in nuts.quantities.items() if name.startswith(("mean", "P(same)"))]
        found = assess_convergence([nuts.log_posterior, *watched])
        per_draw = nuts.seconds / found.ess
        total = nuts.warm_up_seconds + per_draw * ess
        # Draws that are stuck, or too few, look like more effective draws than they are.
        bound = "" if nuts.finished and found.is_good else "at least "
        if not np.isfinite(total):
            total, bound = nuts.warm_up_seconds + nuts.seconds, "at least "
        rows.append([
            f"{size}×{size}", str(K), str(trials), f"{seconds:.2f} s ({target:g} s)", f"{ess:.0f}", f"{worst:.2f}",
            str(nuts.log_posterior.size), f"{nuts.warm_up_seconds:.1f} s", f"{1000 * per_draw:.0f} ms",
            f"{found.rhat:.2f}", f"{bound}{total:.0f} s", f"{bound}**{total / seconds:.0f}**",
        ])  # fmt: skip
        if seconds > target:
            missed.append(f"{size}×{size} takes {seconds:.2f} s, target {target:g} s")
    columns = [
        "grid", "K", "trials", "vseg (target)", "ESS", "R-hat", "draws by NUTS", "warm-up", "per effective draw",
        "R-hat of NUTS", "NUTS for the same ESS", "ratio",
    ]  # fmt: skip
    note = (
        f"CPU time of one thread without compilation. vseg: median of {repeats} calls of `vseg.posterior` until R-hat "
        "≤ 1.05 and both ESS ≥ 100, with the search for the mode, and nothing cached, as in a new process; the "
        "smallest ESS and the largest R-hat, median and maximum over calls. NUTS: numpyro's, four chains with "
        f"{TIMED_WARM_UP} draws of warm-up each from draws of the prior, standard normal weights, in vseg's basis, "
        f"stopped after {MAX_SECONDS:.0f} s. ESS and R-hat are those of the mean entropy, the log posterior and "
        f"P(same) of 20 pairs, by the same functions for both. `make bench ARGS=nuts`. {verdict(missed)}"
    )
    return table("The posterior: CPU time against NUTS", columns, rows, note)


def _time_vseg(problem: Problem, repeats: int) -> tuple[float, float, float]:
    """Return the median CPU seconds and effective sample size of a call, and the largest R-hat."""
    found = []
    for seed in range(repeats + 1):  # the first loads the compiled code
        spatial_root.cache_clear()
        spatial_basis.cache_clear()
        began = time.process_time()
        result = vseg.posterior(problem.tally, segments=problem.segments, seed=seed, threads=1, warn=False)
        seconds = time.process_time() - began
        found.append((seconds, result.diagnostics.ess, result.diagnostics.rhat))
    seconds, ess, worst = np.transpose(found[1:])
    return float(np.median(seconds)), float(np.median(ess)), float(np.max(worst))


def fixed_problems() -> dict[str, Problem]:
    """Return the problems whose quantiles are stored."""
    moderate = stimuli.random_maps(Grid(8), segments=3, entropy=0.45, seed=11)
    lapsing = stimuli.random_maps(Grid(8), segments=3, entropy=0.3, seed=12)
    certain = stimuli.random_maps(Grid(8), segments=2, entropy=0.08, seed=13)
    return {
        "moderate uncertainty": Problem(_answer(moderate, 2, 5), 3),
        "lapses estimated": Problem(_answer(lapsing, 2, 6, LapsingObserver(0.08, 0.6)), 3, (38, 40)),
        "near-certain": Problem(_answer(certain, 5, 7), 2),
    }


def _answer(truth: vseg.Maps, blocks: int, seed: int, observer: Any = None) -> Tally:
    pairs = [designs.covering(truth.layout, segments=truth.segments, seed=block) for block in range(blocks)]
    options = {} if observer is None else {"observer": observer}
    return simulate(truth, pairs, seed=seed, **options).tally()


class ExactCovariance:
    """Fields with the covariance (1-ρ) exp(-d²/2ξ²) + ρ exp(-d²/2(ξ/2.5)²) between locations of a grid."""

    def __init__(self, size: int):
        places = np.stack(np.mgrid[:size, :size], axis=-1).reshape(-1, 2) / size
        self.squared = np.sum((places[:, None] - places) ** 2, axis=2)
        self.weights = size * size

    def root(self, log_length: Any, share: Any) -> Any:
        """Return R (n, m) such that RRᵀ is the covariance."""
        import jax.numpy as jnp

        length = jnp.exp(log_length)
        long, short = (jnp.exp(-self.squared / (2 * each**2)) for each in (length, length / 2.5))
        return jnp.linalg.cholesky((1 - share) * long + share * short + 1e-6 * np.eye(self.weights))

    asked = shown = root


class OwnBasis:
    """Fields in the basis in which vseg samples: functions φ_j with variances that depend on length and share."""

    def __init__(self, start: JointStart):
        model, everywhere = start.model, start.shown
        self.first, self.second, self.weights = model.first, model.second, len(model.wide)
        self.at_asked, self.at_shown = (
            each.tall if each.interpolation.size == 0 else interpolate(each.wide, each.interpolation).T
            for each in (model, everywhere)
        )
        self.i, self.j = model.i, model.j

    def _deviations(self, log_length: Any, share: Any) -> Any:
        """Return the standard deviation (m,) of each function, by cubic interpolation between the table's lengths."""
        import jax.numpy as jnp

        rows = len(LOG_LENGTHS)
        at = jnp.clip((log_length - LOG_LENGTHS[0]) / (LOG_LENGTHS[1] - LOG_LENGTHS[0]), 1.0, rows - 2.0)
        row = jnp.clip(jnp.floor(at).astype(int), 1, rows - 3)
        t = at - row
        cubic = jnp.array([
            -0.5 * t + t**2 - 0.5 * t**3,
            1 - 2.5 * t**2 + 1.5 * t**3,
            0.5 * t + 2 * t**2 - 1.5 * t**3,
            -0.5 * t**2 + 0.5 * t**3,
        ])  # fmt: skip
        long, short = (
            jnp.exp(cubic @ jnp.asarray(each)[row + np.arange(-1, 3)]) for each in (self.first, self.second)
        )
        return jnp.sqrt((1 - share) * long + share * short)

    def asked(self, log_length: Any, share: Any) -> Any:
        return self.at_asked * self._deviations(log_length, share)

    def shown(self, log_length: Any, share: Any) -> Any:
        return self.at_shown * self._deviations(log_length, share)


def own_basis(problem: Problem) -> OwnBasis:
    """Return the basis in which vseg samples this problem."""
    tally, lapses = problem.tally, "estimate" if problem.catch else None
    prior = make_prior("spatial", tally.layout, scales=WIDE_SCALES, coarse=True)
    _, answers, best = search_segments(
        tally, prior, [problem.segments], lapses, problem.catch, seeds=as_seed_sequence(SEED)
    )
    is_coarse = prior.layout != tally.layout
    if is_coarse:
        answers = count_answers(tally)
    starts = prepare_starts(
        answers, best, prior, estimate_lapses=bool(problem.catch), catch=check_catch_counts(problem.catch),
        layout=tally.layout if is_coarse else None,
    )  # fmt: skip
    return OwnBasis(starts[0])


def _maps(values: Any, root: Callable[[Any, Any], Any], segments: int) -> Any:
    """Return the maps (n, K) for named weights and hyper-parameters."""
    import jax
    import jax.numpy as jnp

    share = 0.3 * jax.nn.sigmoid(values["logit_share"])
    fields = jnp.exp(values["log_scale"]) * root(values["log_length"], share) @ values["weights"]
    floor = jax.nn.sigmoid(values["logit_floor"])
    return (1 - floor) * jax.nn.softmax(fields @ helmert(segments), axis=1) + floor / segments


def _make_model(problem: Problem, fields: ExactCovariance | OwnBasis) -> Callable[[], None]:
    """Return the model for numpyro; all priors are written out here."""
    import jax
    import jax.numpy as jnp
    import numpyro
    from numpyro.distributions import Beta, Normal

    tally, K = problem.tally, problem.segments
    same, trials = np.asarray(tally.k, float), np.asarray(tally.n, float)
    i, j = (fields.i, fields.j) if isinstance(fields, OwnBasis) else (tally.pairs.i, tally.pairs.j)

    def model() -> None:
        values = {
            "log_scale": numpyro.sample("log_scale", Normal(np.log(6.0), 1.7)),
            "log_length": numpyro.sample("log_length", Normal(np.log(1 / 4.8), 0.6)),
            "logit_share": numpyro.sample("logit_share", Normal(-1.0, 1.5)),
            "logit_floor": numpyro.sample("logit_floor", Normal(-7.0, 2.0)),
            "weights": numpyro.sample("weights", Normal(0, 1).expand((fields.weights, K - 1)).to_event(2)),
        }
        p = _maps(values, fields.asked, K)
        q = jnp.sum(p[i] * p[j], axis=1)
        if problem.catch:
            right, asked = problem.catch
            lapses = numpyro.sample("lapses", Beta(1.0, 20.0))
            bias = jax.nn.sigmoid(numpyro.sample("logit_bias", Normal(0.0, 1.0)))
            q = lapses * bias + (1 - lapses) * q
            numpyro.factor("catch", right * jnp.log1p(-lapses / 2) + (asked - right) * jnp.log(lapses / 2))
        q = jnp.clip(q, 1e-9, 1 - 1e-9)
        numpyro.factor("answers", jnp.sum(same * jnp.log(q) + (trials - same) * jnp.log1p(-q)))

    return model


@dataclass(frozen=True)
class Sampled:
    """Draws by NUTS: quantities that do not depend on labels, (chains, draws) each, and what they cost."""

    quantities: dict[str, Floats]
    log_posterior: Floats
    warm_up_seconds: float
    seconds: float
    steps: float
    divergences: int
    finished: bool


def run_nuts(
    problem: Problem,
    fields: ExactCovariance | OwnBasis,
    pairs: NDArray[np.int64],
    *,
    warm_up: int,
    draws: int,
    seconds: float = np.inf,
) -> Sampled:
    """Sample by NUTS, chain after chain; with `seconds` of CPU time spent, chains are shorter.

    Compilation is not part of the time. Each chain starts from a draw of the prior.
    """
    import jax
    from numpyro.infer import NUTS, init_to_sample

    jax.config.update("jax_enable_x64", True)
    hyper = HYPERPARAMETERS + (NOISE if problem.catch else ())
    kernel = NUTS(_make_model(problem, fields), init_strategy=init_to_sample(), dense_mass=[hyper])
    keys = jax.random.split(jax.random.PRNGKey(SEED), CHAINS)
    states = [kernel.init(key, warm_up, None, (), {}) for key in keys]
    step = jax.jit(lambda state: kernel.sample(state, (), {})).lower(states[0]).compile()
    spent = {True: 0.0, False: 0.0}
    steps, divergences = 0, 0
    kept: list[list[Any]] = []
    for chain, state in enumerate(states):
        kept.append([])
        for count in range(warm_up + draws):
            began = time.process_time()
            state = jax.block_until_ready(step(state))
            spent[count < warm_up] += time.process_time() - began
            if count >= warm_up:
                kept[-1].append((state.z, state.potential_energy))
                steps, divergences = steps + int(state.num_steps), divergences + int(state.diverging)
            if sum(spent.values()) > seconds * (chain + 1) / CHAINS:
                break
    length = min(len(chain) for chain in kept)
    finished = length == draws
    if length == 0:
        return Sampled({}, np.empty((CHAINS, 0)), spent[True], spent[False], np.nan, 0, finished)
    flat = [point for chain in kept for point in chain[:length]]
    z = {name: np.array([point[name] for point, _ in flat]) for name in flat[0][0]}
    summarise = partial(_summarise, fields=fields, segments=problem.segments, pairs=pairs)
    entropy, same = (np.asarray(each) for each in jax.lax.map(jax.jit(summarise), z))
    quantities = {"mean entropy": entropy}
    quantities |= {f"P(same) {i} {j}": same[:, t] for t, (i, j) in enumerate(pairs.T)}
    quantities |= {"log scale": z["log_scale"], "log length": z["log_length"]}
    quantities |= {"share": 0.3 * _logistic(z["logit_share"]), "floor": _logistic(z["logit_floor"])}
    if problem.catch:
        quantities |= {"lapses": _logistic(z["lapses"]), "bias": _logistic(z["logit_bias"])}
    by_chain = {name: values.reshape(CHAINS, length) for name, values in quantities.items()}
    log_posterior = -np.array([energy for _, energy in flat]).reshape(CHAINS, length)
    all_draws = sum(len(chain) for chain in kept)
    seconds_kept = spent[False] * CHAINS * length / all_draws
    return Sampled(
        by_chain, log_posterior, spent[True], seconds_kept, steps / all_draws, divergences, finished
    )


def _summarise(
    values: Any, fields: ExactCovariance | OwnBasis, segments: int, pairs: NDArray[np.int64]
) -> tuple[Any, Any]:
    """Return the mean entropy of the maps, and P(same) of these pairs."""
    import jax.numpy as jnp

    p = _maps(values, fields.shown, segments)
    entropy = -jnp.sum(p * jnp.log(jnp.maximum(p, 1e-300)), axis=1).mean()
    return entropy, jnp.sum(p[pairs[0]] * p[pairs[1]], axis=1)


def _logistic(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


def _random_pairs(locations: int, count: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(1)
    i = rng.integers(0, locations, count)
    return np.stack([i, (i + rng.integers(1, locations, count)) % locations])


def store(kinds: Sequence[str]) -> None:
    """Run NUTS on the fixed problems with fields of these kinds, and write the quantiles; other kinds are kept."""
    kept = json.loads(STORED.read_text(encoding="utf-8"))["problems"] if STORED.is_file() else {}
    problems = {}
    for name, problem in fixed_problems().items():
        tally, pairs = problem.tally, _random_pairs(problem.locations, 10)
        row: dict[str, Any] = {
            "grid": tally.layout.size, "segments": problem.segments, "catch": problem.catch and list(problem.catch),
            "i": tally.pairs.i.tolist(), "j": tally.pairs.j.tolist(),
            "same": tally.k.astype(int).tolist(), "trials": tally.n.astype(int).tolist(), "pairs": pairs.tolist(),
        }  # fmt: skip
        for kind, (warm_up, draws) in LENGTHS.items():
            if kind in kinds:
                fields = own_basis(problem) if kind == "basis" else ExactCovariance(tally.layout.size)
                sampled = run_nuts(problem, fields, pairs, warm_up=warm_up, draws=draws)
                row[kind] = {
                    "origin": _origin(warm_up, draws),
                    "functions": fields.weights,
                    "cpu_seconds": round(sampled.warm_up_seconds + sampled.seconds, 1),
                    "steps_per_draw": round(sampled.steps, 1),
                    "divergences": sampled.divergences,
                    "quantities": {key: _describe(values) for key, values in sampled.quantities.items()},
                }
                found = row[kind]["quantities"].values()
                worst, least = max(each["rhat"] for each in found), min(min(each["ess"]) for each in found)
                seconds = row[kind]["cpu_seconds"]
                print(f"{name}, {kind}: R-hat {worst:.3f}, ESS {least:.0f}, {seconds} s", flush=True)
            elif all(kept.get(name, {}).get(key) == value for key, value in list(row.items())[:8]):
                row[kind] = kept[name][kind]
            else:
                sys.exit(f"The problem '{name}' has changed; run both kinds: {', '.join(LENGTHS)}.")
        problems[name] = row
    text = json.dumps({"levels": LEVELS, "problems": problems}, indent=1)
    one_line = re.sub(r"\[[-\d.,e\s]+\]", lambda found: re.sub(r"\s+", " ", found[0]), text)
    STORED.write_text(one_line + "\n", encoding="utf-8")
    print(f"Written to {STORED}")


def _origin(warm_up: int, draws: int) -> dict[str, Any]:
    return {
        "script": "benchmarks/nuts.py",
        "sampler": "numpyro's NUTS, target acceptance 0.8, dense mass matrix of the hyper-parameters, float64",
        "starts": "draws of the prior",
        "date": time.strftime("%Y-%m-%d"),
        "versions": {package: version(package) for package in ("numpyro", "jax", "jaxlib", "numpy")},
        "seed": SEED, "chains": CHAINS, "warm_up": warm_up, "draws": draws,
    }  # fmt: skip


def _describe(values: Floats) -> dict[str, Any]:
    """Return the quantiles of (chains, draws), the effective sample size of each, and R-hat."""
    quantiles = np.quantile(values, LEVELS)
    return {
        "quantiles": [float(f"{each:.5g}") for each in quantiles],
        "ess": [round(bulk_ess((values <= each).astype(float))) for each in quantiles],
        "rhat": round(rhat(values), 4),
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["store"]:
        store(sys.argv[2:] or list(LENGTHS))
    else:
        main(quick="--quick" in sys.argv)
