"""One law on one set of rows: estimates, intervals and all that is known of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from moelaws.fitting import model_selection
from moelaws.fitting.caveats import caveats, near_optima, require_identifiable, unidentified
from moelaws.fitting.diagnostics import Diagnostics, DrawCount, Rollout, Starts, Subsamples
from moelaws.fitting.goodness import criteria, describe, errors
from moelaws.fitting.intervals import bootstrap, delta_method, profile, student
from moelaws.fitting.prediction import support_of
from moelaws.fitting.problem import Problem, Solution, problem, solve
from moelaws.fitting.quantiles import percentiles, t_interval
from moelaws.fitting.report import Estimate, GroupFit
from moelaws.fitting.rows import Rows
from moelaws.fitting.variables import Observations
from moelaws.laws.base import Array, FitProtocol, FittableLaw, Mask
from moelaws.laws.forms import LinearLaw
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit

STUDENT_DRAWS = 1000  # they cost nothing
# Of a roll-out: rows below a threshold for each parameter, and fits.
ROWS_PER_PARAMETER, MAX_FITS = 2, 8
MAX_LOG = 700.0  # of a coefficient, either way, that a float holds

Progress = Callable[[str, int, int], None]  # stage, done, total


def fit_group(
    law: FittableLaw, rows: Rows, spec: Fit, protocol: FitProtocol, seed: int, progress: Progress
) -> tuple[GroupFit, Array]:
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
    metrics = errors(rows.response, predicted, protocol.delta)
    metrics |= criteria(rows.response, predicted, len(law.names), protocol.delta, rows.weights)
    holdout = None
    if len(rows.held_response):
        held = law.predict(estimates, rows.held_columns)
        holdout = errors(rows.held_response, held, protocol.delta)
    fitted = GroupFit(
        where=rows.where,
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
            sigma=solution.sigma,
            draws=DrawCount(spec.bootstrap, len(draws)),
            unidentified=unidentified(law, params, exact),
            **_of_the_kind(rows, task, solution, seed),
        ),
        intervals=method,
        delta_method=exact,
        profile=profile(task, solution, spec, progress),
        residuals=describe(residual, len(law.names), rows.weights, protocol.objective == "squared"),
        support=support_of(law, rows.columns),
        left_out=rows.left_out,
        notes=list(rows.notes),
    )
    fitted.warnings.extend(caveats(law, rows, spec, fitted))
    return fitted, natural


def _draws(
    task: Problem, solution: Solution, rows: Rows, spec: Fit, seed: int, progress: Progress
) -> tuple[Array, str]:
    """Returns working-scale draws (B, P) and how they were made."""
    squared = task.protocol.objective == "squared"
    if spec.uses_student(task.protocol.objective):
        drawn = student(task, solution, STUDENT_DRAWS, seed)
        of = "least-squares estimates" if squared else "estimates, by the delta method"
        return task.working(drawn), f"Student-t distribution of the {of}"
    blocks = f"blocks of rows by {spec.resample_by}" if spec.resample_by else "rows"
    total = spec.bootstrap
    phi = bootstrap(
        task, solution, rows.groups, total, seed, lambda done: progress("bootstrap", done, total)
    )
    return task.working(phi), f"percentile bootstrap over {blocks}"


def _within_floats(law: FittableLaw, theta: Array, draws: Array) -> Array:
    """Returns draws (B, P) whose coefficients a float holds: others move towards the estimates.

    So their predictions stay between those of the draw and of the estimates. An estimate that is
    out of reach itself, which only a law without bounds can have, is refused.
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


