"""Loss of the dense baseline over its size (Clark et al. 2022): a power law without a floor."""

import math
from dataclasses import replace

from moelaws.laws.base import FitProtocol
from moelaws.laws.forms import power_law
from moelaws.laws.terms import over, term
from moelaws.laws.vocabulary import LOSS, variable

_ALPHA = 0.078
_N = variable("N", "parameters of the dense model")
_SIZE = over(_N, "alpha", _ALPHA, bounds=(-math.inf, math.inf))

LAW = power_law(
    term("A", 3.568e13**_ALPHA, "the size term", _SIZE, bounds=(1e-300, 1e300)),
    id="clark.dense",
    title="Loss of a dense model from its size, at 130e9 tokens",
    source="Clark et al. 2022, sec 4: L = (3.568e13/N)^.078",
    response=replace(LOSS, description="held-out loss after 130e9 tokens"),
    protocol=FitProtocol("squared", "Clark et al. 2022: squares of log loss"),
    errata=(
        "The paper writes (N_c/N)^alpha; A is N_c^alpha, so that the law is linear in logarithms.",
    ),
)
