"""Loss from active size, data and experts of dense and MoE models (Ludziejewski et al. 2025, Eq 6).

At a fixed number of experts it is a Chinchilla law, L = m N_active^mu + n D^nu + c. Exponents keep
the paper's sign: they are negative.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array, Columns
from moelaws.laws.clark.routing import effective_experts, ln_saturated
from moelaws.laws.declared import law_beside
from moelaws.laws.forms import log_sum_exp


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    """Returns ln L (B, n) and its derivatives (B, P, n)."""
    theta_PB1 = theta_BP.T[:, :, None]
    ln_a, alpha, delta, gamma, ln_b, beta, omega, zeta, ln_start, ln_max, ln_c = theta_PB1
    ln_N, ln_D = np.log(columns["N_active"])[None], np.log(columns["D"])[None]
    y, by_start, by_max = ln_saturated(columns["E"] - 1, ln_start, ln_max)  # y = ln Eh
    size = ln_a + delta * y + (alpha + gamma * y) * ln_N
    data = ln_b + omega * y + (beta + zeta * y) * ln_D
    terms = np.stack(np.broadcast_arrays(size, data, ln_c))
    ln_L = log_sum_exp(terms)
    p, q, r = terms  # which became their weights in the loss
    by_y = p * (delta + gamma * ln_N) + q * (omega + zeta * ln_D)
    of_size = (p, p * ln_N, p * y, p * y * ln_N)
    of_data = (q, q * ln_D, q * y, q * y * ln_D)
    rows = (*of_size, *of_data, by_y * by_start, by_y * by_max, r)
    return ln_L, np.stack(rows, axis=1)


def at_experts(params: Mapping[str, Any], E: ArrayLike) -> dict[str, Array]:
    """Returns m, mu, n, nu and c of L = m N_active^mu + n D^nu + c, each of the shape of ``E``.

    Parameters of several draws broadcast with it.

    Source: Ludziejewski et al. 2025, Eq 5: m = a Eh^delta, mu = alpha + gamma ln Eh, and
    n = b Eh^omega, nu = beta + zeta ln Eh.
    """
    p = params
    y = np.log(effective_experts(E, p["E_start"], p["E_max"]))
    return {
        "m": p["a"] * np.exp(p["delta"] * y),
        "mu": p["alpha"] + p["gamma"] * y,
        "n": p["b"] * np.exp(p["omega"] * y),
        "nu": p["beta"] + p["zeta"] * y,
        "c": p["c"] + np.zeros_like(y),
    }


@dataclass(frozen=True)
class Optimum:
    """The best split of a compute budget."""

    N_active: Array
    D: Array  # tokens
    L: Array  # nats/token

    @property
    def ratio(self) -> Array:
        """Returns the tokens for each active parameter."""
        return self.D / self.N_active


def compute_optimal(reduced: Mapping[str, ArrayLike], F: ArrayLike) -> Optimum:
    """Returns the best active size and tokens at training compute ``F`` = 6 N_active D (FLOPs).

    ``reduced`` are m, mu, n, nu and c at a number of experts, as :func:`at_experts` or a variant
    such as ``joint.loss:E32`` give them; F broadcasts with them. NaN where mu or nu is not below 0.
    Source: Ludziejewski et al. 2025, Eq 7.
    """
    m, mu, n, nu, c = (np.asarray(reduced[name], float) for name in ("m", "mu", "n", "nu", "c"))
    falls = (mu < 0) & (nu < 0)
    size, data = np.where(falls, -mu, np.nan), np.where(falls, -nu, np.nan)
    ND = np.asarray(F, float) / 6
    N = (size * m / (data * n)) ** (1 / (size + data)) * ND ** (data / (size + data))
    D = ND / N
    return Optimum(N, D, m * N**mu + n * D**nu + c)


LAW, VARIANTS = law_beside(__file__, function=_value_and_jacobian)
