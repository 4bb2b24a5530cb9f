"""Loss-optimal ratio of expert to attention FLOPs (allocation paper, Eq 1 and sec 3.3).

r*(C, S) = alpha_r(S) C^beta_r(S). ``LAW`` fits both coefficients' dependence on sparsity at once;
the variants are the paper's two stages: a line in ln C at each sparsity (``stage1``), then lines of
its coefficients in ln(1 - S) (``stage2_alpha``, ``stage2_beta``).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array, Columns, FitProtocol, Parameter, Variable, signed
from moelaws.laws.forms import GeneralLaw, LinearLaw, power_law
from moelaws.laws.terms import Term, one_minus, times
from moelaws.laws.vocabulary import variable

_C = variable("C", "total training compute")
_S = variable("S", "sparsity (E - k) / E, shared experts among E and k")
_R_STAR = variable("r_star", "loss-optimal FLOPs of the experts over FLOPs of attention")
_ALPHA_R = Parameter("alpha_r", "FLOP^-beta_r", 1e-40, 1e40, "prefactor", "log")
_ALPHA0 = replace(
    _ALPHA_R,
    name="alpha0",
    description="alpha_r of a dense model",
    published=6.7e-5,
    starts=(-20.0, -10.0, 0.0),
)
_ALPHA1 = times(
    one_minus(_S), "alpha1", -1.23, "exponent of 1 - S in alpha_r", (-10.0, 10.0), (-2.0, -1.0, 0.0)
)
_BETA0 = signed("beta0", 4.0, "beta_r of a dense model", 0.24, (0.1, 0.3))
_BETA1 = times(one_minus(_S), "beta1", 0.21, "exponent of 1 - S in beta_r", (-4.0, 4.0), (0.0, 0.5))


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    ln_alpha0, alpha1, beta0, beta1 = theta_BP.T[:, :, None]
    ln_x, ln_C = np.log1p(-columns["S"]), np.log(columns["C"])
    growth = np.exp(beta1 * ln_x) * ln_C
    value = ln_alpha0 + alpha1 * ln_x + beta0 * growth
    rows = np.broadcast_arrays(1.0, ln_x, growth, beta0 * growth * ln_x, value)[:-1]
    return value, np.stack(rows, axis=1)


LAW = GeneralLaw(
    id="allocation.ratio",
    title="Loss-optimal expert-attention ratio",
    source="allocation, Eq 1 with the coefficients of sec 3.3",
    equation="r_star = alpha0*(1-S)^alpha1 * C^(beta0*(1-S)^beta1)",
    latex=r"r^* = \alpha_0 (1-S)^{\alpha_1}\, C^{\beta_0 (1-S)^{\beta_1}}",
    variables=(_C, _S),
    response=_R_STAR,
    parameters=(_ALPHA0, _ALPHA1.exponent, _BETA0, _BETA1.exponent),
    function=_value_and_jacobian,
    protocol=FitProtocol(
        "squared",
        "squares of ln r as in allocation, sec 3.3, where the fit is made in two stages (the "
        "variants); the start grid is chosen here",
    ),
    errata=(
        "C is called both per-token and total compute. It is the total: r* = 1.22, 1.02, 0.97, "
        "1.03 at 1e20 FLOPs for E = 17, 33, 65, 129, within the swept [0.2, 1.5]; with 1e9 FLOPs "
        "a token it would be 0.02 to 0.07.",
        "r* is not monotone in sparsity: at 1e20 FLOPs it is least at S = 95.14 %, and a sparser "
        "model wants more expert compute again.",
        "E0.1 (App A.2, Eq 4): printed: this power law derived from the loss of Eq 3; corrected: "
        "Eq 3 has no such law unless its two exponents are equal (allocation.elasticity). Eq 1 "
        "stands as an empirical law alone.",
        "E0.2 (sec 7): printed: beta_r grows as (1-S)^0.24; corrected: (1-S)^0.21, 0.24 being the "
        "prefactor.",
        "E0.3 (App C.1): printed: 2 n d^2 FLOPs for applying attention to the values; corrected: "
        "2 n^2 d. As printed r is .929 where it is .599 (10 layers of width 640, 64 + 1 experts, "
        "n = 4096). On the shapes of leverage's Table 12, which the sweep seems to use, r spans "
        "0.21 to 1.40 as corrected, the paper's range, and 0.35 to 1.93 as printed.",
        "E0.6 (abstract): printed: r is a fraction of the total FLOPs; corrected: a ratio, whose "
        "experts' share of both is r/(1+r).",
        "E0.7 (sec 6.1): printed: r* grows by over 40 % from S = 97.67 % to 82.35 %; the "
        "coefficients give 18 % at 1e20 and 35 % at 1e21 FLOPs, the largest budget, and 40 % at "
        "1.82e21 alone; below 5.40e18 the order is reversed. Printed: r* < 1 for S > 95 % and > 1 "
        "for S < 90 %; true of the four tested sparsities from 3.0e19 to 7.4e19 FLOPs alone, and "
        "of all S < 90 % at no budget that keeps 97.67 % below 1 (90 % crosses 1 at 7.83e19).",
    ),
)


def _stage(variant: str, term: Term, **stated: Any) -> LinearLaw:
    return power_law(
        term,
        id="allocation.ratio",
        variant=variant,
        protocol=FitProtocol("squared", "allocation, sec 3: lines in log-log"),
        errata=LAW.errata,
        **stated,
    )


_BETA_R = times(_C, "beta_r", None, "exponent of the compute", (-10.0, 10.0))

VARIANTS: Mapping[str, LinearLaw] = {
    "stage1": _stage(
        "stage1",
        Term(_ALPHA_R, (_BETA_R,)),
        title="Loss-optimal expert-attention ratio at one sparsity",
        source="allocation, sec 3.2 and Fig 2a: one fit a sparsity",
        equation="r_star = alpha_r * C^beta_r",
        latex=r"r^* = \alpha_r C^{\beta_r}",
        response=_R_STAR,
    ),
    "stage2_alpha": _stage(
        "stage2_alpha",
        Term(_ALPHA0, (_ALPHA1,)),
        title="Prefactor of the loss-optimal ratio from sparsity",
        source="allocation, sec 3.3 and Fig 2b",
        equation="alpha_r = alpha0 * (1-S)^alpha1",
        latex=r"\alpha_r = \alpha_0 (1-S)^{\alpha_1}",
        response=Variable("alpha_r", "FLOP^-beta_r", "prefactor that stage1 fits at one sparsity"),
    ),
    "stage2_beta": _stage(
        "stage2_beta",
        Term(replace(_BETA0, low=1e-6, high=1e3, scale="log"), (_BETA1,)),
        title="Exponent of the loss-optimal ratio from sparsity",
        source="allocation, sec 3.3 and Fig 2c",
        equation="beta_r = beta0 * (1-S)^beta1",
        latex=r"\beta_r = \beta_0 (1-S)^{\beta_1}",
        response=Variable("beta_r", "1", "exponent that stage1 fits at one sparsity"),
    ),
}


def ratio(C: ArrayLike, S: ArrayLike) -> Array:
    """Returns r* at total compute ``C`` (FLOPs) and sparsity ``S``. Source: allocation, Eq 1."""
    return LAW.predict(LAW.published or {}, {"C": C, "S": S})
