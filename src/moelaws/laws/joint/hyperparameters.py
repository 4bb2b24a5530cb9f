"""Learning rate over active size and experts (Ludziejewski et al. 2025, 2502.05172)."""

import math

from moelaws.laws.base import FitProtocol
from moelaws.laws.forms import power_law
from moelaws.laws.leverage.hyperparameters import PEAK
from moelaws.laws.terms import term, times
from moelaws.laws.vocabulary import variable

_N = variable("N_active", "active parameters without embeddings")
_E = variable("E", "experts of an MoE layer, one active; 1 for dense")
_SIZE = times(_N, "alpha", -0.81, "exponent of N_active")
_EXPERTS = times(_E, "gamma", -0.25, "exponent of E")

LAW = power_law(
    term("coefficient", math.exp(8.39), "the rate", _SIZE, _EXPERTS, unit=""),
    id="joint.hyperparameters",
    title="Learning rate over active size and experts, dense and MoE in one law",
    source="Ludziejewski et al. 2025: lr = exp(8.39 - .81 ln(N_act\\e) - .25 ln(E))",
    response=PEAK,
    protocol=FitProtocol("squared", "Ludziejewski et al. 2025: least squares of ln lr"),
    errata=(
        "R: N_act\\e, also quoted as N_act/e, is read as active parameters without embeddings. "
        "Rates are then 1.5e-3 at 1e8 and 2.3e-4 at 1e9 parameters of a dense model, and .42 of "
        "that at 32 experts. The paper fits one expert and eight, and checks 4 and 32.",
    ),
)
