"""One law on one set of rows: estimates, intervals and all that is known of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from moelaws.fitting import model_selection, residuals
from moelaws.fitting.caveats import caveats, unidentified
from moelaws.fitting.diagnostics import Diagnostics, DrawCount, Starts, Subsamples
from moelaws.fitting.goodness import errors
from moelaws.fitting.identifiability import near_optima
from moelaws.fitting.intervals import bootstrap, delta_method, student
from moelaws.fitting.likelihood import criteria
from moelaws.fitting.problem import Problem, problem
from moelaws.fitting.profile import profile
from moelaws.fitting.quantiles import percentiles, t_interval
from moelaws.fitting.report import Estimate, FitPart
from moelaws.fitting.rows import Rows
from moelaws.fitting.solve import Solution, solve
from moelaws.fitting.support import support_of
from moelaws.laws.base import Array, FitProtocol, FittableLaw
from moelaws.laws.forms import LinearLaw
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit

STUDENT_DRAWS = 1000  # they cost nothing
MAX_LOG = 700.0  # of a coefficient, either way, that a float holds

Progress = Callable[[str, int, int], None]  # stage, done, total


def fit_part(
    law: FittableLaw, rows: Rows, spec: Fit, protocol: FitProtocol, seed: int, progress: Progress
) -> tuple[FitPart, Array]:
    """Returns the fit of ``law`` to ``rows``, and draws (B, P) of its parameters, natural scale."""
    task = problem(law, rows, protocol, seed)
    solution = solve(task, seed, lambda done, total: progress("starts", done, total))
    theta = task.working(solution.phi)
    draws, method = _draws(task, solution, rows, spec, seed, progress)
    with np.errstate(over="ignore"):  # draws of an unidentified coefficient go anywhere
        natural = law.natural(_within_floats(law, theta, draws))
    estimates = dict(zip(law.names, law.natural(theta).tolist(), strict=True))
    exact = _delta_method(task, solution, spec.level)
    params = {
        name: Estimate(estimates[name], exact[name]["low"], exact[name]["high"])
        if method.startswith("Student") and exact
        else Estimate(estimates[name], _or_none(low), _or_none(high))
        for name, low, high in zip(law.names, *percentiles(natural, spec.level), strict=True)
    }
    predicted = law.predict(estimates, rows.columns)
    residual = law.on_scale(rows.response) - law.on_scale(predicted)
    squared = protocol.objective == "squared"
    fitted = FitPart(
        where=rows.where,
        n=len(rows.response),
        objective=solution.value,
        converged=solution.certificate.converged,
        params=params,
        metrics=_metrics(law, rows, predicted, protocol),
        holdout=_held_out(law, rows, estimates, protocol),
        diagnostics=replace(
            _diagnostics(rows, task, solution, seed),
            draws=DrawCount(spec.bootstrap, len(draws)),
            unidentified=unidentified(law, params, exact),
        ),
        intervals=method,
        delta_method=exact,
        profile=profile(task, solution, spec, progress),
        residuals=residuals.describe(residual, len(law.names), rows.weights, squared),
        support=support_of(law, rows.columns),
        left_out=rows.left_out,
        notes=list(rows.notes),
    )
    fitted.warnings.extend(caveats(law, rows, spec, fitted))
    return fitted, natural


def _draws(
    task: Problem, solution: Solution, rows: Rows, spec: Fit, seed: int, progress: Progress
) -> tuple[Array, str]:
    """Working-scale draws (B, P) and how they were made."""
    squared = task.protocol.objective == "squared"
    if spec.uses_student(task.protocol.objective):
        drawn = student(task, solution, STUDENT_DRAWS, seed)
        of = "least-squares estimates" if squared else "estimates, by the delta method"
        return task.working(drawn), f"Student-t distribution of the {of}"
    blocks = f"blocks of rows by {spec.resample_by}" if spec.resample_by else "rows"
    phi = bootstrap(
        task,
        solution,
        rows.groups,
        spec.bootstrap,
        seed,
        lambda done: progress("bootstrap", done, spec.bootstrap),
    )
    return task.working(phi), f"percentile bootstrap over {blocks}"


def _within_floats(law: FittableLaw, theta: Array, draws: Array) -> Array:
    """Draws (B, P) whose coefficients a float holds: others are drawn in towards the estimates.

    So their predictions stay between those of the draw and of the estimates.

    Raises:
        UserError: where an estimate itself is out of reach; only a law without bounds has such.
    """
    is_log = np.array([p.scale == "log" for p in law.parameters])
    beyond = is_log & (np.abs(theta) > MAX_LOG)
    if beyond.any():
        i = int(np.argmax(beyond))
        raise UserError(
            f"{law.ref}: the estimate of {law.names[i]} is exp({theta[i]:.4g}), which no number "
            f"holds: the rows' {', '.join(v.name for v in law.variables)} vary too little"
        )
    way = draws - theta
    room = np.where(is_log, MAX_LOG - np.sign(way) * theta, np.inf)
    share = (room / np.maximum(np.abs(way), 1.0)).min(axis=1, initial=1.0)
    return np.asarray(theta + way * share[:, None])


def _metrics(
    law: FittableLaw, rows: Rows, predicted: Array, protocol: FitProtocol
) -> dict[str, float | None]:
    metrics = errors(rows.response, predicted, protocol.delta)
    if not ((predicted > 0).all() and (rows.response > 0).all()):
        return metrics | {"aic": None, "bic": None}
    ln_residual = np.log(predicted) - np.log(rows.response)
    return metrics | criteria(ln_residual, len(law.names), protocol.delta, rows.weights)


def _held_out(
    law: FittableLaw, rows: Rows, params: dict[str, float], protocol: FitProtocol
) -> dict[str, float | None] | None:
    if not len(rows.held_response):
        return None
    return errors(rows.held_response, law.predict(params, rows.held_columns), protocol.delta)


def _diagnostics(rows: Rows, task: Problem, solution: Solution, seed: int) -> Diagnostics:
    law, certificate, protocol = task.law, solution.certificate, task.protocol
    optimum = Diagnostics(
        seed=seed,
        objective=protocol.objective,
        delta=protocol.delta,
        newton_decrease=certificate.decrease,
        condition_number=certificate.condition,
        sigma=solution.sigma,
    )
    if isinstance(law, LinearLaw):
        condition = _standardised_condition(law.design(rows.columns))
        subsamples = _subsamples(law, rows, seed)
        return replace(optimum, condition_number=condition, subsamples=subsamples)
    values = solution.end_values
    if solution.sigma is not None:  # a likelihood: the factor of the losses' sum that it stands for
        values = np.exp((values - values[0]) / task.model.n)
    return replace(
        optimum,
        at_bounds=[n for n, held in zip(law.names, certificate.at_bound, strict=True) if held],
        starts=Starts(**vars(solution.search), grid=protocol.n_starts),
        near_equivalent=near_optima(law, task.working(solution.ends), values, rows.columns),
    )


def _subsamples(law: LinearLaw, rows: Rows, seed: int) -> Subsamples | None:
    """Returns the errors of rows left out of refits; None where those do not suffice."""
    try:
        best = model_selection.select({"": law}, [(rows.columns, rows.response)], seed).best
    except UserError:
        return None
    return Subsamples(model_selection.SHARE, best.mse, best.pearson)


def _standardised_condition(X: Array) -> float:
    """Condition number of the Hessian of least squares, columns centred and of unit spread."""
    varying = X[:, np.ptp(X, axis=0) > 0]
    Z = (varying - varying.mean(axis=0)) / varying.std(axis=0)
    s = np.linalg.svd(Z, compute_uv=False) if Z.size else np.ones(1)
    return float(s[0] / s[-1]) ** 2 if s[-1] > 0 else float("inf")


def _delta_method(
    task: Problem, solution: Solution, level: float
) -> dict[str, dict[str, float | None]]:
    """Standard error and interval of each parameter, natural scale; empty without freedom."""
    covariance = delta_method(task, solution.path[-1], solution.phi, solution.certificate.at_bound)
    if covariance is None:
        return {}
    law, P = task.law, len(solution.phi)
    columns = task.working(np.eye(P)) - task.working(np.zeros((P, P)))  # d working / d coordinate
    theta = task.working(solution.phi)
    se = np.sqrt(np.maximum(np.einsum("pi,pq,qi->i", columns, covariance, columns), 0.0))
    ends = t_interval(theta, se, task.model.n - P, level)
    with np.errstate(over="ignore"):  # an unidentified coefficient's interval is endless
        low, high = (law.natural(end) for end in ends)
    slope = np.where([p.scale == "log" for p in law.parameters], law.natural(theta), 1.0)
    return {
        name: {"se": _or_none(se[i] * slope[i]), "low": _or_none(low[i]), "high": _or_none(high[i])}
        for i, name in enumerate(law.names)
    }


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
