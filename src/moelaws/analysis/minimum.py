"""The minimum of a fitted quadratic over the range that was measured.

A quadratic always has a vertex, but only one inside the measured range is an observation. So an
optimum here is the argmin over that range. At an end of the range it is a bound, and says so.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moelaws.fitting.quantiles import least_squares, percentiles

Array = NDArray[np.float64]

AT_LOW_END = "at the low end of the measured range"
AT_HIGH_END = "at the high end of the measured range"
NOT_CONVEX = "the curve is not convex"
# With so many draws of a parabola's coefficients a 90 % interval holds between 89 and 91 %.
DRAWS = 1000
TOO_FEW = "fewer than three sizes"


@dataclass(frozen=True)
class Minima:
    """The lowest points of n quadratics over [low, high], each array of shape (n,)."""

    x: Array
    y: Array
    curvature: Array  # second derivative of y by x
    inside: NDArray[np.bool_]  # whether it is the curve's own minimum, not an end of the range
    convex: NDArray[np.bool_]
    at_high_end: NDArray[np.bool_]  # of those that are not inside

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns why each is not inside; empty where it is."""
        ends = np.where(self.at_high_end, AT_HIGH_END, AT_LOW_END)
        why = np.where(self.inside, "", np.where(self.convex, ends, NOT_CONVEX))
        return tuple(why.tolist())


def minima_along(y_nm: Array, x: Array) -> Minima:
    """Returns the lowest points of n smooth curves, given by values at evenly spaced ``x`` (m,).

    Each is that of the parabola through the lowest value and its neighbours.
    """
    y_nm = np.atleast_2d(y_nm)
    i = np.clip(y_nm.argmin(axis=1), 1, len(x) - 2)
    lowest = np.take_along_axis(y_nm, i[:, None] + np.array([-1, 0, 1]), axis=1)
    return minima(lowest, x[i - 1], x[i + 1])


def minima(y_n3: Array, low: float | Array, high: float | Array) -> Minima:
    """Returns the lowest points over [low, high] of n quadratics.

    Their values are those at low, in the middle and at high. With t from -1 to 1 over the range,
    y = y_1 + (y_2 - y_0)/2 t + (y_0 - 2 y_1 + y_2)/2 t^2.
    """
    slope, curvature = terms(y_n3)
    convex = curvature > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        vertex = -slope / curvature
    inside = convex & (np.abs(vertex) < 1)
    t = np.where(inside, vertex, np.where(slope < 0, 1.0, -1.0))
    x = (low + high) / 2 + t * (high - low) / 2
    y = np.atleast_2d(y_n3)[:, 1] + slope * t + curvature / 2 * t**2
    per_square = curvature / ((high - low) / 2) ** 2
    return Minima(x, y, per_square, inside, convex, t > 0)


def terms(y_n3: Array) -> tuple[Array, Array]:
    """Returns slopes and curvatures (n,) in the middle of quadratics over t from -1 to 1."""
    y_0, y_1, y_2 = np.atleast_2d(y_n3).T
    return (y_2 - y_0) / 2, y_0 - 2 * y_1 + y_2


def percentile_interval(draws: Array, level: float) -> tuple[float, float]:
    """Returns the equal-tailed interval of the finite ``draws`` (n,); NaN if there are none."""
    low, high = percentiles(draws[np.isfinite(draws)], level)
    return float(low), float(high)


def parabola_minima(u: ArrayLike, L: ArrayLike, seed: int = 0) -> Minima | None:
    """Returns the lowest points over ``u`` (n,) of the least-squares parabola of ``L`` (n,) on it.

    The first is of the estimate. The others are of draws from the distribution under independent
    normal errors: Student t with n - 3 degrees of freedom. With n = 3 the fit is exact, nothing is
    known of the error, and there are no draws. Parabolas whose minima are compared need draws of
    another ``seed`` each. None where ``u`` has fewer than three values.
    """
    x = np.asarray(u, float)
    if len(np.unique(x)) < 3:
        return None
    low, high = float(x.min()), float(x.max())
    middle = (low + high) / 2
    X = np.vander((x - middle) / (high - middle), 3)
    at_3 = np.vander([-1.0, 0.0, 1.0], 3)
    return minima(least_squares(X, L, draws=DRAWS, seed=seed) @ at_3.T, low, high)
