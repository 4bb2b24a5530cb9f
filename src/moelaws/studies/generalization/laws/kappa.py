"""Amplification of the data exponent with the number of experts (generalization paper, App B)."""

import math

import numpy as np

from moelaws.laws.base import FitProtocol, Parameter, Variable, signed
from moelaws.laws.forms import LinearLaw, power_law
from moelaws.laws.terms import Term, one, times
from moelaws.laws.vocabulary import variable

_SOURCE = "generalization, App B.2 and Fig 6b; values: least squares on Table 5, E = 1..32"
_E = variable("E", "experts of a layer")
_KAPPA = Variable("kappa", "1", "alpha_D over alpha_N / (1 + alpha_N)")
_PROTOCOL = FitProtocol("squared", "generalization, App B.2: a line over Table 5")
_ERRATA = (
    "E3.3 (Table 5): the derived cells are truncated, not rounded, to four decimals; kappa here is "
    "computed from alpha_N and alpha_D.",
    "R (App B.2): the paper calls its fit log-linear; whether ln kappa over ln E or kappa over "
    "log2 E is meant does not show. Both are here: ln-ln (R2 = .9966) is the law, the other "
    "(R2 = .9867) its variant log2.",
)

_KAPPA_1 = Parameter("kappa_1", "1", 1e-6, 1e6, "amplification at one expert", "log", 1.2603269)
_RHO = times(_E, "rho", 0.12632505, "exponent of the number of experts", (-math.inf, math.inf))

LAW = power_law(
    Term(_KAPPA_1, (_RHO,)),
    id="generalization.kappa",
    title="Amplification of the data exponent with the number of experts",
    source=_SOURCE,
    equation="kappa = kappa_1 * E^rho",
    latex=r"\kappa(E) = \kappa_1 E^{\rho}",
    response=_KAPPA,
    protocol=_PROTOCOL,
    errata=_ERRATA,
)

VARIANTS = {
    "log2": LinearLaw(
        id=LAW.id,
        variant="log2",
        title="Amplification of the data exponent, linear in log2 of the number of experts",
        source=_SOURCE,
        equation="kappa = c0 + c1*log2(E)",
        latex=r"\kappa(E) = c_0 + c_1 \log_2 E",
        variables=(_E,),
        response=_KAPPA,
        parameters=(
            signed("c0", math.inf, "amplification at one expert", 1.2385663),
            signed("c1", math.inf, "rise with each doubling of the experts", 0.13918089),
        ),
        features={"c0": one, "c1": lambda columns: np.log2(columns["E"])},
        protocol=_PROTOCOL,
        errata=_ERRATA,
    )
}
