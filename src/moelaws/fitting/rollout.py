"""Roll-out: a law fitted to the rows below a budget, and its errors above it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from moelaws.fitting.diagnostics import errors, require_identifiable
from moelaws.fitting.problem import problem
from moelaws.fitting.rows import parts
from moelaws.fitting.solve import solve
from moelaws.fitting.variables import numbers, read_variables
from moelaws.laws.base import Array, FitProtocol, FittableLaw
from moelaws.spec.errors import UserError
from moelaws.spec.study import Fit

LEAST = 2  # rows a parameter
MOST = 8  # fits


def roll_out(
    law: FittableLaw,
    table: pd.DataFrame,
    spec: Fit,
    protocol: FitProtocol,
    where: Mapping[str, float],
    label: str,
    units: Mapping[str, str],
    seed: int,
    progress: Callable[[str, int, int], None],
) -> list[dict[str, Any]]:
    """One entry a value of ``spec.rollout`` but the largest; eight quantiles of more than that.

    Returns for each: ``below``, the largest value fitted; ``n`` rows fitted; ``params``; ``errors``
    on the rows above, as ``diagnostics.errors`` gives them; or ``reason`` why it was not fitted.

    Raises:
        UserError: where the column is not there or no value of it can be fitted.
    """
    given = read_variables(law, table, spec, label, units).values
    column = given.get(spec.rollout)
    if column is None:
        column = numbers(table, spec.rollout, label, "rollout")
    own = " and ".join([spec.rows, *(f"{name} == {value!r}" for name, value in where.items())])
    own = own.removeprefix(" and ")
    thresholds = _thresholds(column[np.isfinite(column)])
    found: list[dict[str, Any]] = []
    for i, below in enumerate(thresholds):
        progress("roll-out", i, len(thresholds))
        cut = spec.model_copy(
            update={"rows": own, "holdout": f"{spec.rollout} > {below!r}", "split_by": ""}
        )
        try:
            (rows,) = parts(law, table, cut, label, units)
            require_identifiable(law, rows.columns, label)
            if len(rows.response) < LEAST * len(law.names):
                raise UserError(
                    f"{len(rows.response)} rows for {len(law.names)} parameters; at least "
                    f"{LEAST * len(law.names)} are wanted"
                )
        except UserError as error:
            found.append({"below": below, "reason": str(error).removeprefix(f"{label}: ")})
            continue
        task = problem(law, rows.columns, rows.response, rows.weights, protocol, seed)
        theta = task.working(solve(task, seed).phi)
        params = dict(zip(law.names, law.natural(theta).tolist(), strict=True))
        above = law.predict(params, rows.held_columns)
        found.append(
            {
                "below": below,
                "n": len(rows.response),
                "params": params,
                "errors": errors(rows.held_response, above, protocol.delta),
            }
        )
    progress("roll-out", len(thresholds), len(thresholds))
    if not any("errors" in entry for entry in found):
        reason = found[-1]["reason"] if found else f"{spec.rollout} has one value"
        raise UserError(f"{label}: rollout {spec.rollout}: no value of it can be fitted: {reason}")
    return found


def _thresholds(values: Array) -> list[float]:
    distinct = np.unique(values)[:-1]
    if len(distinct) <= MOST:
        return [float(value) for value in distinct]
    levels = np.arange(1, MOST + 1) / (MOST + 1)
    return [float(v) for v in np.unique(np.quantile(values, levels, method="lower"))]
