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
    ln_alpha, exponent, ln_b = (theta_BP[:, i, None] for i in range(3))
    ln_EL, by_EL = joint.LAW.function(theta_BP[:, 3:], {**columns, "A": 1 - columns["S"]})
    # ln of the compute of the dense model that has the same loss.
    ln_C = np.log(columns["C"]) + ln_EL
    ln_term = ln_alpha + exponent * ln_C
    ln_L = np.logaddexp(ln_term, ln_b)
    weight = np.exp(ln_term - ln_L)  # of the compute term in L
    own = np.stack([weight, weight * ln_C, 1 - weight], axis=1)
    return ln_L, np.concatenate([own, (weight * exponent)[:, None] * by_EL], axis=1)


LAW, VARIANTS = law_beside(__file__, function=_ln_loss)
