"""Efficiency leverage over the experts' granularity (leverage paper, Eq 2)."""

from dataclasses import replace

import numpy as np

from moelaws.laws.base import Array, Columns, Law, Parameter, signed
from moelaws.laws.clark.routing import ln_saturated
from moelaws.laws.forms import GeneralLaw, LinearLaw
from moelaws.laws.terms import log, one
from moelaws.laws.vocabulary import variable
from moelaws.studies.leverage.laws.activation import EL, FIGURE_4, UNSTATED, least_squares

G = variable("G")
_A_G = signed("a_G", 10.0, "ln EL at granularity 1")
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
    response=EL,
    # The law is fitted at each budget; the paper draws these curves and prints no coefficients.
    parameters=(
        replace(_A_G, starts=(0.0, 1.0, 2.0)),
        signed(
            "b_G", 2.0, "curvature; negative where a granularity is best", None, (-0.3, -0.05, 0.05)
        ),
        signed("c_G", 40.0, "-2 log2 of the best granularity", starts=(-10.0, -5.0, 5.0)),
    ),
    function=_log_polynomial,
    protocol=least_squares("App N.2 and Table 17", ".9575"),
    errata=(
        "R (Eq 2): printed without the logarithm's base; log2 of G, with which Table 6 gives its "
        "text's best granularity, and ln of EL.",
        FIGURE_4,
        UNSTATED,
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
        response=EL,
        parameters=(_A_G, signed("b_G", 4.0, "exponent of the granularity")),
        features={"a_G": one, "b_G": log("G")},
        log_response=True,
        protocol=least_squares("App N.2 and Table 17", ".8276"),
        errata=(_FORM, UNSTATED),
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
        response=EL,
        parameters=(
            signed("a_G", 100.0, "ln EL at Ghat = 1", starts=(0.0, 1.0)),
            signed("b_G", 40.0, "exponent of the saturated granularity", starts=(0.1, 0.5, 2.0)),
            Parameter(
                "G_start", "1", 1e-3, 1.0, "saturation at coarse experts", "log", None, (-5.0, -1.0)
            ),
            Parameter(
                "G_max", "1", 1.5, 1e6, "saturation at fine experts", "log", None, (1.0, 3.0, 10.0)
            ),
        ),
        function=_saturating,
        protocol=least_squares("App N.2 and Table 17", ".9432"),
        errata=(
            _FORM,
            UNSTATED,
            "R: Ghat is the transform of Eq 1 in G; it rises with G, so that no granularity "
            "within a grid is best.",
        ),
    ),
}
