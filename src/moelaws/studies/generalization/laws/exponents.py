"""Scaling exponents from smoothness and intrinsic dimension (generalization paper, sec 4).

For a target of smoothness ``s`` on a manifold of dimension ``d``, the bound N^(-2s/d) + N/n on the
squared risk, over N active parameters and n samples, fixes every exponent.
"""

import numpy as np

from moelaws.laws.base import Array, Columns
from moelaws.laws.declared import law_beside


def _predicted_alpha_D(a: Array) -> Array:
    """Returns alpha_N / (1 + alpha_N) = 2s/(2s+d), the data exponent that fits it. Eq 4, 24."""
    return a / (1 + a)


def _predicted_alpha_C(a: Array) -> Array:
    """Returns alpha_N / (2 + alpha_N) = s/(s+d), the compute exponent at C ~ N n. Eq 19, 20."""
    return a / (2 + a)


def _from_smoothness(columns: Columns) -> dict[str, Array]:
    s, d, C = columns["s"], columns["d"], columns["C"]
    a = 2 * s / d  # Eq 6
    # The least A N^(-2s/d) + B N/n at N n = C (Eq 18, 54).
    N = (s / d * (columns["A"] / columns["B"]) * C) ** (d / (2 * (s + d)))
    return {
        "alpha_N": a,
        "alpha_D": _predicted_alpha_D(a),
        "alpha_C": _predicted_alpha_C(a),
        "N_exponent": d / (2 * (s + d)),
        "n_exponent": (2 * s + d) / (2 * (s + d)),
        "alpha_D_slow": a / (1 + 2 * a),  # 2s/(4s+d): an estimation error sqrt(N/n) (E3.1)
        "N_star": N,
        "n_star": C / N,
    }


def _from_N(columns: Columns) -> dict[str, Array]:
    a = columns["alpha_N"]
    s = columns["d"] * a / 2  # App B, Eq 6 inverted
    return {"s": s, "alpha_D": _predicted_alpha_D(a), "alpha_C": _predicted_alpha_C(a)}


def _from_D(columns: Columns) -> dict[str, Array]:
    """Inverts Eq 4 (App B); the result is NaN unless alpha_D < 1, as for every smoothness."""
    b, d = columns["alpha_D"], columns["d"]
    s = np.where(b < 1, d * b / (2 * np.where(b < 1, 1 - b, 1)), np.nan)
    a = 2 * s / d
    return {"s": s, "alpha_N": a, "alpha_C": _predicted_alpha_C(a)}


def _consistency(columns: Columns) -> dict[str, Array]:
    a, b = columns["alpha_N"], columns["alpha_D"]
    D, C = _predicted_alpha_D(a), _predicted_alpha_C(a)
    separable = a * b / (a + b)  # of a/N^alpha_N + b/n^alpha_D, Eq 23
    return {
        "alpha_C": separable,
        "alpha_D_predicted": D,
        "alpha_C_predicted": C,
        "delta_D": b - D,
        "delta_C": separable - C,
        "relative_delta_D": (b - D) / D,
        "relative_delta_C": (separable - C) / C,
        "kappa": b / D,
    }


LAW, VARIANTS = law_beside(
    __file__,
    {"": _from_smoothness, "from_N": _from_N, "from_D": _from_D, "consistency": _consistency},
)
