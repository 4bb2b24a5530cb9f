"""Loss from size and data, the sum of whose terms is raised to a power (Skaling, 2608.07222)."""

import numpy as np

from moelaws.laws.base import Array, Columns
from moelaws.laws.declared import law_beside
from moelaws.laws.forms import log_sum_exp


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    """Returns ln L (B, n) and its derivatives (B, P, n)."""
    ln_A, ln_B, ln_E, alpha, beta, k = theta_BP.T[:, :, None]
    ln_N, ln_D = (np.log(columns[name])[None] for name in ("N", "D"))
    terms = np.stack(np.broadcast_arrays(ln_A - alpha * ln_N, ln_B - beta * ln_D))
    reducible = log_sum_exp(terms)
    of_N, of_D = terms  # which became their weights in the sum
    whole = np.stack(np.broadcast_arrays(k * reducible, ln_E))
    ln_L = log_sum_exp(whole)
    weight, floor = whole
    by_N, by_D = weight * k * of_N, weight * k * of_D
    rows = (by_N, by_D, floor, -ln_N * by_N, -ln_D * by_D, weight * reducible)
    return ln_L, np.stack(rows, axis=1)


LAW, VARIANTS = law_beside(__file__, function=_value_and_jacobian)
