"""What all budgets of a sweep say together: one parabola or slope, a level for each budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from moelaws.analysis.minimum import Array, Minima, minima, percentile_interval

DRAWS = 2000


@dataclass(frozen=True)
class Parabola:
    """ln L over t in [low, high], common to the budgets but for a level of each.

    ``values`` (3,) at the low end, the middle and the high end, ``draws`` (draws, 3) of the same;
    empty where there are no degrees of freedom. The levels are left out.
    """

    values: Array
    draws: Array
    low: float
    high: float
    n: int
    budgets: int

    def optimum(self) -> Minima:
        """Where ln L is least in [low, high]."""
        return minima(self.values[None], self.low, self.high)

    def optimum_interval(self, level: float) -> tuple[float, float]:
        """Interval of the place of the least ln L; NaN without degrees of freedom."""
        if not len(self.draws):
            return float("nan"), float("nan")
        return percentile_interval(minima(self.draws, self.low, self.high).x, level)

    def excess(self, t: float) -> tuple[float, Array]:
        """ln L at ``t`` over its least in [low, high]: the estimate and the draws (draws,)."""
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
    """The parabola of ln ``L`` (n,) in ``t`` (n,) pooled over budgets ``C`` (n,), least squares.

    None where no budget has three values of t or all are fitted exactly by fewer rows than terms.
    """
    if len(np.unique(t)) < 3 or _most_values(t, C) < 3:
        return None
    low, high = float(t.min()), float(t.max())
    s = (t - (low + high) / 2) / ((high - low) / 2)
    found = regression(np.column_stack([s, s**2]), np.log(L), C)
    if found is None:
        return None
    estimate, draws = found
    ends = np.array([[-1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    return Parabola(ends @ estimate, draws @ ends.T, low, high, len(t), len(np.unique(C)))


def slope(x: Array, y: Array, groups: Array, level: float = 0.9) -> tuple[float, float, float]:
    """Slope of ``y`` (n,) on ``x`` (n,) with a level a group, and its interval; NaN if unknown."""
    found = regression(x[:, None], y, groups)
    if found is None:
        return float("nan"), float("nan"), float("nan")
    estimate, draws = found
    return (float(estimate[0]), *percentile_interval(draws[:, 0], level))


def regression(X: Array, y: Array, groups: Array, seed: int = 0) -> tuple[Array, Array] | None:
    """Least squares of ``y`` (n,) on ``X`` (n, P) within groups: estimates (P,), draws (draws, P).

    Draws are of the Student-t distribution of the estimates under independent normal errors, empty
    without degrees of freedom. None where the rows do not determine the estimates.
    """
    by = pd.Series(groups)
    within_X = X - pd.DataFrame(X).groupby(by).transform("mean").to_numpy()
    within_y = y - pd.Series(y).groupby(by).transform("mean").to_numpy()
    P = X.shape[1]
    if len(y) < P or np.linalg.matrix_rank(within_X, tol=1e-9) < P:
        return None
    estimate, *_ = np.linalg.lstsq(within_X, within_y, rcond=None)
    freedom = len(y) - by.nunique() - P
    if freedom < 1:
        return estimate, np.empty((0, P))
    scale = np.sqrt(np.sum((within_y - within_X @ estimate) ** 2) / freedom)
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal((DRAWS, P)) @ np.linalg.inv(np.linalg.qr(within_X).R).T
    return estimate, estimate + scale * normal / np.sqrt(
        rng.chisquare(freedom, (DRAWS, 1)) / freedom
    )


def _most_values(t: Array, C: Array) -> int:
    return int(pd.Series(t).groupby(C).nunique().max())
