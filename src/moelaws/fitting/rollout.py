"""Roll-out: a law fitted to the rows below a budget, and its errors above it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from moelaws.fitting.diagnostics import Rollout
from moelaws.fitting.goodness import errors
from moelaws.fitting.identifiability import require_identifiable
from moelaws.fitting.observations import Observations
from moelaws.fitting.problem import problem
from moelaws.fitting.rows import Rows
from moelaws.fitting.solve import solve
from moelaws.laws.base import Array, FitProtocol, FittableLaw, Mask
from moelaws.spec.errors import UserError

ROWS_PER_PARAMETER = 2  # at least, below a threshold
MAX_FITS = 8


def roll_out(
    law: FittableLaw,
    rows: Rows,
    name: str,
    protocol: FitProtocol,
    seed: int,
    progress: Callable[[str, int, int], None],
) -> list[Rollout]:
    """Fits the rows below each value of ``rows.rollout`` but the largest, and predicts the others.

    Of more than eight values eight quantiles are taken. ``name`` is what messages call the column.
    A row whose value is NaN is neither below nor above.

    Raises:
        UserError: where no value can be fitted.
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
        else:
            rollouts.append(_one(law, fitted, above, below, protocol, seed))
    progress("roll-out", len(cuts), len(cuts))
    if all(rollout.reason for rollout in rollouts):
        reason = rollouts[-1].reason if rollouts else f"{name} has one value"
        raise UserError(f"rollout {name}: no value of it can be fitted: {reason}")
    return rollouts


def _where(rows: Rows, mask: Mask) -> Observations:
    weights = None if rows.weights is None else rows.weights[mask] / rows.weights[mask].mean()
    columns = {name: x[mask] for name, x in rows.columns.items()}
    return Observations(columns=columns, response=rows.response[mask], weights=weights)


def _one(
    law: FittableLaw,
    fitted: Observations,
    above: Observations,
    below: float,
    protocol: FitProtocol,
    seed: int,
) -> Rollout:
    task = problem(law, fitted, protocol, seed)
    theta = task.working(solve(task, seed).phi)
    params = dict(zip(law.names, law.natural(theta).tolist(), strict=True))
    predicted = law.predict(params, above.columns)
    own_errors = errors(above.response, predicted, protocol.delta)
    return Rollout(below, n=len(fitted.response), params=params, errors=own_errors)


def thresholds(values: Array) -> list[float]:
    """Returns where a roll-out cuts: the finite ``values`` but the largest, or quantiles of them.

    Of more than eight values eight quantiles are taken.
    """
    values = values[np.isfinite(values)]
    below: Array = np.unique(values)[:-1]
    if len(below) > MAX_FITS:
        levels = np.arange(1, MAX_FITS + 1) / (MAX_FITS + 1)
        chosen = np.quantile(values, levels, method="lower")
        below = np.intersect1d(chosen, below)
    return [float(value) for value in below]
