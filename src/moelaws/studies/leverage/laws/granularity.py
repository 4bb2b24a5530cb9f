"""Efficiency leverage over the experts' granularity (leverage paper, Eq 2)."""

from dataclasses import replace

import numpy as np

from moelaws.laws.base import Array, Columns
from moelaws.laws.clark.routing import ln_saturated
from moelaws.laws.declared import law_beside


def _log_polynomial(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    constant, curvature, shift = (theta_BP[:, i, None] for i in range(3))
    x = np.log2(columns["G"])
    bend = x * (x + shift)
    jacobian = np.stack(np.broadcast_arrays(np.ones_like(x), bend, curvature * x), axis=1)
    return constant + curvature * bend, jacobian


def _saturating(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    constant, exponent, ln_start, ln_max = (theta_BP[:, i, None] for i in range(4))
    ln_G, by_start, by_max = ln_saturated(columns["G"], ln_start, ln_max)
    jacobian = np.stack([np.ones_like(ln_G), ln_G, exponent * by_start, exponent * by_max], axis=1)
    return constant + exponent * ln_G, jacobian


# The law is fitted at each budget; the paper draws these curves and prints no coefficients.
LAW, VARIANTS = law_beside(__file__, function=_log_polynomial)
VARIANTS["saturating"] = replace(VARIANTS["saturating"], function=_saturating)
