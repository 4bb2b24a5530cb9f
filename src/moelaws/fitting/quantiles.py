"""Ends of intervals: of draws, of Student's t, and by leaving out one group of rows at a time."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from moelaws.laws.base import Array


def percentiles(
    draws: Array, level: float, method: Literal["linear", "inverted_cdf"] = "linear"
) -> tuple[Array, Array]:
    """Returns bounds (...) of the central ``level`` of draws (B, ...); NaN where there is none.

    By the method ``inverted_cdf`` the bounds are draws themselves: nothing lies between a number
    and an infinite draw.
    """
    if not len(draws):
        nothing = np.full(draws.shape[1:], np.nan)
        return nothing, nothing
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0, method=method)
    return low, high


def t_interval(centre: Any, se: Any, freedom: int, level: float) -> tuple[Any, Any]:
    """Returns the bounds of Student's t about ``centre`` with error ``se``, numbers or arrays.

    NaN without a degree of freedom.
    """
    from scipy.special import stdtrit  # a prediction needs percentiles alone, and is quick

    reach = (float(stdtrit(freedom, (1 + level) / 2)) if freedom > 0 else np.nan) * se
    return centre - reach, centre + reach


def jackknife(estimates: Array, left_out: Array, level: float) -> tuple[Array, Array]:
    """Returns bounds (P,) by the estimates (G, P) from all rows but those of one of G groups.

    The variance is (G - 1)/G sum_g (estimate_g - estimate)^2, with Student's t of G - 1 degrees of
    freedom: rows of a group may err together in any way. For few groups it covers better than a
    bootstrap over them, which is too narrow. Source: MacKinnon, Nielsen and Webb 2023, "Fast and
    reliable jackknife and bootstrap methods for cluster-robust inference" (CV3).
    """
    G = len(left_out)
    se = np.sqrt((G - 1) / G * np.sum((left_out - estimates) ** 2, axis=0))
    return t_interval(estimates, se, G - 1, level)
