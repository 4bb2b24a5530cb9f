"""Loss from size, tokens and unique tokens, which repeat (Muennighoff et al. 2023, 2305.16264)."""

import numpy as np

from moelaws.laws.base import Array, Columns
from moelaws.laws.declared import law_beside
from moelaws.laws.forms import log_sum_exp


def _effective(ln_x: Array, ln_unique: Array, ln_R: Array) -> tuple[Array, Array, Array]:
    """Returns ln of the effective amount, and its derivatives by ``ln_unique`` and ``ln_R``.

    An amount x up to ``unique`` counts whole. Beyond, its repetitions r = x/unique - 1 count as
    R (1 - exp(-r/R)) of them. Source: Muennighoff et al. 2023, Eq 5 and 6.
    """
    R, repetitions = np.exp(ln_R), np.expm1(np.maximum(ln_x - ln_unique, 0.0))
    y = repetitions / R
    counted = -np.expm1(-y)
    amount = 1 + R * counted
    by_unique = np.where(ln_x > ln_unique, 1 - (1 + repetitions) * np.exp(-y) / amount, 0.0)
    value = np.minimum(ln_x, ln_unique) + np.log(amount)
    return value, by_unique, R * (counted - y * np.exp(-y)) / amount


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    """Returns ln L (B, n) and its derivatives (B, P, n)."""
    ln_A, ln_B, ln_E, alpha, ln_R_D, ln_R_N = theta_BP.T[:, :, None]
    ln_N, ln_D, ln_U = (np.log(columns[name])[None] for name in ("N", "D", "U"))
    ln_U_N = ln_U + (ln_A - ln_B) / alpha  # the size that U tokens train best
    size, size_by_U, size_by_R = _effective(ln_N, ln_U_N, ln_R_N)
    data, _, data_by_R = _effective(ln_D, ln_U, ln_R_D)
    terms = np.stack(np.broadcast_arrays(ln_A - alpha * size, ln_B - alpha * data, ln_E))
    ln_L = log_sum_exp(terms)
    p, q, r = terms  # which became their weights in the loss
    by_A, by_alpha = p * size_by_U, p * size_by_U * (ln_A - ln_B) / alpha - p * size - q * data
    rows = (p - by_A, q + by_A, r, by_alpha, -alpha * q * data_by_R, -alpha * p * size_by_R)
    return ln_L, np.stack(rows, axis=1)


LAW, VARIANTS = law_beside(__file__, function=_value_and_jacobian)
