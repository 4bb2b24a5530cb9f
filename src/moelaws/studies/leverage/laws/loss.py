"""Loss of a mixture of experts over compute, by its efficiency leverage (leverage paper, Eq 4).

The paper publishes the leverage and no loss. Where a dense model's loss over compute is assumed,
the leverage gives the mixture's: at C it has the loss that the dense model has at EL*C. This law
serves to simulate losses, and to fit the leverage to losses in one stage.
"""

import numpy as np

from moelaws.laws.base import Array, Columns
from moelaws.laws.declared import law_beside
from moelaws.studies.leverage.laws import joint


def _ln_loss(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    """Returns ln L (B, n) and its derivatives (B, P, n)."""
    ln_L, weight, by_term, _ = _terms(theta_BP, columns)
    jacobian = weight[:, None] * by_term
    jacobian[:, 2] = 1 - weight
    return ln_L, jacobian


def _curvature(theta_BP: Array, columns: Columns, psi_Bn: Array) -> Array:
    """Returns the second derivatives of ln L, weighted by ``psi_Bn`` and summed over the rows."""
    _, weight, along, by_EL = _terms(theta_BP, columns)
    along[:, 2] = -1.0  # of ln of the compute term less ln of the floor
    second: Array = (along * (psi_Bn * weight * (1 - weight))[:, None]) @ along.swapaxes(1, 2)
    # The term's own are those of the exponent with ln EL, and of ln EL.
    mixed = np.einsum("bn,bpn->bp", psi_Bn * weight, by_EL)
    second[:, 1, 3:] += mixed
    second[:, 3:, 1] += mixed
    of_EL = psi_Bn * weight * theta_BP[:, 1, None]
    second[:, 3:, 3:] += joint.curvature(theta_BP[:, 3:], _with_ratio(columns), of_EL)
    return second


def _terms(theta_BP: Array, columns: Columns) -> tuple[Array, Array, Array, Array]:
    """Returns ln L, the weight of the compute term in L, and derivatives of its ln and of ln EL."""
    ln_alpha, exponent, ln_b = (theta_BP[:, i, None] for i in range(3))
    ln_EL, by_EL = joint.LAW.function(theta_BP[:, 3:], _with_ratio(columns))
    # ln of the compute of the dense model that has the same loss.
    ln_C = np.log(columns["C"]) + ln_EL
    ln_term = ln_alpha + exponent * ln_C
    ln_L = np.logaddexp(ln_term, ln_b)
    own = np.stack([np.ones_like(ln_C), ln_C, np.zeros_like(ln_C)], axis=1)
    by_term = np.concatenate([own, exponent[:, None] * by_EL], axis=1)
    return ln_L, np.exp(ln_term - ln_L), by_term, by_EL


def _with_ratio(columns: Columns) -> Columns:
    """Returns the columns with the activation ratio A."""
    return {**columns, "A": 1 - columns["S"]}


LAW, VARIANTS = law_beside(__file__, function=_ln_loss, second=_curvature)
