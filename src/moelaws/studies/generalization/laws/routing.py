"""Price of routing in the generalization bound and its regimes (generalization paper, sec 4).

The bound on the squared risk, up to constants, is N^(-2s/d) + N/n + R/n (Eq 3) over N active
parameters and n samples; R bounds the logarithm of the number of ways to route a sequence.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import AT_LEAST_1, POSITIVE, Array, Columns, Formula, Mask, Variable
from moelaws.spec.errors import UserError


def routing_term(k: ArrayLike, M: ArrayLike, L_T: ArrayLike, l: ArrayLike) -> Array:  # noqa: E741
    """R = k L_T l ln(eM/k): nats of routing choice, an upper bound on ln of the patterns.

    Args:
        k, M: active and total experts of a layer.
        L_T, l: MoE layers and tokens of a sequence.

    NaN unless 0 < k <= M. Source: Eq 2, 3.
    """
    k, M = np.broadcast_arrays(np.asarray(k, float), np.asarray(M, float))
    allowed = (k > 0) & (k <= M)
    ln_ratio = np.log(np.where(allowed, M, np.nan) / np.where(allowed, k, 1.0))
    return np.asarray(k * np.asarray(L_T, float) * np.asarray(l, float) * (1 + ln_ratio))


def ln_patterns(k: ArrayLike, M: ArrayLike, L_T: ArrayLike, l: ArrayLike) -> Array:  # noqa: E741
    """L_T l ln C(M, k): nats of choice exactly, in place of its bound R.

    Arguments as of :func:`routing_term`; NaN unless 0 < k <= M. Source: Eq 34, 56.
    """
    k, M = np.broadcast_arrays(np.asarray(k, float), np.asarray(M, float))
    return np.asarray(np.asarray(L_T, float) * np.asarray(l, float) * _ln_binomial(M, k))


def routing_threshold(R: ArrayLike, s: ArrayLike, d: ArrayLike) -> Array:
    """n_route = R^((2s+d)/d): samples below which routing dominates. Source: Eq 13, 14."""
    s, d = np.asarray(s, float), np.asarray(d, float)
    return np.asarray(np.asarray(R, float) ** ((2 * s + d) / d))


def crossover(n: ArrayLike, s: ArrayLike, d: ArrayLike) -> Array:
    """N_cross = n^(d/(2s+d)): active parameters where N^(-2s/d) = N/n. Source: Eq 7, Remark 4.3."""
    s, d = np.asarray(s, float), np.asarray(d, float)
    return np.asarray(np.asarray(n, float) ** (d / (2 * s + d)))


def routing_cap(n: ArrayLike, R: ArrayLike, s: ArrayLike, d: ArrayLike) -> Array:
    """(n/R)^(d/(2s)): active parameters where N^(-2s/d) = R/n. Source: Eq 7."""
    s, d = np.asarray(s, float), np.asarray(d, float)
    return np.asarray((np.asarray(n, float) / np.asarray(R, float)) ** (d / (2 * s)))


def bound_terms(
    N_active: ArrayLike, n: ArrayLike, R: ArrayLike, s: ArrayLike, d: ArrayLike
) -> tuple[Array, Array, Array]:
    """Approximation N^(-2s/d), estimation N/n and routing R/n, whose sum is Eq 3."""
    N, n = np.asarray(N_active, float), np.asarray(n, float)
    exponent = 2 * np.asarray(s, float) / np.asarray(d, float)
    return np.asarray(N**-exponent), np.asarray(N / n), np.asarray(np.asarray(R, float) / n)


def sample_complexity(eps: ArrayLike, s: ArrayLike, d: ArrayLike) -> tuple[Array, Array]:
    """Samples eps^(-(2s+d)/(2s)) and active parameters eps^(-d/(2s)) for a squared risk eps.

    Where routing is negligible; where it dominates, R/eps samples (Eq 16). Source: Eq 15.
    """
    eps, s, d = np.asarray(eps, float), np.asarray(s, float), np.asarray(d, float)
    return np.asarray(eps ** -((2 * s + d) / (2 * s))), np.asarray(eps ** -(d / (2 * s)))


def routing_overhead(
    k: ArrayLike, M: ArrayLike, M_new: ArrayLike, T: ArrayLike, n: ArrayLike
) -> Array:
    """(k T / n) ln(M_new/M): what M_new experts in place of M add to the bound at fixed k.

    ``T`` = L_T l. It is the whole difference between the two bounds. Source: App G.2, Cor G.2.
    """
    ratio = np.asarray(M_new, float) / np.asarray(M, float)
    scale = np.asarray(k, float) * np.asarray(T, float) / np.asarray(n, float)
    return np.asarray(scale * np.log(ratio))


def _binomial(M: float, k: float) -> float:
    if not 0 < k <= M:
        return math.nan
    return math.lgamma(M + 1) - math.lgamma(k + 1) - math.lgamma(M - k + 1)


_ln_binomial = np.vectorize(_binomial, otypes=[float])


@np.errstate(over="ignore")  # a cap or a need beyond any number is infinite
def _evaluate(c: Columns) -> dict[str, Array]:
    too_many = c["k"] > c["M"]
    if too_many.any():
        k, M = c["k"][too_many].flat[0], c["M"][too_many].flat[0]
        raise UserError(
            f"generalization.routing: k is {k:g} at M = {M:g}; active experts k must be at most M"
        )
    s, d, n, T = c["s"], c["d"], c["n"], c["L_T"] * c["l"]
    R = routing_term(c["k"], c["M"], c["L_T"], c["l"])
    n_route, N_cross, cap = routing_threshold(R, s, d), crossover(n, s, d), routing_cap(n, R, s, d)
    approximation, estimation, routing = bound_terms(c["N_active"], n, R, s, d)
    n_target, N_target = sample_complexity(c["eps"], s, d)
    return {
        "R": R,
        "ln_patterns": ln_patterns(c["k"], c["M"], c["L_T"], c["l"]),
        "n_route": n_route,
        "N_cross": N_cross,
        "N_cap": cap,
        "routing_dominated": _flag(n < n_route, n + n_route),
        "approximation": approximation,
        "estimation": estimation,
        "routing": routing,
        "bound": approximation + estimation + routing,
        "model_scaling": _flag(
            c["N_active"] <= np.minimum(N_cross, cap), c["N_active"] + N_cross + cap
        ),
        "routing_share": R / c["N_active"],
        "n_target": n_target,
        "N_target": N_target,
        "n_target_routing": R / c["eps"],
        "overhead": routing_overhead(c["k"], c["M"], c["M_new"], T, n),
    }


def _flag(holds: Mask, needs: Array) -> Array:
    """1 where it holds, 0 where not, NaN where what it needs is not given."""
    return np.where(np.isnan(needs), np.nan, np.asarray(holds, float))


LAW = Formula(
    id="generalization.routing",
    title="Price of routing in the generalization bound and its regimes",
    source="generalization, Eq 2, 3, 7, 13-16 and App G.2",
    equation=(
        "R = k*L_T*l*ln(e*M/k); n_route = R^((2*s + d)/d); N_cross = n^(d/(2*s + d)); "
        "N_cap = (n/R)^(d/(2*s)); bound = N_active^(-2*s/d) + N_active/n + R/n; "
        "n_target = eps^(-(2*s + d)/(2*s)); N_target = eps^(-d/(2*s)); n_target_routing = R/eps; "
        "overhead = k*L_T*l/n*ln(M_new/M)"
    ),
    latex=(
        r"R = k L_T l \ln\frac{eM}{k},\quad"
        r" \mathrm{err} \lesssim N_a^{-2s/d} + \frac{N_a}{n} + \frac{R}{n},\quad"
        r" n_{\mathrm{route}} = R^{(2s+d)/d}"
    ),
    variables=(
        Variable("k", "experts", "active routed experts a token"),
        Variable("M", "experts", "routed experts a layer", AT_LEAST_1),
        Variable("L_T", "layers", "MoE layers"),
        Variable("l", "tokens", "length of a sequence"),
        Variable("s", "1", "smoothness of the target function", POSITIVE, math.nan),
        Variable("d", "1", "intrinsic dimension of the data", POSITIVE, math.nan),
        Variable("n", "samples", "training samples", POSITIVE, math.nan),
        Variable("N_active", "parameters", "active parameters", POSITIVE, math.nan),
        Variable("eps", "1", "squared risk to reach", POSITIVE, math.nan),
        Variable("M_new", "experts", "routed experts in place of M", AT_LEAST_1, math.nan),
    ),
    outputs=(
        Variable("R", "nats", "routing term, a bound on the next"),
        Variable("ln_patterns", "nats", "ln of the number of routing patterns, exactly"),
        Variable("n_route", "samples", "below it routing dominates"),
        Variable("N_cross", "parameters", "where approximation and estimation error are equal"),
        Variable("N_cap", "parameters", "where approximation error and routing are equal"),
        Variable("routing_dominated", "1", "1 where n < n_route, which is where N_cap < N_cross"),
        Variable("approximation", "1", "first term of Eq 3"),
        Variable("estimation", "1", "second term of Eq 3"),
        Variable("routing", "1", "third term of Eq 3"),
        Variable("bound", "1", "their sum: squared risk, up to constants"),
        Variable("model_scaling", "1", "1 where N_active is at most N_cross and N_cap (Eq 7)"),
        Variable("routing_share", "1", "R / N_active: routing is negligible where it is small"),
        Variable("n_target", "samples", "samples for eps where routing is negligible"),
        Variable("N_target", "parameters", "active parameters for eps"),
        Variable("n_target_routing", "samples", "samples for eps where routing dominates"),
        Variable("overhead", "1", "what M_new experts in place of M add to the bound"),
    ),
    function=_evaluate,
    errata=(
        "E3.1 (Lemma E.1): the argument given there yields an estimation error of order "
        "sqrt(ln N / n), not the N/n and R/n of Eq 3; the regimes here are those of Eq 3.",
        "R bounds the exact count of routing patterns from above: 2443.6 against 1706.1 nats for "
        "2 of 8 experts, 4 layers and 128 tokens.",
        "Every result holds up to constants that the paper does not give; here they are 1.",
    ),
)
