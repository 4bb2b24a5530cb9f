"""Number of active experts that minimises the generalization bound (generalization paper, sec 4.3).

Where experts dominate the approximation, the bound with k of M experts active is
Phi(k) = A k^-p + (k/n) [B + T ln(eM/k)], p = 2s/d (Eq 9). Its derivative is zero where
p A n k^-(p+1) = B + T ln(M/k). The logarithms of both sides differ by a concave function of ln k,
whose lower root is the minimum of Phi (Lambert's W_-1) and whose upper root is a local maximum
(W_0).
"""

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array, Columns
from moelaws.laws.declared import law_beside
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
        return B + T * (ln_M - ln_k)

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


LAW, _ = law_beside(__file__, {"": _optimum})
