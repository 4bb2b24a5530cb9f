"""Fitted loss curves L(C) of architectures with their draws, from which leverage is read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from moelaws.analysis.contrasts import Minimum, influence
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import at
from moelaws.analysis.minimum import Array
from moelaws.fitting.quantiles import percentiles
from moelaws.fitting.report import FitPart
from moelaws.studies.leverage.laws.curve import LAW

DENSE = "curve_dense"  # the study's fit of the dense counterpart


@dataclass(frozen=True)
class Curve:
    """The loss L = alpha C^beta + b of one architecture (App K, leverage).

    Attributes:
        params: alpha, beta and b.
        draws: a row a draw of the bootstrap, with a column for each parameter.
        rows: the runs that the curve was fitted to.
        level: of its intervals.
        delta: threshold of the fit's Huber losses, as of ``Minimum``.
        at_bounds: parameters that a bound holds.
    """

    params: dict[str, float]
    draws: pd.DataFrame
    rows: pd.DataFrame
    level: float
    delta: float = LAW.protocol.delta
    at_bounds: Sequence[str] = ()

    def loss(self, C: Array) -> Array:
        """Returns the loss (n,) in nats/token at compute ``C`` (n,), FLOP."""
        return LAW.predict(self.params, {"C": C})

    def loss_band(self, C: Array) -> dict[str, Array]:
        """Returns the ends low and high (n,) of the loss at ``C`` (n,); empty without draws."""
        if not len(self.draws):
            return {}
        drawn = LAW.predict_batch(_working(self.draws), {"C": C})
        low, high = percentiles(drawn, self.level)
        return {"low": low, "high": high}

    def influence(self, C: Array) -> Array:
        """Returns how the loss at ``C`` (m,) moves with that of each of the runs, (m, n)."""
        columns = {"C": self.rows["C_leverage"].to_numpy(float)}
        losses = self.rows["L"].to_numpy(float)
        fitted = Minimum(self.params, columns, losses, self.delta, self.at_bounds)
        return influence(LAW, fitted, {"C": np.asarray(C, float)})

    def slope(self, C: Array) -> Array:
        """Returns dL / d ln C (n,) at ``C`` (n,)."""
        alpha, beta = self.params["alpha"], self.params["beta"]
        return alpha * beta * np.asarray(C, float) ** beta

    def compute_for(self, L: Array) -> Array:
        """Returns the compute (n,) where the curve has the losses ``L`` (n,); NaN if nowhere."""
        return _compute_for(self.params, np.asarray(L, float))

    def compute_draws(self, L: Array) -> Array:
        """Returns the same for each draw: losses (n,) or (draws, n) to compute (draws, n)."""
        return _compute_for(self.drawn_params(), np.asarray(L, float))

    def drawn_params(self, n: int | None = None) -> dict[str, Array]:
        """Returns the parameters (n, 1) of the first ``n`` draws, by default of all."""
        return {name: self.draws[name].to_numpy(float)[:n, None] for name in LAW.names}

    def noise(self) -> float:
        """Returns the standard deviation of ln L about the curve; NaN without freedom."""
        C, L = self.rows["C_leverage"].to_numpy(float), self.rows["L"].to_numpy(float)
        freedom = len(L) - len(LAW.names)
        if freedom < 1:
            return float("nan")
        return float(np.sqrt(np.sum(np.log(L / self.loss(C)) ** 2) / freedom))


def curve(inputs: FittedInputs, fit: str) -> Curve:
    """Returns the curve of a fit that is not split."""
    report = inputs.fit(fit)
    return _curve(report.parts[0], inputs.draws(fit), inputs.rows(fit), report.level)


def curves(inputs: FittedInputs, fit: str) -> Iterator[Curve]:
    """Yields the curves of a fit that is split, in the order of its report."""
    report, rows, draws = inputs.fit(fit), inputs.rows(fit), inputs.draws(fit)
    for part in report.parts:
        value = part.where[report.split_by]
        own_rows, own_draws = (at(frame, report.split_by, value) for frame in (rows, draws))
        yield _curve(part, own_draws, own_rows, report.level)


def _curve(part: FitPart, draws: pd.DataFrame, rows: pd.DataFrame, level: float) -> Curve:
    known = part.diagnostics
    delta = {"huber": known.delta, "squared": math.inf}.get(known.objective, math.nan)
    own, rows = draws[list(LAW.names)], rows.reset_index(drop=True)
    return Curve(part.estimates(), own, rows, level, delta, tuple(known.at_bounds))


def _working(draws: pd.DataFrame) -> Array:
    """Returns the draws (B, P) on the scale that the law works on."""
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
