"""Efficiency leverage over the experts' granularity (leverage paper, Eq 2)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array, Columns, FitProtocol, Law, Parameter, Variable
from moelaws.laws.kinds import GeneralLaw, LinearLaw, log, one
from moelaws.laws.leverage.activation import ln_saturated

G = Variable("G", "1", "granularity 2 d_model / d_expert")
_EL = Variable("EL", "1", "efficiency leverage: dense compute over compute at equal loss")
_UNSTATED = "R: the paper gives no objective for this fit; here least squares on ln EL, as for R2."
_FORM = (
    "R: the paper names this form and prints no equation; the factor e^a_G is needed, for EL is "
    "far from 1 at every G measured."
)


def _log_polynomial(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    constant, curvature, shift = (theta_BP[:, i, None] for i in range(3))
    x = np.log2(columns["G"])
    bend = x * (x + shift)
    jacobian = np.stack(np.broadcast_arrays(np.ones_like(x), bend, curvature * x), axis=1)
    return constant + curvature * bend, jacobian


def _saturating(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    constant, exponent, ln_start, ln_max = (theta_BP[:, i, None] for i in range(4))
    ln_G, by_start, by_max = ln_saturated(columns["G"], ln_start, ln_max)
    jacobian = np.stack([np.ones_like(ln_G), ln_G, exponent * by_start, exponent * by_max], axis=1)
    return constant + exponent * ln_G, jacobian


LAW = GeneralLaw(
    id="leverage.granularity",
    title="Efficiency leverage over the granularity",
    source="leverage, Eq 2",
    equation="ln(EL) = a_G + b_G*log2(G)*(log2(G) + c_G)",
    latex=r"\ln EL = a_G + b_G \log_2 G\,(\log_2 G + c_G)",
    variables=(G,),
    response=_EL,
    parameters=(
        Parameter("a_G", "1", -10.0, 10.0, "ln EL at granularity 1"),
        Parameter("b_G", "1", -2.0, 2.0, "curvature; negative where a granularity is best"),
        Parameter("c_G", "1", -40.0, 40.0, "-2 log2 of the best granularity"),
    ),
    coefficients=None,  # fitted at each budget; the paper draws the curves alone
    function=_log_polynomial,
    protocol=FitProtocol(
        objective="squared",
        grid={"a_G": (0.0, 1.0, 2.0), "b_G": (-0.3, -0.05, 0.05), "c_G": (-10.0, -5.0, 5.0)},
        source="leverage, App N.2 and Table 17: R2 .9575; objective not stated",
    ),
    errata=(
        "R (Eq 2): printed without the logarithm's base; log2 of G, with which Table 6 gives its "
        "text's best granularity, and ln of EL.",
        "E1.11 (sec 4.2.1): printed: the univariate laws are presented in Figure 6; corrected: "
        "they are in Figure 4.",
        _UNSTATED,
    ),
)

VARIANTS: dict[str, Law] = {
    "power": LinearLaw(
        id="leverage.granularity",
        variant="power",
        title="Efficiency leverage as a power of the granularity",
        source="leverage, App N.2",
        equation="EL = exp(a_G)*G^b_G",
        latex=r"EL = e^{a_G}\, G^{b_G}",
        variables=(G,),
        response=_EL,
        parameters=(
            Parameter("a_G", "1", -10.0, 10.0, "ln EL at granularity 1"),
            Parameter("b_G", "1", -4.0, 4.0, "exponent of the granularity"),
        ),
        coefficients=None,
        features={"a_G": one, "b_G": log("G")},
        log_response=True,
        protocol=FitProtocol(
            objective="squared",
            source="leverage, App N.2 and Table 17: R2 .8276; objective not stated",
        ),
        errata=(_FORM, _UNSTATED),
    ),
    "saturating": GeneralLaw(
        id="leverage.granularity",
        variant="saturating",
        title="Efficiency leverage as a power of the granularity, which saturates",
        source="leverage, App N.2",
        equation=(
            "EL = exp(a_G)*Ghat^b_G, where Ghat = 1/(1/(G + 1/(1/G_start - 1/G_max)) + 1/G_max)"
        ),
        latex=(
            r"EL = e^{a_G}\, \hat{G}^{b_G},\quad \frac{1}{\hat{G}} = \frac{1}{G +"
            r" (1/G_{start} - 1/G_{max})^{-1}} + \frac{1}{G_{max}}"
        ),
        variables=(G,),
        response=_EL,
        parameters=(
            Parameter("a_G", "1", -100.0, 100.0, "ln EL at Ghat = 1"),
            Parameter("b_G", "1", -40.0, 40.0, "exponent of the saturated granularity"),
            Parameter("G_start", "1", 1e-3, 1.0, "saturation at coarse experts", "log"),
            Parameter("G_max", "1", 1.5, 1e6, "saturation at fine experts", "log"),
        ),
        coefficients=None,
        function=_saturating,
        protocol=FitProtocol(
            objective="squared",
            grid={
                "a_G": (0.0, 1.0),
                "b_G": (0.1, 0.5, 2.0),
                "G_start": (-5.0, -1.0),
                "G_max": (1.0, 3.0, 10.0),
            },
            source="leverage, App N.2 and Table 17: R2 .9432; objective not stated",
        ),
        errata=(
            _FORM,
            _UNSTATED,
            "R: Ghat is the transform of Eq 1 in G; it rises with G, so that no granularity "
            "within a grid is best.",
        ),
    ),
}


def optimal_granularity(params: Mapping[str, ArrayLike]) -> Array:
    """The granularity at which Eq 2 is largest, 2^(-c_G/2); NaN where b_G >= 0; broadcasts."""
    b, c = (np.asarray(params[name], float) for name in ("b_G", "c_G"))
    return np.where(b < 0, np.exp2(-c / 2), np.nan)
