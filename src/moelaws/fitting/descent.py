"""Descent of a batch of parameter vectors, each to the optimum below it.

The method is Newton's, damped and within box bounds. Far from an optimum its curvature is the
majoriser of iteratively reweighted least squares, which stays positive; near one it is the exact
Hessian, which converges quadratically. The damping is Levenberg's, in the model's own metric: for a
sum of power laws, how much a step changes the logarithms of the terms. So ln b and beta move freely
along the valley in which b / D^beta stays the same, and a vanished term's parameters stay in place.
A step along a valley that bends leaves the valley's floor, and fails. A second step then leads
back: it makes up for what the first one changed beyond a straight line. Sources: Transtrum and
Sethna 2012 (geodesic acceleration), Fletcher 1982 (second-order correction).

SciPy takes the last steps to a stationary point, and the exact Hessian certifies it.

Arrays: B vectors, P parameters; all parameters on the working scale.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from moelaws.fitting.objective import Evaluation, Index, Objective, Slopes
from moelaws.laws.base import Array, Mask

MAX_STEP = 10.0  # of any parameter in one step
ROUNDING = 1e-9  # of a parameter that a bound holds
LEAST_DAMPING = 1e-12  # the curvature along a flat valley may be 1e-13 of that across it
Ends = tuple[Array, Array]  # of descents: vectors (B, P) and the objectives (B,) there
APART = 1.0  # least difference in some parameter of two ends: a factor e of a coefficient


def descend(
    objective: Objective,
    starts: Array,
    bounds: Array,
    iterations: int = 500,
    newton: bool = True,
    little: float = 1e-9,
) -> Ends:
    """Returns the ends (B, P) and objectives (B,) of a descent from each of ``starts`` (B, P).

    Without ``newton`` no second derivatives are taken: a step is quicker and gains less.

    A start stops after three steps in a row that each gained less than ``little`` of the objective,
    or when no step helps. ``bounds`` is (P, 2), or (B, P, 2) with each vector's own.
    """
    bounds = np.broadcast_to(bounds, (*starts.shape, 2))
    here, metric = objective, objective.model.metric
    ridge = metric + 1e-9 * np.diag(np.diag(metric))  # the metric may be singular
    point = here.evaluate(np.clip(starts, bounds[..., 0], bounds[..., 1]))
    end, value = np.empty_like(point.theta), np.empty_like(point.value)
    alive = np.arange(len(end))
    damping = np.full(len(end), 1e-2)
    exact = np.zeros(len(end), dtype=bool)
    idle = np.zeros(len(end), dtype=int)
    towards = point.residual  # where the last step led, if it failed
    for _ in range(iterations):
        if not len(alive):
            break
        slopes = here.derivatives(point, exact, towards)
        f = slopes.value
        damped = slopes.curvature + (2 * damping * slopes.scale)[:, None, None] * ridge
        trial = here.evaluate(_newton(damped, slopes.gradient, point.theta, bounds))
        failed = np.flatnonzero(np.isfinite(trial.value) & (trial.value >= f))
        if len(failed):
            beyond = _beyond_the_line(slopes, point, trial, failed)
            back = _newton(damped[failed], beyond, trial.theta[failed], bounds[failed])
            trial = trial.put(failed, here.take(failed).evaluate(back))

        better = trial.value < f
        gain = np.where(better, f - trial.value, 0.0)
        exact = np.where(better, newton & (gain < 1e-3 * f), exact & (damping < 1.0))
        idle = np.where(better, np.where(gain < little * f, idle + 1, 0), idle)
        going = np.flatnonzero((idle < 3) & (damping < 1e10) & (f > 0))
        damping = np.where(better, np.maximum(damping / 5, LEAST_DAMPING), damping * 10)
        point, towards = point.moved(trial, better), trial.residual
        if len(going) < len(alive):
            end[alive], value[alive] = point.theta, point.value
            point, here, bounds = point.take(going), here.take(going), bounds[going]
            alive, damping, exact, idle = (x[going] for x in (alive, damping, exact, idle))
            towards = towards[going]
    end[alive], value[alive] = point.theta, point.value
    return end, value


def _beyond_the_line(slopes: Slopes, point: Evaluation, trial: Evaluation, index: Index) -> Array:
    """Returns the gradient (K, P) of what steps changed beyond a straight line.

    ``index`` (K,) has the vectors whose steps failed. Most fail because the valley's floor bends: a
    row whose residual was near 0 is off by the square of the step. The Newton step of this gradient
    leads back to the floor.
    """
    J_PKn = slopes.jacobian[:, index]
    step_KP = trial.theta[index] - point.theta[index]
    beyond_Kn = trial.residual[index] - point.residual[index]
    beyond_Kn -= np.einsum("pkn,kp->kn", J_PKn, step_KP)
    return np.asarray(np.einsum("pkn,kn->kp", J_PKn, slopes.weights[index] * beyond_Kn))


def from_best(objective: Objective, ends: Array, bounds: Array, newton: bool = True) -> Array:
    """Returns where each copy (B) of an objective's rows leads in ten steps, (B, P).

    Each goes from all ``ends`` (K, P), and the best way counts: from the optimum alone, a term that
    vanished there would vanish in every copy.
    """
    B = len(objective.weights)
    tries = [descend(objective, np.tile(e, (B, 1)), bounds, 10, newton) for e in ends]
    best = np.argmin([value for _, value in tries], axis=0)
    return np.asarray(np.array([phi for phi, _ in tries])[best, np.arange(B)])


def held(theta: Array, gradient: Array, bounds: Array) -> Mask:
    """Returns which parameters are at a bound, up to rounding, that the descent pushes against."""
    at_low = (theta <= bounds[..., 0] + ROUNDING) & (gradient > 0)
    at_high = (theta >= bounds[..., 1] - ROUNDING) & (gradient < 0)
    return at_low | at_high


def _newton(A: Array, gradient: Array, theta: Array, bounds: Array) -> Array:
    """Returns where Newton steps with the damped curvature ``A`` (B, P, P) lead from ``theta``.

    No step is longer than ``MAX_STEP``. A parameter that meets a bound stays there, and the others
    take their steps anew: of a step that is only cut off, the rest may lead uphill.
    """
    end, fixed = theta.copy(), held(theta, gradient, bounds)
    todo = np.arange(len(theta))
    while len(todo):
        own, free = A[todo], ~fixed[todo]
        cut = np.where(free, 0.0, end[todo] - theta[todo])
        slope = gradient[todo]
        if cut.any():
            slope = slope + np.einsum("bpq,bq->bp", own, cut)
        downhill = -(free * slope)[..., None]
        own *= free[:, :, None] & free[:, None, :]
        np.einsum("bpp->bp", own)[...] += ~free + np.finfo(float).tiny
        try:
            step = np.linalg.solve(own, downhill)[..., 0]
        except np.linalg.LinAlgError:  # two columns are equal, and the rows have hardly any noise
            step = (np.linalg.pinv(own, hermitian=True) @ downhill)[..., 0]
        step *= MAX_STEP / np.maximum(np.abs(step).max(axis=1, keepdims=True), MAX_STEP)
        goal = np.where(free, theta[todo] + step, end[todo])
        end[todo] = np.clip(goal, bounds[todo, :, 0], bounds[todo, :, 1])
        met = free & (end[todo] != goal)
        fixed[todo] |= met
        todo = todo[met.any(axis=1)]
    return end


def far_apart(ends: Array, values: Array) -> Ends:
    """Returns ends (K, P) and objectives (K,), best first, without those close to a better one."""
    order = np.argsort(values, kind="stable")
    apart = [order[0]]
    for i in order[1:]:
        if all(np.abs(ends[i] - ends[j]).max() >= APART for j in apart):
            apart.append(i)
    return ends[apart], values[apart]


EXACT = np.array([True])


@dataclass(frozen=True)
class Certificate:
    """Whether a point is an optimum, and how well determined it is.

    A point has converged where the Hessian has no negative eigenvalue on the free parameters and a
    Newton step would gain less than 1e-6 of the objective.
    """

    converged: bool
    decrease: float  # that gain, relative to the objective
    condition: float  # of the free parameters' Hessian, scaled to a unit diagonal
    at_bound: Mask  # (P,) parameters that a bound holds


def polish(objective: Objective, theta: Array, bounds: Array) -> Array:
    """Returns the stationary point next to ``theta`` (P,), (P,).

    One more Newton step is taken if it makes the gradient smaller: so near the optimum the values
    are equal to the last digits, and only the gradient differs.
    """
    x = _trust_region(objective, theta, bounds)
    f, gradient, hessian = (array[0] for array in objective.derivatives(x[None], EXACT)[:3])
    free = ~held(x, gradient, bounds)
    y = x.copy()
    y[free] -= np.linalg.pinv(hessian[np.ix_(free, free)], hermitian=True) @ gradient[free]
    y = np.clip(y, *bounds.T)
    value, slope = _slope(objective, y)
    nearer = np.abs(slope[free]).sum() < np.abs(gradient[free]).sum()
    return y if nearer and value <= f * (1 + 1e-14) else x


def _trust_region(objective: Objective, x: Array, bounds: Array) -> Array:
    """Returns where a trust region with the exact Hessian ends, over the parameters not at a bound.

    A trust region follows a valley that bends downwards, where a descent is slow. It knows no
    bounds, so a last descent follows those that it ran into, as long as the objective falls at all.
    """
    from scipy.optimize import minimize  # advice descends without it

    unit = max(float(objective.value(x[None])[0]), 1e-12)
    free = ~held(x, _slope(objective, x)[1], bounds)
    if not free.any():
        return x

    def whole(y: Array) -> Array:
        full = x.copy()
        full[free] = y
        return full

    # SciPy asks for value, slope and curvature of a point one by one.
    point = lru_cache(1)(lambda y: objective.evaluate(whole(np.frombuffer(y))[None]))
    slopes = lru_cache(1)(lambda y: objective.derivatives(point(y), EXACT))

    # Beyond the bounds the law may have no value. SciPy refuses a step to infinity as one that is
    # too long, but still needs numbers for the derivatives there.
    def value(y: Array) -> float:
        f = float(point(y.tobytes()).value[0]) / unit
        return f if np.isfinite(f) else float("inf")

    def curvature(y: Array) -> Array:
        H = slopes(y.tobytes()).curvature[0][np.ix_(free, free)] / unit
        return np.where(np.isfinite(H), H, 0.0)

    with np.errstate(invalid="ignore", over="ignore"):
        newton = minimize(
            value,
            x[free],
            jac=lambda y: np.nan_to_num(slopes(y.tobytes()).gradient[0][free] / unit),
            hess=curvature,
            method="trust-exact",
            options={"gtol": 1e-10, "maxiter": 500},
        )
    end = np.clip(whole(newton.x), *bounds.T)
    ends, values = descend(objective, np.array([end, x]), bounds, little=1e-16)
    return np.asarray(ends[np.argmin(values)])


def _slope(objective: Objective, x: Array) -> tuple[float, Array]:
    f, gradient, *_ = objective.derivatives(x[None], ~EXACT)  # the exact Hessian is expensive
    return float(f[0]), gradient[0]


def normalised(hessian: Array) -> tuple[Array, Array]:
    """Returns the Hessian (P, P) over the roots of its diagonal, and these roots (P,).

    At a minimum its elements are within 1. Beside a diagonal element that vanishes they may be so
    large that no eigenvalues can be computed, so they are cut at 1e8.
    """
    diagonal = np.sqrt(np.maximum(np.abs(np.diag(hessian)), np.finfo(float).tiny))
    with np.errstate(over="ignore"):
        return np.clip(hessian / np.outer(diagonal, diagonal), -1e8, 1e8), diagonal


def inverse(hessian: Array) -> Array:
    """Returns the pseudo-inverse (P, P) of a Hessian, whose directions count by their own scale."""
    scaled, scale = normalised(hessian)
    return np.linalg.pinv(scaled, hermitian=True) / np.outer(scale, scale)


def certify(objective: Objective, theta: Array, bounds: Array) -> Certificate:
    """Certifies whether ``theta`` (P,) is a stationary point and no saddle."""
    f, gradient, hessian = (array[0] for array in objective.derivatives(theta[None], EXACT)[:3])
    at_bound = held(theta, gradient, bounds)
    free = ~at_bound
    if not free.any():
        return Certificate(True, 0.0, 1.0, at_bound)
    H, g = hessian[np.ix_(free, free)], gradient[free]
    # What is left where the rows' terms cancel is rounding.
    g = np.where(np.abs(g) <= 1e-13 * objective.gradient_terms(theta)[free], 0.0, g)
    scaled, diagonal = normalised(H)
    eigenvalues, vectors = np.linalg.eigh(scaled)
    floor = max(1e-13 * eigenvalues[-1], np.finfo(float).tiny)  # all may be 0 where values are flat
    along = vectors.T @ (g / diagonal)
    with np.errstate(over="ignore"):  # values may be flat around a point that is no optimum
        gain = 0.5 * float((along**2 / np.maximum(np.abs(eigenvalues), floor)).sum())
    # A perfect fit has objective 0. Residuals of 1e-11 in every row count as perfect, or of 1e-11
    # times the largest response where that is above 1.
    slight = 1e-11 * max(1.0, float(np.abs(objective.observed).max()))
    tiny = objective.unit * objective.model.n * slight * min(objective.delta, slight)
    decrease = gain / max(float(f), tiny)
    return Certificate(
        converged=bool(eigenvalues[0] >= -1e-9 * eigenvalues[-1] and decrease < 1e-6),
        decrease=decrease,
        condition=float(eigenvalues[-1] / max(abs(eigenvalues[0]), np.finfo(float).tiny)),
        at_bound=at_bound,
    )
