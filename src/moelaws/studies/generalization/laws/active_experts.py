"""Number of active experts that minimises the generalization bound (generalization paper, sec 4.3).

Where experts dominate the approximation, the bound with k of M experts active is
Phi(k) = A k^-p + (k/n) [B + T ln(eM/k)], p = 2s/d (Eq 9). Its derivative is zero where
p A n k^-(p+1) = B + T ln(M/k). The logarithms of both sides differ by a concave function of ln k,
whose lower root is the minimum of Phi (Lambert's W_-1) and whose upper root is a local maximum
(W_0).
"""

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import AT_LEAST_1, NOT_NEGATIVE, Array, Columns, Formula, Variable
from moelaws.laws.roots import rising_root


def bound(k: ArrayLike, c: Columns) -> Array:
    """Returns Phi at ``k`` active experts (Eq 9) for the law's variables; broadcasts."""
    k, p = np.asarray(k, float), 2 * c["s"] / c["d"]
    price = c["B"] + c["T"] * (1 + np.log(c["M"] / k))
    return np.asarray(c["A"] * k**-p + k / c["n"] * price)


def local_minimum(c: Columns) -> Array:
    """Returns the k <= M of the branch W_-1; NaN where there is none."""
    p, B, T, ln_M = 2 * c["s"] / c["d"], c["B"], c["T"], np.log(c["M"])
    ln_gain = np.log(p) + np.log(c["A"]) + np.log(c["n"])

    def price(ln_k: Array) -> Array:
        return np.asarray(B + T * (ln_M - ln_k))

    def excess(ln_k: Array) -> Array:
        """Returns ln of the price of one more expert over its gain; it has the sign of Phi'."""
        with np.errstate(divide="ignore", invalid="ignore"):  # price 0 at k = M, B = 0
            return np.asarray((p + 1) * ln_k + np.log(price(ln_k)) - ln_gain)

    high = np.minimum(ln_M + B / T - 1 / (p + 1), ln_M)  # where the excess is largest
    at = high - 1
    # A tangent of a concave function lies above it: below ``low`` there is no root.
    low = at - np.maximum(excess(at), 0) / (p + 1 - T / price(at)) - 1
    return np.exp(rising_root(excess, low, high))


def _optimum(c: Columns) -> dict[str, Array]:
    inner, M = local_minimum(c), np.floor(c["M"])
    given = ~np.isnan(sum(c.values()))
    inside = bound(inner, c) <= bound(c["M"], c)  # false where there is no local minimum
    k = np.where(given, np.where(inside, inner, c["M"]), np.nan)
    whole = M
    for candidate in (np.clip(np.floor(inner) + i, 1, M) for i in (0, 1)):
        whole = np.where(bound(candidate, c) <= bound(whole, c), candidate, whole)
    return {
        "k_star": k,
        "k_whole": np.where(given, whole, np.nan),
        "Phi": bound(k, c),
        "saturated": np.asarray(k == c["M"], float),
    }


LAW = Formula(
    id="generalization.active_experts",
    title="Number of active experts that minimises the generalization bound",
    source="generalization, Eq 9, 11 and App G.1",
    equation=(
        "k_star = argmin over 0 < k <= M of Phi = A/k^p + k/n*(B + T*ln(e*M/k)), p = 2*s/d; "
        "where inside: k_star = K*exp(W_-1(-z)/(p + 1)), K = M*exp(B/T), "
        "z = (p + 1)*(p*A*n/T)/K^(p + 1)"
    ),
    latex=(
        r"k^* = K \exp\frac{W_{-1}(-z)}{p+1},\quad K = M e^{B/T},\quad"
        r" z = (p+1)\frac{pAn}{T}K^{-(p+1)},\quad p = \frac{2s}{d}"
    ),
    variables=(
        Variable("s", "1", "smoothness of the target function"),
        Variable("d", "1", "intrinsic dimension of the data"),
        Variable("A", "experts^p", "coefficient of the approximation error"),
        Variable("B", "parameters/expert", "parameters that an active expert adds", NOT_NEGATIVE),
        Variable("T", "1", "routing choices of a sequence: MoE layers times tokens"),
        Variable("M", "experts", "routed experts a layer", AT_LEAST_1),
        Variable("n", "samples", "training samples"),
    ),
    outputs=(
        Variable("k_star", "experts", "active experts of the least Phi; below 1 it means one"),
        Variable("k_whole", "experts", "whole number from 1 to M of the least Phi"),
        Variable("Phi", "1", "bound on the squared risk at k_star, up to constants"),
        Variable("saturated", "1", "1 where k_star = M"),
    ),
    function=_optimum,
    errata=(
        "R (Eq 9, 47): the derivative of k ln(eM/k) is ln(M/k); an iterate that keeps ln(eM/k) "
        "solves another equation: 3.65687 in place of 5.14431 at s=1, d=8, A=1, B=0, T=128, M=64, "
        "n=1e4 (29 % below). The rate in n is the same.",
        "R (Eq 11, 12 and 49): which of the two the paper prints is not certain.",
        "The first-order condition has two roots; the upper one (Lambert's W_0, 56.4032 at the "
        "same point) is a local maximum, so that Phi at the lower root is compared with Phi(M).",
    ),
)
