"""Efficiency leverage over the activation ratio, which saturates (leverage paper, Eq 1)."""

from dataclasses import replace

import numpy as np

from moelaws.laws.base import Array, Columns, FitProtocol, Law, Parameter, Variable, signed
from moelaws.laws.clark.routing import ln_saturated
from moelaws.laws.forms import GeneralLaw, LinearLaw
from moelaws.laws.terms import log
from moelaws.laws.vocabulary import variable


def _ln_EL(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    exponent, ln_start, ln_max = (theta_BP[:, i, None] for i in range(3))
    ln_A, by_start, by_max = ln_saturated(columns["A"], ln_start, ln_max)
    return exponent * ln_A, np.stack([ln_A, exponent * by_start, exponent * by_max], axis=1)


A = variable("A", "activation ratio, in one convention throughout a fit")
A_START = Parameter(
    "A_start", "1", 1e-6, 0.9, "saturation at few active experts: Ahat at A = 0", "log"
)
A_MAX = Parameter(
    "A_max", "1", 1.0, 1e20, "saturation at many active experts: Ahat never exceeds it", "log"
)
EL = Variable("EL", "1", "efficiency leverage: dense compute over compute at equal loss")
_EXPONENT = signed("a_A", 4.0, "exponent; negative where sparser is better")
FIGURE_4 = (
    "E1.11 (sec 4.2.1): printed: the univariate laws are presented in Figure 6; corrected: they "
    "are in Figure 4."
)
UNSTATED = "R: the paper gives no objective for this fit; here least squares on ln EL, as for R2."


def least_squares(where: str, r2: str) -> FitProtocol:
    """Returns the protocol of a law for which the paper prints R2 of a fit, but no objective."""
    return FitProtocol("squared", f"leverage, {where}: R2 {r2}; objective not stated")


LAW = GeneralLaw(
    id="leverage.activation",
    title="Efficiency leverage over the activation ratio",
    source="leverage, Eq 1",
    equation="EL = Ahat^a_A, where Ahat = 1/(1/(A + 1/(1/A_start - 1/A_max)) + 1/A_max)",
    latex=(
        r"EL = \hat{A}^{a_A},\quad \frac{1}{\hat{A}} = \frac{1}{A +"
        r" (1/A_{start} - 1/A_{max})^{-1}} + \frac{1}{A_{max}}"
    ),
    variables=(A,),
    response=EL,
    # The law is fitted at each budget; the paper draws these curves and prints no coefficients.
    parameters=(
        replace(_EXPONENT, starts=(-1.0, -0.5, -0.25)),
        replace(A_START, starts=(-9.0, -7.0, -5.0, -3.0)),
        replace(A_MAX, starts=(1.0, 10.0, 40.0)),
    ),
    function=_ln_EL,
    protocol=least_squares("App N.1 and Table 16", ".9915"),
    errata=(
        "E1.4 (sec 4.2.1): printed: A = 1 gives EL = 1, the dense equivalence; corrected: only "
        "where Ahat(1) = 1. With Table 6's A_start Ahat(1) is 1.0163 and EL is .98956 at G = 12, "
        "C = 1e22.",
        FIGURE_4,
        UNSTATED,
        "A_max is hardly identified once it is far above 1: Table 6 has 5.28e16, which is "
        "Ahat = A + A_start.",
    ),
)

VARIANTS: dict[str, Law] = {
    "power": LinearLaw(
        id="leverage.activation",
        variant="power",
        title="Efficiency leverage over the activation ratio, without saturation",
        source="leverage, App N.1",
        equation="EL = A^a_A",
        latex=r"EL = A^{a_A}",
        variables=(A,),
        response=EL,
        parameters=(_EXPONENT,),
        features={"a_A": log("A")},
        log_response=True,
        protocol=least_squares("App N.1 and Table 16", ".9772"),
        errata=(
            "R: the paper prints log EL proportional to log A alone; without a factor it is the "
            "limit of Eq 1 at A_start = 0 and infinite A_max, with EL = 1 at A = 1.",
            UNSTATED,
        ),
    )
}
