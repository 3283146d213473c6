"""The joint model of maps and hyper-parameters, compiled: cost, gradient and mass matrix.

A position x = (w, θ) holds weights w, (K-1)·m, and six hyper-parameters

    θ = (log s, log ξ, and the logits of the share ρ, the lapses γ, the bias β, and the floor ε)

The maps are p = (1-ε) softmax(f) + ε/K and P('same') = γβ + (1-γ)⟨p_i, p_j⟩. A floor, uncertainty that is the same
everywhere, has the effect of lapses on all answers but those to catch trials: only these, and the priors, tell one from
the other, so the entropy is as uncertain as the lapses are.

The fields are h_c = Σ_j σ_j(θ) u_cj φ_j with σ_j = s √v_j(ξ, ρ), see `spectra`. Answers determine σ_j u_j along some
functions and say little along others; w_j = u_j (σ_j(θ)/σ_j(θ₀))^a_j is between the two, with a_j the share of the
prior variance that the answers remove. So w depends little on θ, which chains need to move freely.

    cost = -Σ log P(answers | maps, γ, β) - log P(catch trials | γ) - log prior(θ) + ½|u|² + Σ_cj a_j log(σ_j/σ_j(θ₀))

Hyper-parameters that are fixed or unused keep their place in θ, with a standard normal prior and no effect.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vseg._support.numba_cache import compiled
from vseg.bayes.coarse_grid import (
    NO_INTERPOLATION,
    Interpolation,
    exponentials,
    interpolate,
    interpolate_back,
    softmax_columns,
)
from vseg.bayes.linear_algebra import multiply
from vseg.bayes.model import MIN_PROBABILITY

HYPERPARAMETERS = 6
MAX_LOGIT = 40.0  # of the lapses
MAX_SPREADS = 10.0  # between a hyper-parameter and the prior's centre; further out a trajectory has diverged
FIXED_WEIGHTS_EVERY = 4  # of so many Metropolis steps one holds the weights fixed, the others the fields
SCALE, LENGTH, SHARE, LAPSES, BIAS, FLOOR = range(HYPERPARAMETERS)

Floats = NDArray[np.float64]


class HyperPrior(NamedTuple):
    """Priors of the hyper-parameters: each θ is normal, γ is Beta(1, β); and which of them are free.

    Attributes
    ----------
    centre, spread : (6,)
        Of θ; those of the lapses are not used.
    is_free : (6,)
        Fixed hyper-parameters are those of `value`.
    value : (6,)
        θ of the fixed hyper-parameters; for lapses, bias and floor γ, β and ε themselves.
    max_share : float
        ρ is `max_share` times the logistic function of θ.
    lapse_beta : float
        β of the Beta(1, β) prior of γ.
    catch_right, catch_wrong : float
        Catch trials answered right and wrong; half of the lapses are errors.
    """

    centre: Floats
    spread: Floats
    is_free: NDArray[np.bool_]
    value: Floats
    max_share: float
    lapse_beta: float
    catch_right: float
    catch_wrong: float


class JointModel(NamedTuple):
    """Everything the cost depends on, as flat arrays.

    Attributes
    ----------
    wide, tall, first, second
        The basis and the logarithms of its variances, see `spectra.SpectralBasis`.
    log_length, log_step : float
        The first of the table's log lengths, and the distance of two.
    contrasts : (K, K-1)
    i, j, same, trials : (T,)
        The answers to each pair.
    centring, reference : (m,)
        a_j, and log σ_j(θ₀).
    prior : HyperPrior
    interpolation : Interpolation
        From the coarse grid, for which the basis holds coefficients of splines, to the locations of the maps; or none,
        if the basis is given at these locations.
    """

    wide: Floats
    tall: Floats
    first: Floats
    second: Floats
    log_length: float
    log_step: float
    contrasts: Floats
    i: NDArray[np.uint32]
    j: NDArray[np.uint32]
    same: Floats
    trials: Floats
    centring: Floats
    reference: Floats
    prior: HyperPrior
    interpolation: Interpolation = NO_INTERPOLATION

    @property
    def locations(self) -> int:
        """The number of locations of the maps."""
        return len(self.interpolation.row) or self.wide.shape[1]


@compiled
def logistic(x):
    """Return 1/(1 + exp(-x))."""
    return 1.0 / (1.0 + np.exp(-x))


@compiled
def interpolate_table(table, row, part, j):
    """Return the cubic interpolation of column j between two rows of a table, and its slope per row."""
    before = table[row - 1, j]
    here = table[row, j]
    following = table[row + 1, j]
    after = table[row + 2, j]
    a = 0.5 * (following - before)
    b = before - 2.5 * here + 2.0 * following - 0.5 * after
    c = 0.5 * (after - before) + 1.5 * (here - following)
    return here + part * (a + part * (b + part * c)), a + part * (2.0 * b + 3.0 * part * c)


@compiled
def spectrum(theta, model):
    """Return log σ_j (m,), and its derivatives (2, m) by log ξ and by the logit of the share."""
    prior = model.prior
    log_scale = theta[0] if prior.is_free[0] else prior.value[0]
    length = theta[1] if prior.is_free[1] else prior.value[1]
    logit = theta[2] if prior.is_free[2] else prior.value[2]
    rows, m = model.first.shape
    at = (length - model.log_length) / model.log_step
    inside = 1.0 <= at <= rows - 2.0
    at = min(max(at, 1.0), rows - 2.0)
    row = min(int(at), rows - 3)
    part = at - row
    slope = 1.0 / model.log_step if inside else 0.0
    share = prior.max_share * logistic(logit)
    change = share * (1.0 - logistic(logit))
    log_sd = np.empty(m)
    slopes = np.empty((2, m))
    variances = np.empty((2, m))
    by_length = np.empty((2, m))
    for j in range(m):
        variances[0, j], by_length[0, j] = interpolate_table(model.first, row, part, j)
        variances[1, j], by_length[1, j] = interpolate_table(model.second, row, part, j)
    exponentials(variances[0])
    exponentials(variances[1])
    for j in range(m):
        first = (1.0 - share) * variances[0, j]
        second = share * variances[1, j]
        half = 0.5 / (first + second)
        slopes[0, j] = half * slope * (first * by_length[0, j] + second * by_length[1, j])
        slopes[1, j] = half * change * (variances[1, j] - variances[0, j])
        log_sd[j] = first + second
    for j in range(m):
        log_sd[j] = log_scale + 0.5 * np.log(log_sd[j])
    return log_sd, slopes


@compiled
def noise_rates(theta, prior):
    """Return γ, β and ε."""
    lapses = logistic(theta[3]) if prior.is_free[3] else prior.value[3]
    bias = logistic(theta[4]) if prior.is_free[4] else prior.value[4]
    floor = logistic(theta[5]) if prior.is_free[5] else prior.value[5]
    return lapses, bias, floor


@compiled
def answer_line(lapses, bias, floor, K):
    """Return the intercept and the slope of P('same') as a function of the overlap of softmax(f) at two locations."""
    keep = (1.0 - floor) * (1.0 - floor)
    return lapses * bias + (1.0 - lapses) * (1.0 - keep) / K, (1.0 - lapses) * keep


@compiled
def weight_factors(log_sd, model):
    """Return u/w and σ (m,) for these log σ."""
    factor = -model.centring * (log_sd - model.reference)
    sd = log_sd.copy()
    exponentials(factor)
    exponentials(sd)
    return factor, sd


@compiled
def compute_weights_and_maps(x, model, log_sd):
    """Return the weights u (K-1, m) and softmax(f) (n, K) at a position."""
    factor, sd = weight_factors(log_sd, model)
    return weigh_and_map(x, model, factor, sd)


@compiled
def weigh_and_map(x, model, factor, sd):
    """Return the weights u (K-1, m) and softmax(f) (n, K) at a position, for its `weight_factors`."""
    C = model.contrasts.shape[1]
    m = model.wide.shape[0]
    u = np.empty((C, m))
    y = np.empty((C, m))
    for c in range(C):
        for j in range(m):
            u[c, j] = x[c * m + j] * factor[j]
            y[c, j] = u[c, j] * sd[j]
    return u, compute_maps_from_functions(y, model)


@compiled
def compute_maps_from_functions(y, model):
    """Return softmax(f) (n, K) for the weighted functions y = σu, (K-1, m)."""
    fields = multiply(y, model.wide)
    if model.interpolation.size > 0:
        fields = interpolate(fields, model.interpolation)
    return softmax_columns(fields, model.contrasts)


@compiled
def joint_cost(x, model, with_cost=True):
    """Return the cost at a position and its gradient; the cost is infinite beyond MAX_SPREADS and MAX_LOGIT.

    If `with_cost` is false the cost is returned as 0 where it is finite, which saves the logarithms.
    """
    C = model.contrasts.shape[1]
    K = C + 1
    m = model.wide.shape[0]
    d = C * m
    theta = x[d:]
    prior = model.prior
    for k in range(HYPERPARAMETERS):
        limit = MAX_SPREADS * prior.spread[k] if k != LAPSES else MAX_LOGIT
        if prior.is_free[k] and not abs(theta[k] - prior.centre[k]) < limit:
            return np.inf, np.zeros(x.shape[0])
    log_sd, slopes = spectrum(theta, model)
    factor, sd = weight_factors(log_sd, model)
    u, p = weigh_and_map(x, model, factor, sd)
    n = p.shape[0]
    lapses, bias, floor = noise_rates(theta, prior)
    low, span = answer_line(lapses, bias, floor, K)
    low += MIN_PROBABILITY
    span -= 2.0 * MIN_PROBABILITY
    keep = (1.0 - floor) * (1.0 - floor)
    value = 0.0
    by_low = 0.0
    by_span = 0.0
    g = np.zeros((n, K))
    for t in range(model.i.shape[0]):
        i = model.i[t]
        j = model.j[t]
        overlap = 0.0
        for k in range(K):
            overlap += p[i, k] * p[j, k]
        q = min(low + span * overlap, 1.0 - MIN_PROBABILITY)
        same = model.same[t]
        other = model.trials[t] - same
        if with_cost:
            if same > 0.0:
                value -= same * np.log(q)
            if other > 0.0:
                value -= other * np.log(1.0 - q)
        pull = other / (1.0 - q) - same / q
        by_low += pull
        by_span += pull * overlap
        pull *= span
        for k in range(K):
            g[i, k] += pull * p[j, k]
            g[j, k] += pull * p[i, k]
    gradient = np.zeros(x.shape[0])
    by_field = np.empty((K, n))
    for i in range(n):
        mean = 0.0
        for k in range(K):
            mean += g[i, k] * p[i, k]
        for k in range(K):
            by_field[k, i] = p[i, k] * (g[i, k] - mean)
    along = multiply(model.contrasts.T, by_field)
    if model.interpolation.size > 0:
        along = interpolate_back(along, model.interpolation)
    projected = multiply(along, model.tall)
    for c in range(C):
        for j in range(m):
            a = model.centring[j]
            value += 0.5 * u[c, j] * u[c, j] + a * (log_sd[j] - model.reference[j])
            by_answers = sd[j] * projected[c, j]
            by_weight = by_answers + u[c, j]
            gradient[c * m + j] = by_weight * factor[j]
            by_log_sd = u[c, j] * (by_answers - a * by_weight) + a
            gradient[d] += by_log_sd
            gradient[d + 1] += by_log_sd * slopes[0, j]
            gradient[d + 2] += by_log_sd * slopes[1, j]
    value += hyper_cost(theta, model)
    if prior.is_free[3]:
        by_lapses = by_low * (bias - (1.0 - keep) / K) - by_span * keep
        by_lapses += prior.lapse_beta / (1.0 - lapses) - 1.0 / lapses
        by_lapses += prior.catch_right / (2.0 - lapses) - prior.catch_wrong / lapses
        gradient[d + 3] = by_lapses * lapses * (1.0 - lapses)
    if prior.is_free[4]:
        gradient[d + 4] = by_low * lapses * bias * (1.0 - bias)
    if prior.is_free[5]:
        by_keep = (1.0 - lapses) * (by_span - by_low / K)
        gradient[d + 5] = -2.0 * by_keep * (1.0 - floor) * floor * (1.0 - floor)
    for k in range(HYPERPARAMETERS):
        if not prior.is_free[k]:
            gradient[d + k] = theta[k]
            value += 0.5 * theta[k] * theta[k]
        elif k != LAPSES:
            gradient[d + k] += (theta[k] - prior.centre[k]) / prior.spread[k] ** 2
    return value if with_cost else 0.0, gradient


@compiled
def compute_overlaps(y, model):
    """Return the overlap of softmax(f) at the two locations of each pair (T,), for the weighted functions y = σu."""
    p = compute_maps_from_functions(y, model)
    overlaps = np.zeros(model.i.shape[0])
    for t in range(model.i.shape[0]):
        i = model.i[t]
        j = model.j[t]
        for k in range(p.shape[1]):
            overlaps[t] += p[i, k] * p[j, k]
    return overlaps


@compiled
def answers_cost(overlaps, theta, model):
    """Return -Σ log P(answers) at these overlaps (T,)."""
    lapses, bias, floor = noise_rates(theta, model.prior)
    low, span = answer_line(lapses, bias, floor, model.contrasts.shape[0])
    low += MIN_PROBABILITY
    span -= 2.0 * MIN_PROBABILITY
    value = 0.0
    for t in range(overlaps.shape[0]):
        q = min(low + span * overlaps[t], 1.0 - MIN_PROBABILITY)
        same = model.same[t]
        other = model.trials[t] - same
        if same > 0.0:
            value -= same * np.log(q)
        if other > 0.0:
            value -= other * np.log(1.0 - q)
    return value


@compiled
def centring_cost(x, model):
    """Return the part of the cost that depends on the choice of w as coordinates, Σ_cj a_j log(σ_j/σ_j(θ₀))."""
    C = model.contrasts.shape[1]
    m = model.wide.shape[0]
    log_sd, _ = spectrum(x[C * m :], model)
    value = 0.0
    for j in range(m):
        value += C * model.centring[j] * (log_sd[j] - model.reference[j])
    return value


@compiled
def hyper_cost(theta, model):
    """Return -log prior of the free hyper-parameters, with the catch trials."""
    prior = model.prior
    value = 0.0
    for k in range(HYPERPARAMETERS):
        if prior.is_free[k] and k != LAPSES:
            value += 0.5 * ((theta[k] - prior.centre[k]) / prior.spread[k]) ** 2
    if prior.is_free[3]:
        lapses = logistic(theta[3])
        value -= np.log(lapses) + prior.lapse_beta * np.log1p(-lapses)
        value -= prior.catch_right * np.log1p(-lapses / 2.0) + prior.catch_wrong * np.log(lapses / 2.0)
    return value


@compiled
def fields_cost(squares, log_sd, C):
    """Return -log density of y = σu up to a constant, for the sums of y² over the K-1 fields, (m,)."""
    precision = -2.0 * log_sd
    exponentials(precision)
    value = 0.0
    for j in range(squares.shape[0]):
        value += C * log_sd[j] + 0.5 * squares[j] * precision[j]
    return value


@compiled
def update_hyperparameters(x, model, normal, uniform, noise_normal, noise_uniform):
    """Return a position with the hyper-parameters moved by Metropolis steps.

    Steps of scale, length and share either hold the fields fixed, so that the maps stay and the prior alone decides;
    they move far where answers say much. Or they hold the weights u fixed, so that the fields are rescaled and the
    answers decide; they move far where answers say little. `normal` (S,) and `uniform` (S, 3) decide about S steps of
    random size. Then follow the steps of `update_noise`.
    """
    C = model.contrasts.shape[1]
    m = model.wide.shape[0]
    d = C * m
    theta = x[d:].copy()
    log_sd, _ = spectrum(theta, model)
    y = np.empty((C, m))
    squares = np.zeros(m)
    for j in range(m):
        a = model.centring[j]
        factor = np.exp(a * model.reference[j] + (1.0 - a) * log_sd[j])
        for c in range(C):
            y[c, j] = x[c * m + j] * factor
            squares[j] += y[c, j] * y[c, j]
    overlaps = compute_overlaps(y, model)
    answers = answers_cost(overlaps, theta, model)
    hyper = hyper_cost(theta, model)
    fields = fields_cost(squares, log_sd, C)
    for s in range(normal.shape[0]):
        k = min(int(3.0 * uniform[s, 0]), 2)
        if not model.prior.is_free[k]:
            continue
        size = model.prior.spread[k] * np.exp(-4.0 * uniform[s, 1])
        proposed = theta.copy()
        proposed[k] += size * normal[s]
        new_log_sd, _ = spectrum(proposed, model)
        new_hyper = hyper_cost(proposed, model)
        if s % FIXED_WEIGHTS_EVERY:
            new_fields = fields_cost(squares, new_log_sd, C)
            if np.log(uniform[s, 2]) < hyper + fields - new_hyper - new_fields:
                theta, log_sd, hyper, fields = proposed, new_log_sd, new_hyper, new_fields
        else:
            rescaled = np.empty((C, m))
            for j in range(m):
                factor = np.exp(new_log_sd[j] - log_sd[j])
                for c in range(C):
                    rescaled[c, j] = y[c, j] * factor
            new_overlaps = compute_overlaps(rescaled, model)
            new_answers = answers_cost(new_overlaps, proposed, model)
            if np.log(uniform[s, 2]) < hyper + answers - new_hyper - new_answers:
                for j in range(m):
                    squares[j] *= np.exp(2.0 * (new_log_sd[j] - log_sd[j]))
                theta, log_sd, hyper = proposed, new_log_sd, new_hyper
                y, overlaps, answers = rescaled, new_overlaps, new_answers
                fields = fields_cost(squares, log_sd, C)
    update_noise(theta, overlaps, answers, model, noise_normal, noise_uniform)
    moved = x.copy()
    for j in range(m):
        a = model.centring[j]
        factor = np.exp(-a * model.reference[j] - (1.0 - a) * log_sd[j])
        for c in range(C):
            moved[c * m + j] = y[c, j] * factor
    moved[d:] = theta
    return moved


@compiled
def update_noise(theta, overlaps, answers, model, normal, uniform):
    """Move lapses, bias and floor in `theta` by Metropolis steps at these overlaps, with `answers` their cost now.

    `normal` (S, 3) and `uniform` (S, 3) decide about S steps of random size: of one of the three, of all, or of the
    floor with lapses such that the slope of P('same') stays, (1-γ)(1-ε)². If lapses are
    known, only the floor moves, in a third of the steps.
    """
    prior = model.prior
    hyper = hyper_cost(theta, model)
    proposed = theta.copy()
    with_lapses = prior.is_free[LAPSES]
    for s in range(normal.shape[0] if with_lapses else normal.shape[0] // 3):
        proposed[:] = theta
        kind = int(5.0 * uniform[s, 0]) if with_lapses else FLOOR - LAPSES
        size = np.exp(0.5 - 4.0 * uniform[s, 1])
        jacobian = 0.0
        if kind < 4:
            for k in range(3):
                if prior.is_free[LAPSES + k] and (kind == k or kind == 3):
                    proposed[LAPSES + k] += size * prior.spread[LAPSES + k] * normal[s, k]
        else:
            proposed[FLOOR] += size * prior.spread[FLOOR] * normal[s, 2]
            lapses = logistic(theta[LAPSES])
            kept = (1.0 - logistic(theta[FLOOR])) / (1.0 - logistic(proposed[FLOOR]))
            new_lapses = 1.0 - (1.0 - lapses) * kept * kept
            if new_lapses <= 1e-12:
                continue
            proposed[LAPSES] = np.log(new_lapses / (1.0 - new_lapses))
            jacobian = np.log(kept * kept * lapses * (1.0 - lapses) / (new_lapses * (1.0 - new_lapses)))
        new_answers = answers_cost(overlaps, proposed, model)
        new_hyper = hyper_cost(proposed, model)
        if np.log(uniform[s, 2]) < answers + hyper - new_answers - new_hyper + jacobian:
            theta[:] = proposed
            answers = new_answers
            hyper = new_hyper


def expected_curvature(
    u: Floats, theta: Floats, jacobian: Floats, curvature: Floats, maps: Floats, model: JointModel
) -> Floats:
    """Return the expected curvature of the cost at the mode, (D, D): positive, and a mass matrix for the chains.

    Parameters
    ----------
    u : (K-1, m)
        The weights of the mode given θ = θ₀.
    theta : (6,)
        θ₀.
    jacobian : (T, d)
        Gradients of the answers' means by u, over their standard deviations (`model.scaled_jacobian`).
    curvature : (d, d)
        I + JᵀJ.
    maps : (n, K)
        The maps of the mode.
    model : JointModel
    """
    prior, d = model.prior, u.size
    _, slopes = spectrum(theta, model)
    by_hyper = np.vstack([np.ones(u.shape[1]), slopes])
    by_theta = np.zeros((len(jacobian), HYPERPARAMETERS))
    for k in range(3):
        by_theta[:, k] = jacobian @ (u * (1 - model.centring) * by_hyper[k]).ravel()
    lapses, bias, floor = noise_rates(theta, prior)
    K, keep = len(model.contrasts), (1 - floor) ** 2
    overlap = np.sum(maps[model.i] * maps[model.j], axis=1)
    low, span = answer_line(lapses, bias, floor, K)
    q = np.clip(low + span * overlap, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    weight = np.sqrt(model.trials / (q * (1 - q)))
    by_theta[:, LAPSES] = weight * (bias - (1 - keep) / K - keep * overlap) * lapses * (1 - lapses)
    by_theta[:, BIAS] = weight * lapses * bias * (1 - bias)
    by_theta[:, FLOOR] = weight * (1 - lapses) * (1 / K - overlap) * 2 * (1 - floor) * floor * (1 - floor)
    precision = 1 / prior.spread**2
    asked = prior.catch_right + prior.catch_wrong
    precision[LAPSES] = max(
        1.0, asked * lapses * (1 - lapses) / 2
    )  # about that of Beta(1, β) and the catch trials
    by_theta[:, ~prior.is_free], precision[~prior.is_free] = 0, 1
    metric = np.eye(d + HYPERPARAMETERS)
    metric[:d, :d] = curvature
    metric[:d, d:] = jacobian.T @ by_theta
    metric[d:, :d] = metric[:d, d:].T
    metric[d:, d:] = by_theta.T @ by_theta + np.diag(precision)
    free = prior.is_free[:3]
    by_prior = by_hyper * free[:, None]
    metric[d : d + 3, d : d + 3] += (by_prior * (2 * len(u) * model.centring**2)) @ by_prior.T
    return metric
