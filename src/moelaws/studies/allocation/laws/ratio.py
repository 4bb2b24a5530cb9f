"""Loss-optimal ratio of expert to attention FLOPs (allocation paper, Eq 1 and sec 3.3).

r*(C, S) = alpha_r(S) C^beta_r(S). ``LAW`` fits both coefficients' dependence on sparsity at once;
the variants are the paper's two stages: a line in ln C at each sparsity (``stage1``), then lines of
its coefficients in ln(1 - S) (``stage2_alpha``, ``stage2_beta``).
"""

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array, Columns
from moelaws.laws.declared import law_beside


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    ln_alpha0, alpha1, beta0, beta1 = theta_BP.T[:, :, None]
    ln_x, ln_C = np.log1p(-columns["S"]), np.log(columns["C"])
    growth = np.exp(beta1 * ln_x) * ln_C
    value = ln_alpha0 + alpha1 * ln_x + beta0 * growth
    rows = np.broadcast_arrays(1.0, ln_x, growth, beta0 * growth * ln_x, value)[:-1]
    return value, np.stack(rows, axis=1)


LAW, VARIANTS = law_beside(__file__, function=_value_and_jacobian)


def ratio(C: ArrayLike, S: ArrayLike) -> Array:
    """Returns r* at total compute ``C`` (FLOPs) and sparsity ``S``. Source: allocation, Eq 1."""
    return np.asarray(LAW.predict(LAW.published, {"C": C, "S": S}))
