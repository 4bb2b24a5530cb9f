"""The fit of one law to one group of rows: estimates, their intervals and how good the fit is."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from moelaws.files.atomic import finite
from moelaws.fitting.caveats import near_optima, unidentified
from moelaws.fitting.diagnostics import Diagnostics, DrawCount
from moelaws.fitting.errors import criteria, describe, errors
from moelaws.fitting.intervals import bootstrap, delta_method, open_ends, profile, student
from moelaws.fitting.prediction import support_of
from moelaws.fitting.problem import Problem, Solution, problem, solve
from moelaws.fitting.quantiles import percentiles, t_interval, widening
from moelaws.fitting.report import Estimate, GroupFit
from moelaws.fitting.rollout import Progress
from moelaws.fitting.rows import Rows
from moelaws.laws.base import Array, FitProtocol, FittableLaw
from moelaws.laws.forms import LinearLaw
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit

STUDENT_DRAWS = 1000
MAX_LOG = 700.0  # largest absolute logarithm of a coefficient, so that a float holds it


def fit_group(
    law: FittableLaw, rows: Rows, spec: Fit, protocol: FitProtocol, seed: int, progress: Progress
) -> tuple[GroupFit, Array]:
    """Returns the fit of ``law`` to ``rows``, and draws (B, P) of its parameters, natural scale."""
    task = problem(law, rows, protocol, seed)
    solution = solve(task, seed, lambda done, total: progress("starts", done, total))
    theta = task.working(solution.phi)
    drawn, method, stretch = _draws(task, solution, rows, spec, seed, progress)
    # Of parameters the stretched draws themselves are shown, within their bounds.
    wide = np.clip(solution.phi + stretch * (drawn - solution.phi), *task.bounds.T)
    if isinstance(law, LinearLaw):  # whose predictions move in proportion
        drawn, stretch = wide, 1.0
    with np.errstate(over="ignore"):  # draws of an unidentified coefficient may be infinite
        natural, reach = (
            law.natural(_within_floats(law, theta, task.working(phi))) for phi in (drawn, wide)
        )
    estimates = dict(zip(law.names, law.natural(theta).tolist(), strict=True))
    exact = {} if spec.intervals == "none" else _delta_method(task, solution, spec.level)
    predicted = law.predict(estimates, rows.columns)
    residual = law.on_scale(rows.response) - law.on_scale(predicted)
    if len(rows.response) <= law.n_free:  # draws are kept for what is derived from them
        method, reach = "none, for as many parameters as rows leave no errors to see", reach[:0]
    ends = np.array(percentiles(reach, spec.level))
    if method.startswith("Student") and exact:
        ends = np.array([(own["low"], own["high"]) for own in exact.values()], float).T
    ends = open_ends(law, theta, ends, rows.columns, float(np.sqrt((residual**2).mean())))
    params = {
        name: Estimate(estimates[name], finite(low), finite(high))
        for name, low, high in zip(law.names, *ends, strict=True)
    }
    metrics = errors(rows.response, predicted, protocol.delta)
    known = criteria(rows.response, predicted, law.n_free, protocol.delta, rows.weights)
    metrics |= known if solution.certificate.converged else dict.fromkeys(known)
    holdout = None
    if len(rows.held_response):
        held = law.predict(estimates, rows.held_columns)
        holdout = errors(rows.held_response, held, protocol.delta)
    return GroupFit(
        where=dict(rows.where),
        n=len(rows.response),
        objective=solution.value,
        converged=solution.certificate.converged,
        params=params,
        metrics=metrics,
        holdout=holdout,
        diagnostics=Diagnostics(
            seed=seed,
            objective=protocol.objective,
            delta=protocol.delta,
            newton_decrease=solution.certificate.decrease,
            draws=DrawCount(spec.bootstrap, len(drawn), stretch),
            unidentified=unidentified(law, params, exact),
            **_of_the_kind(rows, task, solution),
        ),
        intervals=method,
        delta_method=exact,
        profile=profile(task, solution, spec, progress),
        residuals=describe(residual, law.n_free, rows.weights, protocol.objective == "squared"),
        hull=support_of(law, rows.columns),
        sparsity=rows.sparsity,
        left_out=rows.left_out,
        notes=[*rows.notes, *_assumptions(law)],
    ), natural


def _assumptions(law: FittableLaw) -> Iterator[str]:
    for p in law.parameters:
        if p.low == p.high:
            yield f"{p.name} is fixed at {p.low:g}"
        elif p.prior:
            yield f"prior: {p.name} ~ N({p.prior[0]:g}, {p.prior[1]:g})"


def _draws(
    task: Problem, solution: Solution, rows: Rows, spec: Fit, seed: int, progress: Progress
) -> tuple[Array, str, float]:
    """Returns draws (B, P), how they were made, and the stretch of what is predicted by them."""
    if spec.intervals == "none":
        return np.empty((0, len(solution.phi))), "none, for the rows come from other fits", 1.0
    is_squared = task.protocol.objective == "squared"
    if spec.intervals == "auto" and is_squared and rows.blocks is None:
        drawn = student(task, solution, STUDENT_DRAWS, seed)
        return drawn, "Student-t distribution of the least-squares estimates", 1.0
    blocks = "rows" if rows.blocks is None else f"blocks of rows by {rows.blocks_by}"
    total = spec.bootstrap
    phi = bootstrap(
        task, solution, rows.blocks, total, seed, lambda done: progress("bootstrap", done, total)
    )
    method = f"percentile bootstrap over {blocks}"
    if rows.blocks is not None and spec.intervals == "auto":
        count = int(rows.blocks.max()) + 1
        return phi, f"{method}, widened for {count} blocks", widening(count, spec.level)
    return phi, method, 1.0


def _within_floats(law: FittableLaw, theta: Array, draws: Array) -> Array:
    """Returns draws (B, P), moved towards the estimates until a float holds all coefficients.

    The prediction of a moved draw lies between those of the draw and of the estimates. A UserError
    refuses estimates that no float holds, which only a law without bounds can have.
    """
    is_log = np.array([p.scale == "log" for p in law.parameters])
    beyond = is_log & (np.abs(theta) > MAX_LOG)
    if beyond.any():
        i = int(np.argmax(beyond))
        raise UserError(
            f"{law.ref}: the estimate of {law.names[i]} is exp({theta[i]:.4g}), which no number "
            f"holds: the rows' {', '.join(v.name for v in law.variables)} vary too little"
        )
    step = draws - theta
    room = np.where(is_log, MAX_LOG - np.sign(step) * theta, np.inf)
    factor = (room / np.maximum(np.abs(step), 1.0)).min(axis=1, initial=1.0)
    return np.asarray(theta + step * factor[:, None])


def _of_the_kind(rows: Rows, task: Problem, solution: Solution) -> dict[str, Any]:
    """Returns the diagnostics that only linear laws have, or only the others."""
    law, certificate = task.law, solution.certificate
    if isinstance(law, LinearLaw):
        X = law.design(rows.columns)
        X = X[:, np.ptp(X, axis=0) > 0]
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        # Of least squares on columns centred and of unit spread
        return {"condition_number": float(np.linalg.cond(Z)) ** 2 if Z.size else 1.0}
    ends = task.working(solution.ends)
    return {
        "condition_number": certificate.condition,
        "at_bounds": [
            p.name
            for p, held in zip(law.parameters, certificate.at_bound, strict=True)
            if held and p.low < p.high
        ],
        "starts": replace(solution.search, grid=task.protocol.n_starts),
        "near_equivalent": near_optima(law, ends, solution.end_values, rows.columns),
    }


def _delta_method(
    task: Problem, solution: Solution, level: float
) -> dict[str, dict[str, float | None]]:
    """Returns each parameter's standard error and interval, natural scale; {} without freedom."""
    covariance = delta_method(task, solution.path[-1], solution.phi, solution.certificate.at_bound)
    if covariance is None:
        return {}
    law, P = task.law, len(solution.phi)
    columns = task.working(np.eye(P)) - task.working(np.zeros((P, P)))  # d working / d coordinate
    theta = task.working(solution.phi)
    se = np.sqrt(np.maximum(np.einsum("pi,pq,qi->i", columns, covariance, columns), 0.0))
    ends = t_interval(theta, se, task.model.n - law.n_free, level)
    with np.errstate(over="ignore"):  # the interval of an unidentified coefficient may be infinite
        low, high = (law.natural(end) for end in ends)
    slope = np.where([p.scale == "log" for p in law.parameters], law.natural(theta), 1.0)
    return {
        name: {"se": finite(se[i] * slope[i]), "low": finite(low[i]), "high": finite(high[i])}
        for i, name in enumerate(law.names)
    }
