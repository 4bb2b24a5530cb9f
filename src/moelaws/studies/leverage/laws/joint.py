"""Efficiency leverage over activation ratio, granularity and compute (leverage paper, Eq 4)."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array, Columns
from moelaws.laws.clark.routing import ln_saturated, saturated_curvature
from moelaws.laws.declared import law_beside


def _ln_EL(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    a, d, gamma, beta, ln_start, ln_max = (theta_BP[:, i, None] for i in range(6))
    t, x = np.log10(columns["C"]), np.log2(columns["G"])
    ln_A, by_start, by_max = ln_saturated(columns["A"], ln_start, ln_max)
    e = a + d * t + gamma * x**2 + beta * x
    jacobian = np.stack([ln_A, t * ln_A, x**2 * ln_A, x * ln_A, e * by_start, e * by_max], axis=1)
    return e * ln_A, jacobian


def curvature(theta_BP: Array, columns: Columns, psi_Bn: Array) -> Array:
    """Returns the second derivatives of ln EL (Eq 4), summed over rows by ``psi_Bn``: (B, 6, 6)."""
    ln_start, ln_max = theta_BP[:, 4, None], theta_BP[:, 5, None]
    t, x = np.log10(columns["C"]), np.log2(columns["G"])
    _, *by_ends = ln_saturated(columns["A"], ln_start, ln_max)
    features = np.stack([np.ones_like(t), t, x**2, x])
    exponent = theta_BP[:, :4] @ features
    second = np.zeros((len(theta_BP), 6, 6))
    second[:, :4, 4:] = np.einsum("bn,fn,ebn->bfe", psi_Bn, features, np.stack(by_ends))
    second[:, 4:, :4] = second[:, :4, 4:].swapaxes(1, 2)
    of_ends = saturated_curvature(columns["A"], ln_start, ln_max)
    second[:, 4:, 4:] = np.einsum("bn,efbn->bef", psi_Bn * exponent, of_ends)
    return second


LAW, VARIANTS = law_beside(__file__, function=_ln_EL, second=curvature)


def optimal_granularity(params: Mapping[str, ArrayLike]) -> Array:
    """Returns the granularity of the largest leverage, 2^(-beta / (2 gamma)), at every A and C.

    This holds for Ahat < 1, which is all but A near 1. It is NaN where gamma <= 0, so that no
    granularity is best. Broadcasts over the parameters. Source: leverage, Eq 4.
    """
    gamma, beta = (np.asarray(params[name], float) for name in ("gamma", "beta"))
    convex = gamma > 0
    return np.where(convex, np.exp2(-beta / (2 * np.where(convex, gamma, 1.0))), np.nan)
