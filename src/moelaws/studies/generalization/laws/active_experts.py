"""Number of active experts that minimises the generalization bound (generalization paper, sec 4.3).

Where experts dominate the approximation, the bound with k of M experts active is
Phi(k) = A k^-p + (k/n) [B + T ln(eM/k)], p = 2s/d (Eq 9). Its derivative is zero where
p A n k^-(p+1) = B + T ln(M/k). The logarithms of both sides differ by a concave function of ln k,
whose lower root is the minimum of Phi (Lambert's W_-1) and whose upper root is a local maximum
(W_0).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import AT_LEAST_1, NOT_NEGATIVE, Array, Columns, Formula, Variable
from moelaws.laws.roots import rising_root

_ITERATION_LIMIT = 100_000


@dataclass(frozen=True)
class Bound:
    """Phi as a function of k (Eq 9); its constants are arrays of one shape."""

    p: Array  # exponent of the approximation error, 2s/d
    A: Array  # its coefficient
    B: Array  # active parameters that one more active expert adds
    T: Array  # routing choices of a sequence, MoE layers times tokens
    M: Array  # total experts
    n: Array  # samples

    @classmethod
    def of(cls, columns: Columns) -> Bound:
        """Returns the bound that the law's variables give."""
        return cls(2 * columns["s"] / columns["d"], *(columns[name] for name in "ABTMn"))

    def value(self, k: ArrayLike) -> Array:
        """Returns Phi(k)."""
        k = np.asarray(k, float)
        price = self.B + self.T * (1 + np.log(self.M / k))
        return np.asarray(self.A * k**-self.p + k / self.n * price)

    @property
    def ln_z(self) -> Array:
        """Returns ln z; Phi has stationary points where z < 1/e.

        z = (p+1) (pAn/T) K^-(p+1) with K = M e^(B/T); they lie at k = K exp(W(-z)/(p+1)).
        """
        ln_K = np.log(self.M) + self.B / self.T
        return np.log(self.p + 1) + self.ln_gain - np.log(self.T) - (self.p + 1) * ln_K

    def local_minimum(self) -> Array:
        """Returns the k <= M of the branch W_-1; NaN where there is none."""
        high = np.minimum(self._turn, np.log(self.M))
        at = high - 1
        # A tangent of a concave function lies above it: below ``low`` there is no root.
        tangent = self.p + 1 - self.T / self._price(at)
        low = at - np.maximum(self._excess(at), 0) / tangent - 1
        return np.exp(rising_root(self._excess, low, high))

    def local_maximum(self) -> Array:
        """Returns the k <= M of the branch W_0, above which Phi falls again; NaN without one."""
        high = np.where(self._turn < np.log(self.M), np.log(self.M), np.nan)
        return np.exp(rising_root(lambda u: -self._excess(u), self._turn, high))

    def minimum(self) -> Array:
        """Returns k*, where Phi is least over 0 < k <= M: M where no local minimum is lower."""
        k = self.local_minimum()
        inside = self.value(k) <= self.value(self.M)  # false where k is NaN
        return np.where(np.isnan(self.ln_z), np.nan, np.where(inside, k, self.M))

    def whole_minimum(self) -> Array:
        """Returns the whole k from 1 to M of the least Phi."""
        M = np.floor(self.M)
        below = np.floor(self.local_minimum())
        k = M
        for candidate in (below, below + 1):
            candidate = np.clip(candidate, 1, M)
            k = np.where(self.value(candidate) <= self.value(k), candidate, k)
        return np.where(np.isnan(self.ln_z), np.nan, k)

    def sandwich(self) -> tuple[Array, Array]:
        """Returns the bounds on a stationary k from 1 to M. Source: Eq 51.

        They are (pAn/(B + T ln M))^(1/(p+1)), NaN where B + T ln M = 0, and (pAn/B)^(1/(p+1)), NaN
        where B = 0.
        """
        ln_price = [np.log(np.where(x > 0, x, np.nan)) for x in (self._price(0.0), self.B)]
        lower, upper = (np.exp((self.ln_gain - x) / (self.p + 1)) for x in ln_price)
        return lower, upper

    def contraction(self, k: ArrayLike) -> Array:
        """Returns the slope at k, in ln k, of the iterate k <- (pAn/(B + T ln(M/k)))^(1/(p+1)).

        It is 1 / ((p+1) y) with y = B/T + ln(M/k): below 1 at the minimum, where the iterate
        converges, and above 1 at the local maximum.
        """
        with np.errstate(divide="ignore"):  # infinite at k = M where B = 0
            return np.asarray(self.T / ((self.p + 1) * self._price(np.log(np.asarray(k, float)))))

    @property
    def without_log(self) -> Array:
        """Returns (pAn/(B+T))^(1/(p+1)), the optimum where ln(eM/k) is held at 1. Source: Eq 10."""
        return np.exp((self.ln_gain - np.log(self.B + self.T)) / (self.p + 1))

    @property
    def ln_gain(self) -> Array:
        """Returns ln(p A n)."""
        return np.log(self.p) + np.log(self.A) + np.log(self.n)

    @property
    def _turn(self) -> Array:
        """Returns ln k of the highest point of ``_excess``, where y = 1/(p+1)."""
        return np.log(self.M) + self.B / self.T - 1 / (self.p + 1)

    def _price(self, ln_k: ArrayLike) -> Array:
        return self.B + self.T * (np.log(self.M) - ln_k)

    def _excess(self, ln_k: Array) -> Array:
        """Returns ln of the price of one more expert over its gain; it has the sign of Phi'."""
        with np.errstate(divide="ignore", invalid="ignore"):  # price 0 at k = M, B = 0
            return (self.p + 1) * ln_k + np.log(self._price(ln_k)) - self.ln_gain


