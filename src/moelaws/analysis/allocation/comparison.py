"""Which of several laws predicts the held-out runs better, with the doubt that both leave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws import laws
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.fitting.rows import selected_rows
from moelaws.fitting.variables import read_variables

TABLE = "runs"


@dataclass(frozen=True)
class Predicted:
    """A fitted law on the runs of the derived table ``runs``.

    Attributes:
        rows: the runs.
        held: (n,) which of them the fit held out; ``used``: which it was fitted to.
        value: (n,) predicted losses in nats/token.
        draws: (B, n) of the fit's draws; B = 0 where it has none.
    """

    rows: pd.DataFrame
    used: NDArray[np.bool_]
    held: NDArray[np.bool_]
    value: Array
    draws: Array


def predicted(inputs: Inputs, fit: str) -> Predicted:
    """What the fit ``fit`` of a loss law says of each run.

    Raises:
        UserError: where the fit or the table ``runs`` is not declared.
    """
    report, spec, rows = inputs.fit(fit), inputs.spec(fit), inputs.derived(TABLE)
    law = laws.fittable(report.law)
    used, held = selected_rows(rows, law, spec, {})
    variables = read_variables(law, rows, spec).values
    drawn = inputs.draws(fit)
    natural = (
        drawn[list(law.names)].to_numpy(float) if len(drawn) else np.empty((0, len(law.names)))
    )
    theta = [law.vector(dict(zip(law.names, row, strict=True))) for row in natural]
    draws = law.predict_batch(np.array(theta), variables) if theta else np.empty((0, len(rows)))
    value = law.predict(report.part({}).estimates(), variables)
    return Predicted(rows, used, held, value, draws)


def rmse(of: Predicted, mask: NDArray[np.bool_]) -> float:
    """Root mean square error (nats/token) on the rows of ``mask``; NaN without any."""
    residual = (of.rows["L"].to_numpy(float) - of.value)[mask]
    return float(np.sqrt(np.mean(residual**2))) if len(residual) else float("nan")


@dataclass(frozen=True)
class Excess:
    """How much larger the held-out error of one law is than another's, nats/token."""

    value: float
    low: float
    high: float
    n: int


def excess(worse: Predicted, better: Predicted, level: float = 0.9, seed: int = 0) -> Excess:
    """RMSE of ``worse`` minus RMSE of ``better`` on the runs that both held out.

    The interval pairs the draws of both fits with resampled held-out rows; NaN without draws or
    with fewer than two rows. Both must be of the same table.
    """
    held = worse.held & better.held
    n = int(held.sum())
    nan = float("nan")
    if not n:
        return Excess(nan, nan, nan, 0)
    value = rmse(worse, held) - rmse(better, held)
    L = worse.rows["L"].to_numpy(float)[held]
    count = min(len(worse.draws), len(better.draws))
    if not count or n < 2:
        return Excess(value, nan, nan, n)
    index = np.random.default_rng(seed).integers(n, size=(count, n))
    errors = [
        np.sqrt(np.take_along_axis((of.draws[:count, held] - L) ** 2, index, axis=1).mean(axis=1))
        for of in (worse, better)
    ]
    return Excess(value, *percentile_interval(errors[0] - errors[1], level), n)
