"""Loss from sizes, data, and active and shared experts (Zhao et al. 2025, 2509.23678, Eq 11)."""

import numpy as np

from moelaws.laws.base import Array, Columns
from moelaws.laws.declared import law_beside

_LEAST = 1e-6  # nats/token: a negative coefficient can bring the sum to 0 while a fit searches


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    """Returns ln L (B, n) and its derivatives (B, P, n)."""
    theta_PB1 = theta_BP.T[:, :, None]
    ln_e, ln_f, ln_m, n, ln_kappa, ln_h, ln_a, alpha, ln_b, beta, ln_c, ln_eps = theta_PB1
    ln_N, ln_A, ln_D = (np.log(columns[name])[None] for name in ("N", "N_active", "D"))
    G = (columns["k"] + columns["E_s"])[None]
    s = columns["E_s"][None] / G
    experts = (np.exp(ln_e) * G, np.exp(ln_f) / G, np.exp(ln_m) * s**2, n * s)
    structure = sum(experts)
    total, active = np.exp(-alpha * ln_N), np.exp(ln_kappa - alpha * ln_A)
    ratio = np.exp(ln_h + ln_A - ln_N)
    scale = total + active + ratio
    of_N, of_A = np.exp(ln_a - alpha * ln_N), np.exp(ln_c - alpha * ln_A)
    of_D, floor = np.exp(ln_b - beta * ln_D), np.exp(ln_eps)
    L = np.maximum(structure * scale + of_N + of_A + of_D + floor, _LEAST)
    by_alpha = -ln_N * (structure * total + of_N) - ln_A * (structure * active + of_A)
    of_experts = (*(x * scale for x in experts[:3]), s * scale)
    of_sizes = (structure * active, structure * ratio, of_N, by_alpha)
    rows = np.broadcast_arrays(*of_experts, *of_sizes, of_D, -ln_D * of_D, of_A, floor)
    return np.log(L), np.stack(rows, axis=1) / L[:, None]


LAW, VARIANTS = law_beside(__file__, function=_value_and_jacobian)
