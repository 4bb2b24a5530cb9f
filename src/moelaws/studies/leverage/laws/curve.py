"""Loss of one architecture over compute, and the efficiency leverage of two such curves.

The efficiency leverage EL of a mixture of experts is how many times its compute a dense model
needs for the same loss (leverage paper, sec 3 and Algorithm 1).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array, FitProtocol
from moelaws.laws.forms import power_law_sum
from moelaws.laws.terms import irreducible_loss, term, times
from moelaws.laws.vocabulary import LOSS, variable

_C = variable("C", "training compute, in one convention for both curves of a leverage")
_BETA = times(_C, "beta", None, starts=(-0.02, -0.05, -0.1, -0.2, -0.4))

# The paper draws its curves and prints no coefficients.
LAW = power_law_sum(
    id="leverage.curve",
    title="Loss of one architecture over compute",
    source="leverage, sec 3 and App K",
    terms=(
        term("alpha", None, "the compute term", _BETA, starts=(0.0, 5.0, 10.0, 15.0, 20.0)),
        irreducible_loss("b", None, starts=(-1.0, -0.5, 0.0, 0.5, 1.0)),
    ),
    response=replace(LOSS, description="held-out loss, the best at that compute"),
    protocol=FitProtocol(
        "huber",
        "not stated in the leverage paper; objective as in the sparsity paper, own starts",
    ),
    errata=(
        "R: the paper does not say how its curves are fitted; here by the sum of Huber losses of "
        "ln L from a grid of starts, with alpha and b positive and beta at most 0.",
        "R: the dense counterpart is the architecture at A = 1 (2 experts, 2 active, 1 shared).",
    ),
)


@dataclass(frozen=True)
class Leverage:
    """Efficiency leverage at a compute of the mixture of experts; arrays of one shape."""

    L: Array  # L*: the loss that the mixture of experts has there, nats/token
    C_dense: Array  # the dense model's compute for the same loss, FLOP
    EL: Array  # C_dense / C_moe


@np.errstate(over="ignore")  # a compute beyond all numbers is infinite
def compute_for(curve: Mapping[str, ArrayLike], L: ArrayLike, unit: ArrayLike = 1.0) -> Array:
    """Returns the compute at which the ``curve`` has the loss ``L``, in ``unit`` FLOP; broadcasts.

    It is NaN where the curve never comes down to it (L <= b, or a curve that does not fall).
    """
    alpha, beta, b = (np.asarray(curve[name], float) for name in LAW.names)
    excess = np.asarray(L, float) - b
    falls = np.broadcast_to(beta < 0, excess.shape)
    reached = np.where((excess > 0) & falls, excess, np.nan)
    return np.asarray(np.exp(np.log(reached / alpha) / np.where(falls, beta, -1.0) - np.log(unit)))


def efficiency_leverage(
    dense: Mapping[str, ArrayLike], moe: Mapping[str, ArrayLike], C_moe: ArrayLike
) -> Leverage:
    """Returns the loss of the ``moe`` curve at ``C_moe`` and the compute ``dense`` needs for it.

    Args:
        dense: alpha, beta and b of the dense curve: numbers, or arrays of draws.
        moe: alpha, beta and b of the mixture's curve.
        C_moe: compute in FLOP; broadcasts with the parameters, so that draws of shape (B, 1) and
            computes of shape (n,) give (B, n).

    ``C_dense`` and ``EL`` are NaN where the dense curve never comes down to L*. Source: leverage,
    App K, Algorithm 1.
    """
    C = np.asarray(C_moe, float)
    alpha, beta, b = (np.asarray(moe[name], float) for name in LAW.names)
    L = alpha * C**beta + b
    EL = compute_for(dense, L, unit=C)
    return Leverage(np.broadcast_to(L, EL.shape).copy(), compute_for(dense, L), EL)
