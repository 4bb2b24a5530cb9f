"""One parabola or slope for all budgets of a sweep, with a level for each budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from moelaws.analysis.estimate import Estimate
from moelaws.analysis.minimum import Array, Minima, minima, percentile_interval
from moelaws.fitting.quantiles import Regression, least_squares

DRAWS = 2000


@dataclass(frozen=True)
class Parabola:
    """ln L over t in [low, high], which all budgets share but for a level of each.

    ``values`` (3,) are at the low end, the middle and the high end, and so are ``draws``
    (draws, 3), which are empty where there are no degrees of freedom. The levels are left out.
    """

    values: Array
    draws: Array
    low: float
    high: float
    n: int
    budgets: int

    def optimum(self) -> Minima:
        """Returns where ln L is least in [low, high]."""
        return minima(self.values[None], self.low, self.high)

    def optimum_interval(self, level: float) -> tuple[float, float]:
        """Returns the interval of the place of the least ln L; NaN without degrees of freedom."""
        if not len(self.draws):
            return float("nan"), float("nan")
        return percentile_interval(minima(self.draws, self.low, self.high).x, level)

    def excess(self, t: float) -> tuple[float, Array]:
        """Returns ln L at ``t`` minus its least in [low, high]: the estimate and its draws."""
        return (
            float(_above(self.values[None], self.low, self.high, t)[0]),
            _above(self.draws, self.low, self.high, t) if len(self.draws) else np.empty(0),
        )


def _above(y_n3: Array, low: float, high: float, t: float) -> Array:
    s = (t - (low + high) / 2) / ((high - low) / 2)
    slope, curvature = (y_n3[:, 2] - y_n3[:, 0]) / 2, y_n3[:, 0] - 2 * y_n3[:, 1] + y_n3[:, 2]
    at_t = y_n3[:, 1] + slope * s + curvature / 2 * s**2
    return np.asarray(at_t - minima(y_n3, low, high).y)


def parabola(t: Array, L: Array, C: Array) -> Parabola | None:
    """Returns the least-squares parabola of ln ``L`` (n,) in ``t`` (n,) over budgets ``C`` (n,).

    None where no budget has three values of ``t`` or the rows do not determine the parabola.
    """
    if not len(t) or pd.Series(t).groupby(C).nunique().max() < 3:
        return None
    low, high = float(t.min()), float(t.max())
    s = (t - (low + high) / 2) / ((high - low) / 2)
    terms = regression(np.column_stack([s, s**2]), np.log(L), C)
    if terms is None:
        return None
    ends = np.array([[-1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    values, draws = ends @ terms.coefficients, terms.draws @ ends.T
    return Parabola(values, draws, low, high, len(t), len(np.unique(C)))


def slope(x: Array, y: Array, groups: ArrayLike, level: float = 0.9) -> Estimate:
    """Returns the slope of ``y`` (n,) on ``x`` (n,) with a level a group, and its interval."""
    estimates = regression(x[:, None], y, groups)
    if estimates is None:
        return Estimate(float("nan"), float("nan"), float("nan"), len(y))
    ends = percentile_interval(estimates.draws[:, 0], level)
    return Estimate(float(estimates.coefficients[0]), *ends, len(y))


def regression(X: Array, y: Array, groups: ArrayLike) -> Regression | None:
    """Least squares of ``y`` (n,) on ``X`` (n, P) with a level for each of the ``groups`` (n,).

    None where the rows do not determine the estimates.
    """
    group = np.asarray(groups)
    within_X = X - pd.DataFrame(X).groupby(group).transform("mean").to_numpy()
    within_y = y - pd.Series(y).groupby(group).transform("mean").to_numpy()
    P = X.shape[1]
    if len(y) < P or np.linalg.matrix_rank(within_X, tol=1e-9) < P:
        return None
    return least_squares(within_X, within_y, draws=DRAWS, absorbed=len(np.unique(group)))
