"""Intervals from draws, Student's t, groups left out in turn, and ordinary least squares."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array


def percentiles(
    draws: Array, level: float, method: Literal["linear", "inverted_cdf"] = "linear"
) -> tuple[Array, Array]:
    """Returns bounds (...) of the central ``level`` of draws (B, ...); NaN if B = 0.

    By the method ``inverted_cdf`` the bounds are draws, so that none is a mean of a finite and an
    infinite draw.
    """
    if not len(draws):
        nothing = np.full(draws.shape[1:], np.nan)
        return nothing, nothing
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0, method=method)
    return low, high


def t_interval(centre: Any, se: Any, freedom: float, level: float) -> tuple[Any, Any]:
    """Returns bounds of Student's t about ``centre`` with error ``se``; NaN without freedom."""
    from scipy.special import stdtrit  # a prediction, which needs percentiles alone, is quick

    reach = (float(stdtrit(freedom, (1 + level) / 2)) if freedom > 0 else np.nan) * se
    return centre - reach, centre + reach


def widening(blocks: int, level: float) -> float:
    """Returns the reach of Student's t over that of the bootstrap of a mean of ``blocks``."""
    from scipy.special import ndtri

    _, reach = t_interval(0.0, np.sqrt(blocks / (blocks - 1)), blocks - 1, level)
    return float(reach / ndtri((1 + level) / 2))


def stretched(draws: Array, value: Any, factor: float) -> Array:
    """Returns ``draws`` (B, ...) moved away from ``value`` (...), in the logarithm where positive.

    Draws of parameters are not moved themselves: where rows hardly determine these, parameters that
    move together, a little farther, predict something else altogether.
    """
    if factor == 1:
        return draws
    with np.errstate(all="ignore"):  # where a draw has another sign, or is infinite
        ratio = draws / value
        far = np.where(ratio > 0, value * ratio**factor, value + factor * (draws - value))
    return np.asarray(far)


def jackknife(estimates: Array, left_out: Array, level: float) -> tuple[Array, Array]:
    """Returns bounds (P,) from estimates (G, P), each of which leaves out one of G groups of rows.

    They are Student's t of G - 1 degrees of freedom. For few groups they cover better than a
    bootstrap over them, which is too narrow.
    """
    se = np.sqrt(np.diag(jackknife_covariance(estimates, left_out)))
    return t_interval(estimates, se, len(left_out) - 1, level)


def jackknife_covariance(estimates: Array, left_out: Array) -> Array:
    """Returns the covariance (P, P) of ``estimates`` (P,), however rows of a group err together.

    It is (G - 1)/G sum_g (estimate_g - estimate) (estimate_g - estimate)', where ``left_out``
    (G, P) are estimates without one of the groups. Source: MacKinnon, Nielsen and Webb 2023, "Fast
    and reliable jackknife and bootstrap methods for cluster-robust inference" (CV3).
    """
    G, moves = len(left_out), left_out - estimates
    return (G - 1) / G * moves.T @ moves


def least_squares(
    X: Array, y: ArrayLike, *, draws: int = 1000, seed: int = 0, absorbed: int = 0
) -> Array:
    """Returns the coefficients of ``y`` (n,) on ``X`` (n, P), then draws of them: (1 + B, P).

    The columns of ``X`` must be independent. The ``draws`` are exact for independent normal errors
    of equal spread: multivariate Student t with n - P - ``absorbed`` degrees of freedom around the
    coefficients. There are none where no degree of freedom is left. ``absorbed`` is how many means,
    such as those of groups, were subtracted from X and y before.
    """
    (n, P), y = X.shape, np.asarray(y, float)
    coefficients: Array = np.linalg.lstsq(X, y, rcond=None)[0]
    freedom = n - P - absorbed
    if freedom < 1:
        return coefficients[None]
    scale = float(np.sqrt(np.sum((y - X @ coefficients) ** 2) / freedom))
    root = np.linalg.inv(np.linalg.qr(X).R)
    return np.vstack([coefficients, coefficients + student_t(root, freedom, draws, seed, scale)])


def student_t(root: Array, freedom: int, draws: int, seed: int, scale: float = 1.0) -> Array:
    """Returns draws (draws, P) of the centred multivariate Student t.

    Its shape matrix is ``scale``^2 ``root`` ``root``', where ``root`` is (P, P).
    """
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal((draws, len(root))) @ root.T
    return scale * normal / np.sqrt(rng.chisquare(freedom, (draws, 1)) / freedom)
