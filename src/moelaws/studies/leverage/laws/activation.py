"""Efficiency leverage over the activation ratio, which saturates (leverage paper, Eq 1)."""

import numpy as np

from moelaws.laws.base import Array, Columns, FitProtocol, signed
from moelaws.laws.clark.routing import ln_saturated
from moelaws.laws.declared import law_beside
from moelaws.laws.forms import LinearLaw
from moelaws.laws.terms import log


def _ln_EL(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    exponent, ln_start, ln_max = (theta_BP[:, i, None] for i in range(3))
    ln_A, by_start, by_max = ln_saturated(columns["A"], ln_start, ln_max)
    return exponent * ln_A, np.stack([ln_A, exponent * by_start, exponent * by_max], axis=1)


# The law is fitted at each budget; the paper draws these curves and prints no coefficients.
LAW, VARIANTS = law_beside(__file__, function=_ln_EL)
UNSTATED = "R: the paper gives no objective for this fit; here least squares on ln EL, as for R2."
VARIANTS["power"] = LinearLaw(
    id=LAW.id,
    variant="power",
    title="Efficiency leverage over the activation ratio, without saturation",
    source="leverage, App N.1",
    equation="EL = A^a_A",
    latex=r"EL = A^{a_A}",
    variables=LAW.variables,
    response=LAW.response,
    parameters=(signed("a_A", 4.0, "exponent; negative where sparser is better"),),
    features={"a_A": log("A")},
    log_response=True,
    protocol=FitProtocol(
        "squared", "leverage, App N.1 and Table 16: R2 .9772; objective not stated"
    ),
    errata=(
        "R: the paper prints log EL proportional to log A alone; without a factor it is the "
        "limit of Eq 1 at A_start = 0 and infinite A_max, with EL = 1 at A = 1.",
        UNSTATED,
    ),
)
