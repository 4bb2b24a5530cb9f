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

from moelaws.laws.base import AT_LEAST_1, BELOW_1, POSITIVE, Array, Columns, Formula, Mask, Variable
from moelaws.spec.errors import UserError

# The cases of ``regime``
REGIMES = ("limited by active parameters", "limited by experts", "estimation", "routing")


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


LAW = Formula(
    id="generalization.routing",
    title="Price of routing in the generalization bound and its regimes",
    source="generalization, Eq 1-3, 7, 13-16, App F and G.2",
    equation=(
        "R = k*L_T*l*ln(e*M/k); n_route = R^((2*s + d)/d); N_cross = n^(d/(2*s + d)); "
        "N_cap = (n/R)^(d/(2*s)); approximation = min(N_active^(-2*s/d), (chart*M)^(-2*s/d)); "
        "bound = approximation + N_active/n + R/n; ln_cover = N_active*ln(1/delta) + R; "
        "n_target = eps^(-(2*s + d)/(2*s)); N_target = eps^(-d/(2*s)); n_target_routing = R/eps; "
        "overhead = k*L_T*l/n*ln(M_new/M)"
    ),
    latex=(
        r"R = k L_T l \ln\frac{eM}{k},\quad"
        r" \mathrm{err} \lesssim \min(N_a^{-2s/d}, M^{-2s/d})"
        r" + \frac{N_a}{n} + \frac{R}{n},\quad"
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
        Variable("chart", "parameters/expert", "active parameters worth a chart", POSITIVE, 1.0),
        Variable("delta", "1", "radius of a cover of the functions", BELOW_1, math.nan),
    ),
    outputs=(
        Variable("R", "nats", "routing term, a bound on the next"),
        Variable("ln_patterns", "nats", "ln of the number of routing patterns, exactly"),
        Variable("n_route", "samples", "below it routing dominates"),
        Variable("N_cross", "parameters", "where approximation and estimation error are equal"),
        Variable("N_cap", "parameters", "where approximation error and routing are equal"),
        Variable("routing_dominated", "1", "1 where n < n_route, which is where N_cap < N_cross"),
        Variable("by_active", "1", "limit of the approximation by active parameters (Eq 1)"),
        Variable("by_experts", "1", "limit of the approximation by the number of experts (Eq 1)"),
        Variable("approximation", "1", "first term of Eq 3: the lesser of the two limits"),
        Variable("estimation", "1", "second term of Eq 3"),
        Variable("routing", "1", "third term of Eq 3"),
        Variable("bound", "1", "their sum: squared risk, up to constants"),
        Variable("regime", "1", "the largest term, and which limit holds", names=REGIMES),
        Variable("model_scaling", "1", "1 where N_active binds, up to N_cross and N_cap (Eq 7)"),
        Variable("ln_cover", "nats", "ln of the covering number at delta (Eq 2)"),
        Variable("cover_by_routing", "1", "1 where routing is the larger term of Eq 2"),
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
        "Every result holds up to constants that the paper does not give; here they are 1. That of "
        "Eq 1's limit by experts is chart: at 1 a model with more active parameters than experts "
        "is limited by those alone.",
    ),
)
