"""Loss-optimal ratio of expert to attention FLOPs (allocation paper, Eq 1 and sec 3.3).

r*(C, S) = alpha_r(S) C^beta_r(S). ``LAW`` fits both coefficients' dependence on sparsity at once;
the variants are the paper's two stages: a line in ln C at each sparsity (``stage1``), then lines of
its coefficients in ln(1 - S) (``stage2_alpha``, ``stage2_beta``).
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array, Columns, Parameter, Variable
from moelaws.laws.declared import law_beside
from moelaws.laws.forms import LinearLaw, power_law
from moelaws.laws.terms import Power, Term, one_minus


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    ln_alpha0, alpha1, beta0, beta1 = theta_BP.T[:, :, None]
    ln_x, ln_C = np.log1p(-columns["S"]), np.log(columns["C"])
    growth = np.exp(beta1 * ln_x) * ln_C
    value = ln_alpha0 + alpha1 * ln_x + beta0 * growth
    rows = np.broadcast_arrays(1.0, ln_x, growth, beta0 * growth * ln_x, value)[:-1]
    return value, np.stack(rows, axis=1)


LAW, VARIANTS = law_beside(__file__, function=_value_and_jacobian)
_ALPHA0, _ALPHA1, _BETA0, _BETA1 = LAW.parameters


def _stage2(variant: str, factor: Parameter, exponent: Parameter, **stated: Any) -> LinearLaw:
    """Returns the power law in 1 - S of a coefficient that ``stage1`` fits at one sparsity."""
    return power_law(
        Term(factor, (Power(one_minus(LAW.variables[1]), exponent, inverse=False),)),
        id=LAW.id,
        variant=variant,
        protocol=VARIANTS["stage1"].protocol,
        errata=LAW.errata,
        **stated,
    )


VARIANTS |= {
    "stage2_alpha": _stage2(
        "stage2_alpha",
        _ALPHA0,
        _ALPHA1,
        title="Prefactor of the loss-optimal ratio from sparsity",
        source="allocation, sec 3.3 and Fig 2b",
        equation="alpha_r = alpha0 * (1-S)^alpha1",
        latex=r"\alpha_r = \alpha_0 (1-S)^{\alpha_1}",
        response=Variable("alpha_r", "FLOP^-beta_r", "prefactor that stage1 fits at one sparsity"),
    ),
    "stage2_beta": _stage2(
        "stage2_beta",
        replace(_BETA0, low=1e-6, high=1e3, scale="log"),
        _BETA1,
        title="Exponent of the loss-optimal ratio from sparsity",
        source="allocation, sec 3.3 and Fig 2c",
        equation="beta_r = beta0 * (1-S)^beta1",
        latex=r"\beta_r = \beta_0 (1-S)^{\beta_1}",
        response=Variable("beta_r", "1", "exponent that stage1 fits at one sparsity"),
    ),
}


def ratio(C: ArrayLike, S: ArrayLike) -> Array:
    """Returns r* at total compute ``C`` (FLOPs) and sparsity ``S``. Source: allocation, Eq 1."""
    return np.asarray(LAW.predict(LAW.published, {"C": C, "S": S}))
