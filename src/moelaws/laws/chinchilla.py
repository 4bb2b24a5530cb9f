"""Chinchilla: loss from parameters and tokens of a dense model (Hoffmann et al. 2022)."""

from moelaws.laws.base import FitProtocol
from moelaws.laws.forms import power_law_sum
from moelaws.laws.terms import irreducible_loss, over, term
from moelaws.laws.vocabulary import variable

_LOGS = (0.0, 5.0, 10.0, 15.0, 20.0, 25.0)
_EXPONENTS = (0.0, 0.5, 1.0, 1.5, 2.0)
_SIZE = over(variable("N", "parameters of the model"), "alpha", 0.3478, starts=_EXPONENTS)
_DATA = over(variable("D"), "beta", 0.3659, starts=_EXPONENTS)

LAW = power_law_sum(
    id="chinchilla",
    title="Loss of a dense model from parameters and tokens",
    source="Hoffmann et al. 2022, Eq 2; values: refit of Besiroglu et al. 2024",
    terms=(
        term("A", 482.01, "the size term", _SIZE, starts=_LOGS),
        term("B", 2085.43, "the data term", _DATA, starts=_LOGS),
        irreducible_loss("E", 1.8169, starts=(-1.0, -0.5, 0.0, 0.5, 1.0)),
    ),
    order=("A", "B", "E", "alpha", "beta"),
    protocol=FitProtocol("huber", "Hoffmann et al. 2022, approach 3: 4,500 starts"),
    errata=(
        "The refit's values are the optimum of another objective, a Huber likelihood with a "
        "fitted scale sigma; the sum of Huber losses at delta = 1e-3 has its optimum elsewhere.",
        "Minimising the mean instead of the sum with an optimiser's default tolerances stops "
        "early, at a point that is no optimum.",
    ),
)
