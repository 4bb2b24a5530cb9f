"""How leverage changes with the activation ratio and with compute, over all curves at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from moelaws.analysis.estimate import Estimate
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.studies.leverage.derived.curves import DENSE, Curve, curve, curves
from moelaws.studies.leverage.derived.efficiency import leverage_draws
from moelaws.studies.leverage.laws.curve import efficiency_leverage

MAX_UNREACHED = 0.1  # share of draws without a leverage beyond which no interval is given


@dataclass(frozen=True)
class Trend:
    """Slope of ln EL on ln A (a level a budget) or on ln C (a level an architecture).

    ``unreached`` is the share of draws in which the dense curve never comes down to a mixture's
    loss; the slope has no interval where it is too large.
    """

    slope: Estimate
    architectures: int
    budgets: int
    unreached: float


def trend(
    inputs: FittedInputs, over: Literal["A", "C"], fit: str = "curve_activation"
) -> Trend | None:
    """Returns the trend over the curves of ``fit``, at the budgets that all of them share.

    Its interval is from the draws of these curves and of the dense one. None where there are not
    two architectures, or budgets, to compare.
    """
    dense, mixtures = curve(inputs, DENSE), list(curves(inputs, fit))
    C = _common(mixtures)
    A = np.array([1 - float(moe.rows["S"].iloc[0]) for moe in mixtures])
    if min(len(C), len(mixtures)) < 2:
        return None
    best = np.stack([np.log(efficiency_leverage(dense.params, m.params, C).EL) for m in mixtures])
    drawn = [np.log(leverage_draws(dense, moe, C)) for moe in mixtures]
    n = min(len(draws_BC) for draws_BC in drawn)
    draws_BAC = np.stack([draws_BC[:n] for draws_BC in drawn], axis=1)
    axis, x = (1, np.log(A)) if over == "A" else (2, np.log(C))
    slopes = _slopes(draws_BAC, x, axis)
    unreached = float(np.isnan(slopes).mean()) if n else 1.0
    low, high = np.nan, np.nan
    if unreached <= MAX_UNREACHED:
        low, high = percentile_interval(slopes, dense.level)
    slope = float(_slopes(best[None], x, axis)[0])
    runs = sum(len(curve.rows) for curve in (dense, *mixtures))
    return Trend(Estimate(slope, low, high, runs), len(mixtures), len(C), unreached)


def _common(mixtures: list[Curve]) -> Array:
    """Budgets (n,) that every one of the architectures was trained at."""
    budgets = [set(moe.rows["C"].astype(float)) for moe in mixtures]
    return np.array(sorted(set.intersection(*budgets))) if budgets else np.empty(0)


def _slopes(ln_EL_BAC: Array, x: Array, axis: int) -> Array:
    """Slope (B,) of ln EL (B, A, C) on ``x`` along ``axis``, with levels along the other one."""
    centred = x - x.mean()
    weights = centred / np.sum(centred**2)
    shape = (1, -1, 1) if axis == 1 else (1, 1, -1)
    per_level = np.sum(ln_EL_BAC * weights.reshape(shape), axis=axis)
    return np.asarray(per_level.mean(axis=1))
