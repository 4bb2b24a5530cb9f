"""Roll-out: a law fitted to the rows below a budget, and its errors above it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from moelaws.fitting.goodness import errors
from moelaws.fitting.identifiability import require_identifiable
from moelaws.fitting.problem import problem
from moelaws.fitting.rows import Rows
from moelaws.fitting.solve import solve
from moelaws.laws.base import Array, FitProtocol, FittableLaw, Mask
from moelaws.spec.errors import UserError

LEAST = 2  # rows a parameter
MOST = 8  # fits


def roll_out(
    law: FittableLaw,
    rows: Rows,
    name: str,
    protocol: FitProtocol,
    label: str,
    seed: int,
    progress: Callable[[str, int, int], None],
) -> list[dict[str, Any]]:
    """One entry a value of ``rows.rollout`` but the largest; eight quantiles of more than that.

    ``name`` is what messages call it. Rows where it is NaN are neither below nor above.

    Returns for each: ``below``, the largest value fitted; ``n`` rows fitted; ``params``; ``errors``
    on the rows above, as ``goodness.errors`` gives them; or ``reason`` why it was not fitted.

    Raises:
        UserError: where no value can be fitted.
    """
    assert rows.rollout is not None
    thresholds = _thresholds(rows.rollout[np.isfinite(rows.rollout)])
    found: list[dict[str, Any]] = []
    for i, below in enumerate(thresholds):
        progress("roll-out", i, len(thresholds))
        fitted, above = rows.rollout <= below, rows.rollout > below
        try:
            _require_enough(law, rows, fitted, label)
        except UserError as error:
            found.append({"below": below, "reason": str(error).removeprefix(f"{label}: ")})
        else:
            found.append({"below": below} | _one(law, rows, fitted, above, protocol, seed))
    progress("roll-out", len(thresholds), len(thresholds))
    if not any("errors" in entry for entry in found):
        reason = found[-1]["reason"] if found else f"{name} has one value"
        raise UserError(f"{label}: rollout {name}: no value of it can be fitted: {reason}")
    return found


def _require_enough(law: FittableLaw, rows: Rows, fitted: Mask, label: str) -> None:
    require_identifiable(law, {v: x[fitted] for v, x in rows.columns.items()}, label)
    n, P = int(fitted.sum()), len(law.names)
    if n < LEAST * P:
        raise UserError(f"{label}: {n} rows for {P} parameters; at least {LEAST * P} are wanted")


def _one(
    law: FittableLaw, rows: Rows, fitted: Mask, above: Mask, protocol: FitProtocol, seed: int
) -> dict[str, Any]:
    weights = None if rows.weights is None else rows.weights[fitted] / rows.weights[fitted].mean()
    columns = {name: x[fitted] for name, x in rows.columns.items()}
    task = problem(law, columns, rows.response[fitted], weights, protocol, seed)
    theta = task.working(solve(task, seed).phi)
    params = dict(zip(law.names, law.natural(theta).tolist(), strict=True))
    predicted = law.predict(params, {name: x[above] for name, x in rows.columns.items()})
    return {
        "n": int(fitted.sum()),
        "params": params,
        "errors": errors(rows.response[above], predicted, protocol.delta),
    }


def _thresholds(values: Array) -> list[float]:
    below: Array = np.unique(values)[:-1]
    if len(below) > MOST:
        levels = np.arange(1, MOST + 1) / (MOST + 1)
        chosen = np.quantile(values, levels, method="lower")
        below = np.intersect1d(chosen, below)
    return [float(value) for value in below]