def _optimum(columns: Columns) -> dict[str, Array]:
    bound = Bound.of(columns)
    k = bound.minimum()
    inside = (k >= 1) & (k < bound.M)
    lower, upper = bound.sandwich()
    with np.errstate(over="ignore"):
        z = np.exp(bound.ln_z)
    return {
        "k_star": k,
        "k_whole": bound.whole_minimum(),
        "Phi": bound.value(k),
        "saturated": np.asarray(k == bound.M, float),
        "k_lower": np.where(inside, lower, np.nan),
        "k_upper": np.where(inside, upper, np.nan),
        "k_local_maximum": bound.local_maximum(),
        "z": z,
        "contraction": np.where(k < bound.M, bound.contraction(k), np.nan),
    }


def _paper(columns: Columns) -> dict[str, Array]:
    """Iterates k <- (pAn/(B + T ln(eM/k)))^(1/(p+1)), at most M, from the bound ``without_log``.

    It ends below the minimum of Phi, whose derivative has ln(M/k) instead. It ends when k moves by
    less than 1e-12, relatively; NaN where that takes over 100,000 steps. Source: Eq 10, 12, 49, 50.
    """
    bound = Bound.of(columns)
    u = np.minimum(np.log(bound.without_log), np.log(bound.M))
    first, count, done = u, np.zeros(u.shape), np.zeros(u.shape, bool)
    for i in range(_ITERATION_LIMIT):
        ln_price = np.log(bound.B + bound.T * (np.log(bound.M) + 1 - u))
        new = np.minimum((bound.ln_gain - ln_price) / (bound.p + 1), np.log(bound.M))
        first = first if i else new
        count += ~done
        done = done | ~(np.abs(new - u) > 1e-12)
        u = new
        if done.all():
            break
    k = np.where(done, np.exp(u), np.nan)
    return {
        "k_star": k,
        "iterations": np.where(done, count, np.nan),
        "k_first": np.exp(first),
        "k_without_log": np.minimum(bound.without_log, bound.M),
        "Phi": bound.value(k),
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
        Variable("k_lower", "experts", "lower sandwich bound on an inner k_star of at least 1"),
        Variable("k_upper", "experts", "upper sandwich bound, where B > 0"),
        Variable("k_local_maximum", "experts", "above it Phi falls again, where that is at most M"),
        Variable("z", "1", "Phi has stationary points where it is below 1/e"),
        Variable("contraction", "1", "factor by which an iterate's error shrinks at k_star"),
    ),
    function=_optimum,
    errata=(
        "R (Eq 9, 47): the derivative of k ln(eM/k) is ln(M/k); an iterate that keeps ln(eM/k), "
        "which is the variant paper, solves another equation: 3.65687 in place of 5.14431 at "
        "s=1, d=8, A=1, B=0, T=128, M=64, n=1e4 (29 % below). The rate in n is the same.",
        "R (Eq 11, 12 and 49): which of the two the paper prints is not certain.",
        "The first-order condition has two roots; the upper one (Lambert's W_0, 56.4032 at the "
        "same point) is a local maximum, so that Phi at the lower root is compared with Phi(M).",
    ),
)

VARIANTS = {
    "paper": dataclasses.replace(
        LAW,
        variant="paper",
        title="Number of active experts by the paper's iterate",
        source="generalization, Eq 10, 12, 49, 50",
        equation=(
            "k <- min(M, (p*A*n/(B + T*ln(e*M/k)))^(1/(p + 1))) "
            "from k_without_log = (p*A*n/(B + T))^(1/(p + 1)), p = 2*s/d"
        ),
        latex=r"k \leftarrow \left(\frac{pAn}{B + T\ln(eM/k)}\right)^{1/(p+1)} \wedge M",
        outputs=(
            Variable("k_star", "experts", "where the iterate ends"),
            Variable("iterations", "1", "steps until k moves by less than 1e-12, relatively"),
            Variable("k_first", "experts", "its first step, the paper's closed form"),
            Variable("k_without_log", "experts", "its start: the optimum where the log is 1"),
            Variable("Phi", "1", "bound on the squared risk at k_star, up to constants"),
        ),
        function=_paper,
    )
}
