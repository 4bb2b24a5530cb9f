"""Efficiency leverage over the experts' granularity (leverage paper, Eq 2)."""

from dataclasses import replace

import numpy as np

from moelaws.laws.base import Array, Columns, FitProtocol, signed
from moelaws.laws.clark.routing import ln_saturated
from moelaws.laws.declared import law_beside
from moelaws.laws.forms import LinearLaw
from moelaws.laws.terms import log, one


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


# The law is fitted at each budget; the paper draws these curves and prints no coefficients.
LAW, _FORMS = law_beside(__file__, function=_log_polynomial)
_SATURATING = replace(_FORMS["saturating"], function=_saturating)
VARIANTS = {
    "power": LinearLaw(
        id=LAW.id,
        variant="power",
        title="Efficiency leverage as a power of the granularity",
        source="leverage, App N.2",
        equation="EL = exp(a_G)*G^b_G",
        latex=r"EL = e^{a_G}\, G^{b_G}",
        variables=LAW.variables,
        response=LAW.response,
        parameters=(
            signed("a_G", 10.0, "ln EL at granularity 1"),
            signed("b_G", 4.0, "exponent of the granularity"),
        ),
        features={"a_G": one, "b_G": log("G")},
        log_response=True,
        protocol=FitProtocol(
            "squared", "leverage, App N.2 and Table 17: R2 .8276; objective not stated"
        ),
        errata=_SATURATING.errata[:2],
    ),
    "saturating": _SATURATING,
}
