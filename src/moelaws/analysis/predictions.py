"""Predictions by a fitted loss law for its runs, and which of two laws predicts better."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.effect import Effect
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.fitting import prediction
from moelaws.fitting.quantiles import jackknife
from moelaws.fitting.report import group_draws
from moelaws.fitting.rows import selected_rows
from moelaws.fitting.variables import read_variables
from moelaws.laws.base import Mask


@dataclass(frozen=True)
class Prediction:
    """The losses that a fitted law predicts for the rows of a table."""

    rows: pd.DataFrame
    used: Mask  # (n,) rows that the law was fitted to
    held: Mask  # (n,) rows that the fit held out
    value: Array  # (n,) predicted losses in nats/token; NaN for rows neither fitted nor held out
    draws: Array  # (B, n) of the fit's draws; B = 0 where it has none

    def of(self, mask: Mask) -> pd.DataFrame:
        """Returns the rows of ``mask`` with a column ``predicted``."""
        return self.rows.assign(predicted=self.value)[mask]


def predicted(inputs: FittedInputs, fit: str, rows: pd.DataFrame) -> Prediction:
    """Returns the predictions of the fit ``fit``, declared and not split, for each of ``rows``."""
    report, spec = inputs.fit(fit), inputs.spec(fit)
    law = inputs.law(fit)
    used, held = selected_rows(rows, law, spec, {})
    natural = inputs.draws(fit).reindex(columns=[*law.names]).to_numpy(float)
    value, draws = np.full(len(rows), np.nan), np.full((len(natural), len(rows)), np.nan)
    known = used | held
    if known.any():
        variables = read_variables(law, rows[known], spec).values
        fitted = report.group({})
        value[known] = law.predict(fitted.estimates(), variables)
        draws[:, known] = prediction.of_draws(law, fitted, natural, variables)
    return Prediction(rows, used, held, value, draws)


def rmse(of: Prediction, mask: Mask) -> float:
    """Returns the root mean square error (nats/token) on the rows of ``mask``; NaN if none."""
    residual = (of.rows["L"].to_numpy(float) - of.value)[mask]
    return float(np.sqrt(np.mean(residual**2))) if len(residual) else np.nan


def excess(worse: Prediction, better: Prediction) -> Effect:
    """Returns the RMSE of ``worse`` minus that of ``better`` on the runs that both held out.

    Both must be of the same table. The interval pairs the draws of both fits with resampled
    held-out rows; it is NaN without draws or with fewer than two rows.
    """
    held = worse.held & better.held
    n = int(held.sum())
    value = rmse(worse, held) - rmse(better, held)
    L = worse.rows["L"].to_numpy(float)[held]
    count = min(len(worse.draws), len(better.draws))
    if not count or n < 2:
        return Effect(value, n=n)
    index = np.random.default_rng(0).integers(n, size=(count, n))
    errors = [
        np.sqrt(np.take_along_axis((of.draws[:count, held] - L) ** 2, index, axis=1).mean(axis=1))
        for of in (worse, better)
    ]
    return Effect(value, *percentile_interval(errors[0] - errors[1], 0.9), n)


def excess_by_blocks(
    worse: Prediction, better: Prediction, columns: Sequence[str], level: float
) -> Effect:
    """Returns the same difference, by a jackknife over blocks of held-out runs.

    Runs of a block agree in all ``columns`` and err together. The fits stay as they are: some
    refits to drawn rows miss by nats, and with them no interval would tell anything. The value is
    NaN with fewer than two blocks.
    """
    held = worse.held & better.held
    n, runs = int(held.sum()), worse.rows[held]
    blocks = runs.groupby([*columns], dropna=False).ngroup().to_numpy()
    if len(np.unique(blocks)) < 2:
        return Effect(np.nan, n=n)

    def more(kept: Mask) -> float:
        mask = held.copy()
        mask[held] = kept
        return rmse(worse, mask) - rmse(better, mask)

    value = more(np.ones(n, bool))
    left_out = np.array([[more(blocks != block)] for block in np.unique(blocks)])
    (low,), (high,) = jackknife(np.array([value]), left_out, level)
    return Effect(value, float(low), float(high), n)


def curve(inputs: FittedInputs, fit: str, **columns: Any) -> prediction.Prediction:
    """Returns what the ``fit``, which is not split, predicts at ``columns``, with its interval."""
    report = inputs.fit(fit)
    draws = group_draws(inputs.fits[fit], report, report.group({}))
    return prediction.predict(inputs.law(fit), report.group({}), draws, columns, report.level)
