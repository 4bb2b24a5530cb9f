"""Loss of one architecture over compute, and the efficiency leverage of two such curves.

The efficiency leverage EL of a mixture of experts is how many times its compute a dense model
needs for the same loss (leverage paper, sec 3 and Algorithm 1).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array
from moelaws.laws.declared import law_beside

LAW, VARIANTS = law_beside(__file__)


@dataclass(frozen=True)
class Leverage:
    """Efficiency leverage at a compute of the mixture of experts; arrays of one shape."""

    L: Array  # L*: the loss that the mixture of experts has there, nats/token
    C_dense: Array  # the dense model's compute for the same loss, FLOP
    EL: Array  # C_dense / C_moe


def loss(curve: Mapping[str, ArrayLike], C: ArrayLike) -> Array:
    """Returns the loss of the ``curve`` at compute ``C`` (FLOP); broadcasts with the parameters."""
    alpha, beta, b = (np.asarray(curve[name], float) for name in LAW.names)
    return np.asarray(alpha * np.asarray(C, float) ** beta + b)


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
    L = loss(moe, C_moe)
    EL = compute_for(dense, L, unit=C_moe)
    return Leverage(np.broadcast_to(L, EL.shape).copy(), compute_for(dense, L), EL)
