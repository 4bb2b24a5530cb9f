"""Roll-out: a law fitted to the rows below a budget, and its errors above it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

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
) -> list[dict[str, Any]]:
    """Fits the rows below each value of ``rows.rollout`` but the largest, and predicts the others.

    Of more than eight values eight quantiles are taken. ``name`` is what messages call it. Rows
    where it is NaN are neither below nor above.

    Returns for each: ``below``, the largest value fitted; ``n`` rows fitted; ``params``; ``errors``
    on the rows above, as ``goodness.errors`` gives them; or ``reason`` why it was not fitted.

    Raises:
        UserError: where no value can be fitted.
    """
    assert rows.rollout is not None
    thresholds = _thresholds(rows.rollout[np.isfinite(rows.rollout)])
    entries: list[dict[str, Any]] = []
    for i, below in enumerate(thresholds):
        progress("roll-out", i, len(thresholds))
        fitted, above = _where(rows, rows.rollout <= below), _where(rows, rows.rollout > below)
        try:
            require_identifiable(law, fitted.columns)
            n, needed = len(fitted.response), ROWS_PER_PARAMETER * len(law.names)
            if n < needed:
                raise UserError(
                    f"{n} rows for {len(law.names)} parameters; at least {needed} are wanted"
                )
        except UserError as error:
            entries.append({"below": below, "reason": str(error)})
        else:
            entries.append({"below": below} | _one(law, fitted, above, protocol, seed))
    progress("roll-out", len(thresholds), len(thresholds))
    if not any("errors" in entry for entry in entries):
        reason = entries[-1]["reason"] if entries else f"{name} has one value"
        raise UserError(f"rollout {name}: no value of it can be fitted: {reason}")
    return entries


def _where(rows: Rows, mask: Mask) -> Observations:
    weights = None if rows.weights is None else rows.weights[mask] / rows.weights[mask].mean()
    columns = {name: x[mask] for name, x in rows.columns.items()}
    return Observations(columns=columns, response=rows.response[mask], weights=weights)


def _one(
    law: FittableLaw, fitted: Observations, above: Observations, protocol: FitProtocol, seed: int
) -> dict[str, Any]:
    task = problem(law, fitted, protocol, seed)
    theta = task.working(solve(task, seed).phi)
    params = dict(zip(law.names, law.natural(theta).tolist(), strict=True))
    predicted = law.predict(params, above.columns)
    return {
        "n": len(fitted.response),
        "params": params,
        "errors": errors(above.response, predicted, protocol.delta),
    }


def _thresholds(values: Array) -> list[float]:
    below: Array = np.unique(values)[:-1]
    if len(below) > MAX_FITS:
        levels = np.arange(1, MAX_FITS + 1) / (MAX_FITS + 1)
        chosen = np.quantile(values, levels, method="lower")
        below = np.intersect1d(chosen, below)
    return [float(value) for value in below]
