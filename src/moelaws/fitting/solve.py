"""The optimum, the bootstrap and their diagnostics for each kind of law."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from moelaws.fitting.diagnostics import vanishing
from moelaws.fitting.engine import Optimum, multistart, sample_starts
from moelaws.fitting.intervals import bootstrap_linear, bootstrap_power_law, subsamples
from moelaws.fitting.linear import least_squares
from moelaws.fitting.objective import HuberSum
from moelaws.fitting.rows import Rows
from moelaws.laws.base import Array, Law, Protocol
from moelaws.laws.kinds import LinearLaw, PowerLawSum
from moelaws.spec.study import Fit

# Beyond this condition number of the Hessian single coefficients mean little.
ILL_CONDITIONED = 1e6

Progress = Callable[[str, int, int], None]  # stage, done, total


@dataclass(frozen=True)
class Solved:
    """Working-scale estimates of one part, and what is known of them."""

    theta: Array  # (P,)
    objective: float
    converged: bool
    draws: Array  # (B, P) bootstrap
    diagnostics: dict[str, Any]
    warnings: list[str]


def solve(
    law: Law, rows: Rows, spec: Fit, protocol: Protocol, seed: int, progress: Progress
) -> Solved:
    """Fit ``law`` to ``rows`` in the way of its kind."""
    if isinstance(law, PowerLawSum):
        return _power_law(law, rows, spec, protocol, seed, progress)
    if isinstance(law, LinearLaw):
        return _linear(law, rows, spec, seed)
    raise TypeError(f"law {law.id} is of no kind that is fitted")


def _power_law(
    law: PowerLawSum, rows: Rows, spec: Fit, protocol: Protocol, seed: int, progress: Progress
) -> Solved:
    design, ln_L = law.design(rows.columns), np.log(rows.response)
    starts = sample_starts(law, protocol, seed)
    optimum = multistart(
        HuberSum(design, ln_L, protocol.delta),
        starts,
        law.bounds,
        lambda done: progress("starts", done, len(starts)),
    )
    draws = bootstrap_power_law(
        design,
        ln_L,
        protocol.delta,
        optimum.basins,
        law.bounds,
        spec.bootstrap,
        seed,
        lambda done: progress("bootstrap", done, spec.bootstrap),
    )
    at_bounds = [name for name, held in zip(law.names, optimum.at_bound, strict=True) if held]
    diagnostics = {
        "seed": seed,
        "starts": {
            "grid": protocol.n_starts,
            "run": optimum.n_starts,
            "reached": optimum.n_reached,
        },
        "newton_decrease": optimum.decrease,
        "condition_number": optimum.condition,
        "at_bounds": at_bounds,
        "delta": protocol.delta,
    }
    warnings = _power_law_warnings(law, rows, optimum, at_bounds)
    return Solved(optimum.theta, optimum.objective, optimum.converged, draws, diagnostics, warnings)


def _power_law_warnings(
    law: PowerLawSum, rows: Rows, optimum: Optimum, at_bounds: list[str]
) -> list[str]:
    params = dict(zip(law.names, law.natural(optimum.theta).tolist(), strict=True))
    warnings = []
    if not optimum.converged:
        warnings.append("the optimiser did not converge to a certified stationary point")
    if optimum.n_reached == 1 and optimum.n_starts > 1:
        warnings.append(
            f"only 1 of {optimum.n_starts} starts reached the optimum: protocol.sample asks for "
            "more of them"
        )
    for p in law.parameters:
        if p.name in at_bounds:
            warnings.append(
                f"{p.name} is at its bound {params[p.name]:.6g} (allowed: {p.low:g} to {p.high:g})"
            )
    for name in vanishing(law, params, rows.columns):
        warnings.append(
            f"the term of {name} is below 0.01% of every prediction: its parameters are not "
            "identifiable from these rows"
        )
    if optimum.condition > ILL_CONDITIONED:
        warnings.append(
            "coefficients are not identifiable one by one (condition number of the Hessian "
            f"{optimum.condition:.1e}): compare predictions, not coefficients"
        )
    return warnings


def _linear(law: LinearLaw, rows: Rows, spec: Fit, seed: int) -> Solved:
    X, y = law.design(rows.columns), rows.response
    solution = least_squares(X, y)
    draws = bootstrap_linear(X, y, spec.bootstrap, seed)
    warnings = []
    if len(draws) < 0.9 * spec.bootstrap:
        warnings.append(
            f"only {len(draws)} of {spec.bootstrap} bootstrap samples could tell the parameters "
            "apart: the intervals rest on those"
        )
    if len(y) == len(law.names):
        warnings.append("as many rows as parameters: the fit is exact and says nothing of errors")
    diagnostics = {
        "seed": seed,
        "condition_number": solution.condition,
        "subsamples": subsamples(X, y, spec.level, seed),
    }
    return Solved(solution.theta, solution.objective, True, draws, diagnostics, warnings)
