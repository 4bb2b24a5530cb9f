"""Fitted loss curves L(C) of architectures, with their draws: what leverage is read from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs, at
from moelaws.analysis.minimum import Array
from moelaws.fitting.report import FitPart
from moelaws.laws.leverage.curve import LAW, efficiency_leverage

DENSE = "curve_dense"  # the study's fit of the dense counterpart


@dataclass(frozen=True)
class Curve:
    """L = alpha C^beta + b of one architecture (App K, leverage) and the runs behind it."""

    params: dict[str, float]
    draws: pd.DataFrame  # a row a draw of the parameters
    rows: pd.DataFrame
    level: float

    def loss(self, C: Array) -> Array:
        """Loss (n,) in nats/token at compute ``C`` (n,), FLOP."""
        return LAW.predict(self.params, {"C": C})

    def loss_band(self, C: Array) -> dict[str, Array]:
        """Ends low and high (n,) of its interval at ``C`` (n,); empty without draws."""
        if not len(self.draws):
            return {}
        drawn = LAW.predict_batch(_working(self.draws), {"C": C})
        low, high = np.quantile(drawn, [(1 - self.level) / 2, (1 + self.level) / 2], axis=0)
        return {"low": low, "high": high}

    def compute_for(self, L: Array) -> Array:
        """Compute (n,) at which the curve comes down to the losses ``L`` (n,); NaN if never."""
        return _compute_for(self.params, np.asarray(L, float))

    def compute_draws(self, L: Array) -> Array:
        """The same for each draw: losses (n,) or (draws, n) to compute (draws, n)."""
        columns = {name: self.draws[name].to_numpy(float)[:, None] for name in LAW.names}
        return _compute_for(columns, np.asarray(L, float))

    def noise(self) -> float:
        """Standard deviation of ln L of a run about the curve; NaN without degrees of freedom."""
        C, L = self.rows["C_leverage"].to_numpy(float), self.rows["L"].to_numpy(float)
        freedom = len(L) - len(LAW.names)
        if freedom < 1:
            return float("nan")
        return float(np.sqrt(np.sum(np.log(L / self.loss(C)) ** 2) / freedom))


def curve(inputs: Inputs, fit: str) -> Curve:
    """The curve of a fit that is not split."""
    report = inputs.fit(fit)
    return _curve(report.parts[0], inputs.draws(fit), inputs.rows(fit), report.level)


def curves(inputs: Inputs, fit: str) -> Iterator[Curve]:
    """The curves of a fit that is split, in the order of its report."""
    report, rows, draws = inputs.fit(fit), inputs.rows(fit), inputs.draws(fit)
    for part in report.parts:
        value = part.where[report.split_by]
        own = at(rows, report.split_by, value), at(draws, report.split_by, value)
        yield _curve(part, own[1], own[0], report.level)


def leverage_draws(dense: Curve, moe: Curve, C: Array) -> Array:
    """Efficiency leverage (draws, n) at the mixture's compute ``C`` (n,), draw by draw.

    The fits are independent: row is paired with row. NaN where the dense curve never gets there.
    """
    n = min(len(dense.draws), len(moe.draws))
    of_dense, of_moe = (
        {name: curve.draws[name].to_numpy(float)[:n, None] for name in LAW.names}
        for curve in (dense, moe)
    )
    return efficiency_leverage(of_dense, of_moe, C).EL


def _curve(part: FitPart, draws: pd.DataFrame, rows: pd.DataFrame, level: float) -> Curve:
    return Curve(part.estimates(), draws[list(LAW.names)], rows.reset_index(drop=True), level)


def _working(draws: pd.DataFrame) -> Array:
    """Draws on the working scale (B, P)."""
    return np.column_stack(
        [
            np.log(draws[p.name]) if p.scale == "log" else draws[p.name].to_numpy(float)
            for p in LAW.parameters
        ]
    )


def _compute_for(params: dict[str, Array] | dict[str, float], L: Array) -> Array:
    alpha, beta, b = (np.asarray(params[name], float) for name in LAW.names)
    falls = np.broadcast_to(beta < 0, np.broadcast_shapes(np.shape(beta), L.shape))
    excess = np.where(falls & (b < L), L - b, np.nan)
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(np.log(excess / alpha) / np.where(beta < 0, beta, -1.0)))
