"""Amplification of the data exponent with the number of experts (generalization paper, App B)."""

import math

import numpy as np

from moelaws.laws.base import signed
from moelaws.laws.declared import law_beside
from moelaws.laws.forms import LinearLaw
from moelaws.laws.terms import one

LAW, VARIANTS = law_beside(__file__)
VARIANTS["log2"] = LinearLaw(
    id=LAW.id,
    variant="log2",
    title="Amplification of the data exponent, linear in log2 of the number of experts",
    source=LAW.source,
    equation="kappa = c0 + c1*log2(E)",
    latex=r"\kappa(E) = c_0 + c_1 \log_2 E",
    variables=LAW.variables,
    response=LAW.response,
    parameters=(
        signed("c0", math.inf, "amplification at one expert", 1.2385663),
        signed("c1", math.inf, "rise with each doubling of the experts", 0.13918089),
    ),
    features={"c0": one, "c1": lambda columns: np.log2(columns["E"])},
    protocol=LAW.protocol,
    errata=LAW.errata,
)
