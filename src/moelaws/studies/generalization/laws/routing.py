"""The generalization bound, the price of routing and the regimes (generalization paper, sec 3, 4).

Up to constants, the bound on the squared risk is a + N/n + R/n (Eq 3) for N active parameters and
n samples; R bounds the logarithm of the number of ways to route a sequence. The approximation
error a has two limits, and the lesser holds (Eq 1): N^(-2s/d), where a few experts hold all active
parameters (construction B of App F), and M^(-2s/d), where each of M experts has a chart of the
manifold to itself (construction A).
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array, Columns, Mask
from moelaws.laws.declared import law_beside
from moelaws.spec.errors import UserError


def routing_term(k: ArrayLike, M: ArrayLike, L_T: ArrayLike, l: ArrayLike) -> Array:  # noqa: E741
    """Returns R = k L_T l ln(eM/k), nats of routing choice: at least ln of the routing patterns.

    Args:
        k, M: active and total experts of a layer.
        L_T, l: MoE layers and tokens of a sequence.

    NaN unless 0 < k <= M. Source: Eq 2, 3.
    """
    k, M = np.broadcast_arrays(np.asarray(k, float), np.asarray(M, float))
    allowed = (k > 0) & (k <= M)
    ln_ratio = np.log(np.where(allowed, M, np.nan) / np.where(allowed, k, 1.0))
    return np.asarray(k * np.asarray(L_T, float) * np.asarray(l, float) * (1 + ln_ratio))


def _binomial(M: float, k: float) -> float:
    if not 0 < k <= M:
        return math.nan
    return math.lgamma(M + 1) - math.lgamma(k + 1) - math.lgamma(M - k + 1)


_ln_binomial = np.vectorize(_binomial, otypes=[float])


@np.errstate(over="ignore")  # a size or a number of samples beyond any float is infinite
def _evaluate(c: Columns) -> dict[str, Array]:
    too_many = c["k"] > c["M"]
    if too_many.any():
        k, M = c["k"][too_many].flat[0], c["M"][too_many].flat[0]
        raise UserError(
            f"generalization.routing: k is {k:g} at M = {M:g}; active experts k must be at most M"
        )
    s, d, n, T, eps, N = c["s"], c["d"], c["n"], c["L_T"] * c["l"], c["eps"], c["N_active"]
    charts = c["chart"] * c["M"]
    R = routing_term(c["k"], c["M"], c["L_T"], c["l"])
    n_route = R ** ((2 * s + d) / d)  # Eq 13, 14
    N_cross = n ** (d / (2 * s + d))  # N^(-2s/d) = N/n, Eq 7
    cap = (n / R) ** (d / (2 * s))  # N^(-2s/d) = R/n, Eq 7
    approximation = np.maximum(N, charts) ** -(2 * s / d)  # Eq 1
    estimation, routing = N / n, R / n  # Eq 3
    terms = np.stack([np.where(N >= charts, approximation, 0), approximation, estimation, routing])
    by_weights = N * np.log(1 / c["delta"])
    return {
        "R": R,
        "ln_patterns": c["L_T"] * c["l"] * _ln_binomial(c["M"], c["k"]),  # Eq 34, 56
        "n_route": n_route,
        "N_cross": N_cross,
        "N_cap": cap,
        "routing_dominated": _flag(n < n_route, n + n_route),
        "by_active": N ** -(2 * s / d),
        "by_experts": charts ** -(2 * s / d),
        "approximation": approximation,
        "estimation": estimation,
        "routing": routing,
        "bound": approximation + estimation + routing,
        "regime": np.where(np.isnan(terms).any(axis=0), np.nan, terms.argmax(axis=0)),
        "model_scaling": _flag(
            (N <= np.minimum(N_cross, cap)) & (N >= charts), N + N_cross + cap + charts
        ),
        "ln_cover": by_weights + R,  # Eq 2
        "cover_by_routing": _flag(by_weights < R, by_weights),
        "routing_share": R / N,
        "n_target": eps ** -((2 * s + d) / (2 * s)),  # Eq 15
        "N_target": eps ** -(d / (2 * s)),
        "n_target_routing": R / eps,  # Eq 16
        # The bound of M_new experts less that of M experts, at fixed k (Cor G.2).
        "overhead": c["k"] * T / n * np.log(c["M_new"] / c["M"]),
    }


def _flag(holds: Mask, needs: Array) -> Array:
    """Returns 1 where ``holds``, 0 where it does not, and NaN where ``needs`` are not given."""
    return np.where(np.isnan(needs), np.nan, np.asarray(holds, float))


LAW, _ = law_beside(__file__, {"": _evaluate})
(REGIMES,) = (result.names for result in LAW.results if result.names)
