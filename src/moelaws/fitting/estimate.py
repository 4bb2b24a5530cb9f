"""One law on one set of rows: estimates, intervals and all that is known of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import t as student_t

from moelaws.fitting import degrees, residuals
from moelaws.fitting.diagnostics import errors, others, vanishing
from moelaws.fitting.hull import hull_of, outside
from moelaws.fitting.intervals import bootstrap, delta_method, percentiles, student
from moelaws.fitting.likelihood import criteria
from moelaws.fitting.problem import Problem, problem
from moelaws.fitting.profile import profile
from moelaws.fitting.report import Estimate, FitPart
from moelaws.fitting.rows import Rows
from moelaws.fitting.solve import Solution, solve
from moelaws.laws.base import Array, FitProtocol, FittableLaw
from moelaws.laws.kinds import LinearLaw
from moelaws.spec.errors import UserError
from moelaws.spec.study import Fit

# Beyond this condition number of the Hessian single coefficients mean little.
ILL_CONDITIONED = 1e6
EQUIVALENT = 0.05  # excess of another optimum's objective below which its user is told
SPAN = 100.0  # of a coefficient's interval beyond which it is not identified
STUDENT_DRAWS = 1000  # they cost nothing
REACH = 700.0  # largest logarithm of a coefficient, either way, that a float holds

Progress = Callable[[str, int, int], None]  # stage, done, total


def part(
    law: FittableLaw, rows: Rows, spec: Fit, protocol: FitProtocol, seed: int, progress: Progress
) -> tuple[FitPart, Array]:
    """The fit of ``law`` to ``rows``, and draws (B, P) of its parameters on the natural scale."""
    task = problem(law, rows.columns, rows.response, rows.weights, protocol, seed)
    solution = solve(task, seed, lambda done, total: progress("starts", done, total))
    theta = task.working(solution.phi)
    draws, method = _draws(task, solution, rows, spec, seed, progress)
    draws = _in_reach(law, theta, draws)
    params = dict(zip(law.names, law.natural(theta).tolist(), strict=True))
    exact = _delta_method(task, solution, spec.level)
    with np.errstate(over="ignore"):  # draws of an unidentified coefficient go anywhere
        natural = law.natural(draws)
    low, high = percentiles(natural, spec.level)
    predicted = law.predict(params, rows.columns)
    residual = law.on_scale(rows.response) - law.on_scale(predicted)
    squared = protocol.objective == "squared"
    at_bounds = [
        name
        for name, held in zip(law.names, solution.certificate.at_bound, strict=True)
        if held and not isinstance(law, LinearLaw)
    ]
    found = FitPart(
        where=rows.where,
        n=len(rows.response),
        objective=solution.value,
        converged=solution.certificate.converged,
        params={
            name: Estimate(params[name], exact[name]["low"], exact[name]["high"])
            if method.startswith("Student") and exact
            else Estimate(params[name], _or_none(low[i]), _or_none(high[i]))
            for i, name in enumerate(law.names)
        },
        metrics=_metrics(law, rows.response, predicted, rows.weights, protocol),
        holdout=_held_out(law, rows, params, protocol),
        diagnostics=_diagnostics(law, rows, task, solution, at_bounds, seed)
        | {"draws": {"asked": spec.bootstrap, "used": len(draws)}},
        intervals=method,
        delta_method=exact,
        profile=profile(law, rows, spec, protocol, theta, solution, seed, progress),
        residuals=residuals.describe(residual, len(law.names), rows.weights, squared),
        hull=hull_of(law, rows.columns),
        rollout=[],
        left_out=rows.left_out,
        notes=list(rows.notes),
        warnings=[],
    )
    found.diagnostics["unidentified"] = _unidentified(law, found)
    found.warnings.extend(dict.fromkeys(_warnings(law, rows, spec, found, solution)))
    return found, natural


def _draws(
    task: Problem, solution: Solution, rows: Rows, spec: Fit, seed: int, progress: Progress
) -> tuple[Array, str]:
    """Working-scale draws (B, P) and how they were made."""
    squared = task.protocol.objective == "squared"
    wanted = spec.intervals
    if wanted == "auto":
        wanted = "student" if squared and not spec.resample_by else "bootstrap"
    if wanted == "student":
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


def _in_reach(law: FittableLaw, theta: Array, draws: Array) -> Array:
    """Draws (B, P) whose coefficients a float holds: others are drawn in towards the estimates.

    So their predictions stay between those of the draw and of the estimates.

    Raises:
        UserError: where an estimate itself is out of reach; only a law without bounds has such.
    """
    is_log = np.array([p.scale == "log" for p in law.parameters])
    beyond = is_log & (np.abs(theta) > REACH)
    if beyond.any():
        i = int(np.argmax(beyond))
        raise UserError(
            f"{law.ref}: the estimate of {law.names[i]} is exp({theta[i]:.4g}), which no number "
            f"holds: the rows' {', '.join(v.name for v in law.variables)} vary too little"
        )
    way = draws - theta
    room = np.where(is_log, REACH - np.sign(way) * theta, np.inf)
    share = (room / np.maximum(np.abs(way), 1.0)).min(axis=1, initial=1.0)
    return np.asarray(theta + way * share[:, None])


def _metrics(
    law: FittableLaw,
    response: Array,
    predicted: Array,
    weights: Array | None,
    protocol: FitProtocol,
) -> dict[str, float | None]:
    found = errors(response, predicted, protocol.delta)
    if not ((predicted > 0).all() and (response > 0).all()):
        return found | {"aic": None, "bic": None}
    ln_residual = np.log(predicted) - np.log(response)
    return found | criteria(ln_residual, len(law.names), protocol.delta, weights)


def _held_out(
    law: FittableLaw, rows: Rows, params: dict[str, float], protocol: FitProtocol
) -> dict[str, float | None] | None:
    if not len(rows.held_response):
        return None
    return errors(rows.held_response, law.predict(params, rows.held_columns), protocol.delta)


def _diagnostics(
    law: FittableLaw,
    rows: Rows,
    task: Problem,
    solution: Solution,
    at_bounds: list[str],
    seed: int,
) -> dict[str, Any]:
    certificate, protocol = solution.certificate, task.protocol
    found: dict[str, Any] = {
        "seed": seed,
        "objective": protocol.objective,
        "delta": protocol.delta,
        "newton_decrease": certificate.decrease,
        "condition_number": certificate.condition,
        "at_bounds": at_bounds,
    }
    if solution.sigma is not None:
        found["sigma"] = solution.sigma
    if isinstance(law, LinearLaw):
        return found | {
            "condition_number": _standardised_condition(law.design(rows.columns)),
            "subsamples": _subsamples(law, rows, seed),
        }
    found["starts"] = vars(solution.search) | {"grid": protocol.n_starts}
    values = solution.end_values
    if solution.sigma is not None:  # a likelihood: the factor of the losses' sum that it stands for
        values = np.exp((values - values[0]) / task.model.n)
    found["near_equivalent"] = others(law, task.working(solution.ends), values, rows.columns)
    return found


def _subsamples(law: LinearLaw, rows: Rows, seed: int) -> dict[str, Any] | None:
    """Errors of rows left out of refits to random 80 % of them; None where those do not suffice."""
    try:
        found = degrees.select({"": law}, [(rows.columns, rows.response)], seed).best
    except UserError:
        return None
    return {"share": degrees.SHARE, "mse": found.mse, "pearson": found.pearson}


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
    reach = float(student_t.ppf((1 + level) / 2, task.model.n - P)) * se
    with np.errstate(over="ignore"):  # an unidentified coefficient's interval is endless
        low, high = law.natural(theta - reach), law.natural(theta + reach)
    slope = np.array(
        [
            1.0 if p.scale == "linear" else x
            for p, x in zip(law.parameters, law.natural(theta), strict=True)
        ]
    )
    return {
        name: {"se": _or_none(se[i] * slope[i]), "low": _or_none(low[i]), "high": _or_none(high[i])}
        for i, name in enumerate(law.names)
    }


def _unidentified(law: FittableLaw, found: FitPart) -> list[str]:
    """Parameters whose intervals say that these rows do not determine them."""
    names = []
    for p in law.parameters:
        own = found.params[p.name]
        if own.low is None or own.high is None:
            if found.delta_method:
                names.append(p.name)
            continue
        at_bound = own.low <= p.low + 1e-6 * abs(p.low) or own.high >= p.high - 1e-6 * abs(p.high)
        if p.scale == "log":
            wide = own.high > SPAN * own.low
        else:
            wide = own.high - own.low > 2 * abs(own.estimate)
        if at_bound or wide:
            names.append(p.name)
    return names


def _warnings(
    law: FittableLaw, rows: Rows, spec: Fit, found: FitPart, solution: Solution
) -> list[str]:
    params, P = found.estimates(), len(law.names)
    lines = []
    if not found.converged:
        lines.append("the optimiser did not converge to a certified stationary point")
    search = solution.search
    if search.pruning_lost:
        lines.append(
            "pruning lost the optimum, which a sample of the starts found: more of it may be "
            "hidden; run more starts by protocol.grid"
        )
    if search.reached <= 1 < search.survived:
        lines.append(f"only {search.reached} of {search.survived} starts reached the optimum")
    for other in found.diagnostics.get("near_equivalent", {}).get("found", []):
        differ = other["prediction_differs"]
        if other["objective_excess"] > EQUIVALENT:
            continue
        lines.append(
            f"another optimum is {other['objective_excess']:.2%} worse and has other coefficients; "
            f"its predictions of the fitted rows differ by up to {differ:.2g}"
            + (" of their value" if law.log_response else "")
        )
    for p in law.parameters:
        if p.name in found.diagnostics["at_bounds"]:
            lines.append(
                f"{p.name} is at its bound {params[p.name]:.6g} (allowed: {p.low:g} to {p.high:g})"
            )
    if found.diagnostics["unidentified"]:
        lines.append(
            f"these rows do not identify {', '.join(found.diagnostics['unidentified'])}: an "
            f"interval reaches a bound, spans a factor of {SPAN:g} (coefficients) or twice the "
            "estimate (exponents)"
        )
    for name in vanishing(law, params, rows.columns):
        lines.append(
            f"the term of {name} is below 0.01% of every prediction: its parameters are not "
            "identifiable from these rows"
        )
    condition = found.diagnostics["condition_number"]
    if condition > ILL_CONDITIONED and not isinstance(law, LinearLaw):
        lines.append(
            "coefficients are not identifiable one by one (condition number of the Hessian "
            f"{condition:.1e}): compare predictions, not coefficients"
        )
    asked, used = (found.diagnostics["draws"][key] for key in ("asked", "used"))
    if used < 0.9 * asked and found.n > P and found.intervals.startswith("percentile"):
        lines.append(
            f"only {used} of {asked} bootstrap samples could tell the parameters apart: the "
            "intervals rest on those"
        )
    if found.n == P:
        lines.append("as many rows as parameters: the fit is exact and says nothing of errors")
    elif found.n < 3 * P and found.intervals.startswith("percentile"):
        lines.append(f"{found.n} rows for {P} parameters: few; intervals may be too narrow")
    normal = found.residuals["normal_p"]
    if normal is not None and normal < 0.01:
        lines.append(
            f"residuals are not normal (Jarque-Bera p = {normal:.1g}, excess kurtosis "
            f"{found.residuals['excess_kurtosis']:.1f})"
        )
    if spec.holdout and found.holdout is None:
        lines.append(f"holdout {spec.holdout!r} selects no row here")
    if len(rows.held_response):
        beyond = int(outside(law, found.hull, rows.held_columns).sum())
        if beyond:
            lines.append(
                f"{beyond} of the {len(rows.held_response)} held-out rows lie outside the fitted "
                "rows' hull: the law is extrapolated there"
            )
    return lines


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