def _of_the_kind(rows: Rows, task: Problem, solution: Solution, seed: int) -> dict[str, Any]:
    """Returns those diagnostics that a linear law alone has, or that it lacks."""
    law, certificate = task.law, solution.certificate
    if isinstance(law, LinearLaw):
        known = {"condition_number": _standardised_condition(law.design(rows.columns))}
        try:
            best = model_selection.select({"": law}, [(rows.columns, rows.response)], seed).best
        except UserError:  # random subsamples of so few rows do not determine the law
            return known
        return known | {"subsamples": Subsamples(model_selection.SHARE, best.mse, best.pearson)}
    values = solution.end_values
    if solution.sigma is not None:  # a likelihood: the factor of the losses' sum that it stands for
        values = np.exp((values - values[0]) / task.model.n)
    ends = task.working(solution.ends)
    return {
        "condition_number": certificate.condition,
        "at_bounds": [n for n, held in zip(law.names, certificate.at_bound, strict=True) if held],
        "starts": Starts(**vars(solution.search), grid=task.protocol.n_starts),
        "near_equivalent": near_optima(law, ends, values, rows.columns),
    }


def _standardised_condition(X: Array) -> float:
    """Returns least squares' condition number for columns centred and of unit spread."""
    varying = X[:, np.ptp(X, axis=0) > 0]
    Z = (varying - varying.mean(axis=0)) / varying.std(axis=0)
    s = np.linalg.svd(Z, compute_uv=False) if Z.size else np.ones(1)
    return float(s[0] / s[-1]) ** 2 if s[-1] > 0 else float("inf")


def _delta_method(
    task: Problem, solution: Solution, level: float
) -> dict[str, dict[str, float | None]]:
    """Returns each parameter's standard error and interval, natural scale; none without freedom."""
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


def roll_out(
    law: FittableLaw, rows: Rows, name: str, protocol: FitProtocol, seed: int, progress: Progress
) -> list[Rollout]:
    """Fits the rows below each of the ``thresholds`` of ``rows.rollout`` and predicts the others.

    A row whose value is NaN is neither below nor above. A UserError on the column ``name`` says why
    no value can be fitted.
    """
    assert rows.rollout is not None
    cuts = thresholds(rows.rollout)
    rollouts: list[Rollout] = []
    for i, below in enumerate(cuts):
        progress("roll-out", i, len(cuts))
        fitted, above = _where(rows, rows.rollout <= below), _where(rows, rows.rollout > below)
        try:
            require_identifiable(law, fitted.columns)
            n, needed = len(fitted.response), ROWS_PER_PARAMETER * len(law.names)
            if n < needed:
                raise UserError(
                    f"{n} rows are too few for {len(law.names)} parameters; at least {needed} are "
                    "needed"
                )
        except UserError as error:
            rollouts.append(Rollout(below, reason=str(error)))
            continue
        task = problem(law, fitted, protocol, seed)
        theta = task.working(solve(task, seed).phi)
        params = dict(zip(law.names, law.natural(theta).tolist(), strict=True))
        predicted = law.predict(params, above.columns)
        own_errors = errors(above.response, predicted, protocol.delta)
        rollouts.append(Rollout(below, n=n, params=params, errors=own_errors))
    progress("roll-out", len(cuts), len(cuts))
    if all(rollout.reason for rollout in rollouts):
        reason = rollouts[-1].reason if rollouts else f"{name} has one value"
        raise UserError(f"rollout {name}: no value of it can be fitted: {reason}")
    return rollouts


def _where(rows: Rows, mask: Mask) -> Observations:
    weights = None if rows.weights is None else rows.weights[mask] / rows.weights[mask].mean()
    columns = {name: x[mask] for name, x in rows.columns.items()}
    return Observations(columns=columns, response=rows.response[mask], weights=weights)


def thresholds(values: Array) -> list[float]:
    """Returns where a roll-out cuts: the finite ``values`` but the largest, or eight quantiles."""
    values = values[np.isfinite(values)]
    below: Array = np.unique(values)[:-1]
    if len(below) > MAX_FITS:
        levels = np.arange(1, MAX_FITS + 1) / (MAX_FITS + 1)
        chosen = np.quantile(values, levels, method="lower")
        below = np.intersect1d(chosen, below)
    return [float(value) for value in below]
