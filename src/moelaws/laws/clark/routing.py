"""Loss from the size of the dense base model and the number of experts (Clark et al. 2022, Eq 1).

All models of the paper saw the same 130e9 tokens, one expert a token; the law knows no data term.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array, Columns
from moelaws.laws.declared import law_beside

_LN10 = float(np.log(10.0))
# Where routing stops helping, by the paper's text (sec 5): variant -> base parameters
STATED_CUTOFFS: Mapping[str, float] = {"": 9.37e11, "rl-r": 8.5e10, "hash": 8.3e10}


def effective_experts(E: ArrayLike, E_start: ArrayLike, E_max: ArrayLike) -> Array:
    """Returns E_hat, the saturating number of experts: ``E_start`` at E = 1, ``E_max`` at infinity.

    1/E_hat = 1/(E - 1 + 1/(1/E_start - 1/E_max)) + 1/E_max. It is ``E_max`` at all E if ``E_start``
    is not below that. Arguments broadcast. Source: Clark et al. 2022, Eq 1; Ludziejewski et al.
    2025, Eq 4.
    """
    return np.exp(ln_saturated(np.asarray(E, float) - 1, np.log(E_start), np.log(E_max))[0])


def effective_parameters(params: Mapping[str, ArrayLike], N: ArrayLike, E: ArrayLike) -> Array:
    """Returns the size of the dense model whose loss is that of base size ``N`` with ``E`` experts.

    At that size Eq 1 with one expert gives the same loss. Arguments broadcast. Source: Clark et al.
    2022, the effective parameter count; their repository's ``effective_param_count``.
    """
    names = ("a", "b", "c", "E_start", "E_max")
    a, b, c, start, top = (np.asarray(params[name], float) for name in names)
    one, many = (np.log10(effective_experts(x, start, top)) for x in (1.0, E))
    size = np.log10(np.asarray(N, float))
    return np.asarray(10 ** (((a + c * many) * size + b * (many - one)) / (a + c * one)))


def log10_cutoff(params: Mapping[str, ArrayLike]) -> Array:
    """Returns log10 of the base size from which more experts no longer lower the loss: -b/c.

    Infinite where routing helps more as models grow (c <= 0). Source: Clark et al. 2022, sec 5.
    """
    b, c = (np.asarray(params[name], float) for name in ("b", "c"))
    return np.asarray(np.where(c > 0, -b / np.where(c > 0, c, 1.0), np.inf))


def ln_saturated(x: Array, ln_start: Array, ln_max: Array) -> tuple[Array, Array, Array]:
    """Returns ln of x-hat and its derivatives by ``ln_start`` and by ``ln_max``; broadcasts.

    x-hat is ``x`` bent so that it stays between ``start`` and ``max`` for all x >= 0:
    1/xhat = 1/(x + 1/(1/start - 1/max)) + 1/max. With x = E - 1 it is ``effective_experts``.
    """
    u, w = np.exp(-ln_start), np.exp(-ln_max)
    gap = np.maximum(u - w, 0.0)
    weight = 1 / (1 + x * gap)
    x_hat = 1 / (gap * weight + w)
    slope = np.where(gap > 0, weight**2, 0.0)
    return np.log(x_hat), x_hat * u * slope, x_hat * w * (1 - slope)


def saturated_curvature(x: Array, ln_start: Array, ln_max: Array) -> Array:
    """Returns the second derivatives of ln of x-hat by ``ln_start`` and ``ln_max``, (2, 2, ...)."""
    ln_x, by_start, by_max = ln_saturated(x, ln_start, ln_max)
    u, w = np.exp(-ln_start), np.exp(-ln_max)
    gap = np.maximum(u - w, 0.0)
    slope = np.where(gap > 0, 2 * x * np.exp(ln_x) / (1 + x * gap) ** 3, 0.0)
    mixed = by_start * by_max - slope * u * w
    return np.stack(
        [
            [by_start * (by_start - 1) + slope * u**2, mixed],
            [mixed, by_max * (by_max - 1) + slope * w**2],
        ]
    )


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    """Returns ln L (B, n) and its derivatives (B, P, n)."""
    a, b, c, d, ln_start, ln_max = theta_BP.T[:, :, None]
    N = np.log(columns["N_active"])[None] / _LN10
    ln_E, by_start, by_max = ln_saturated(columns["E"] - 1, ln_start, ln_max)
    by_E, by_d = b + c * N, np.full_like(ln_E, _LN10)  # by_E is d ln L / d ln E_hat
    rows = (by_d * N, ln_E, N * ln_E, by_d, by_E * by_start, by_E * by_max)
    return _LN10 * (a * N + d) + by_E * ln_E, np.stack(rows, axis=1)


LAW, VARIANTS = law_beside(__file__, function=_value_and_jacobian, linear=4)
