"""Chinchilla: loss from parameters and tokens of a dense model (Hoffmann et al. 2022)."""

from __future__ import annotations

from moelaws.laws.base import FitProtocol, Parameter, Variable
from moelaws.laws.kinds import PowerLawSum, Term, minus_log

LAW = PowerLawSum(
    id="chinchilla",
    title="Loss of a dense model from parameters and tokens",
    source="Hoffmann et al. 2022, Eq 2; values: refit of Besiroglu et al. 2024",
    equation="L = A/N^alpha + B/D^beta + E",
    latex=r"L = \frac{A}{N^{\alpha}} + \frac{B}{D^{\beta}} + E",
    variables=(
        Variable("N", "parameters", "parameters of the model"),
        Variable("D", "tokens", "training tokens"),
    ),
    response=Variable("L", "nats/token", "held-out loss"),
    parameters=(
        Parameter(
            "A", "nats/token parameters^alpha", 1e-6, 1e40, "coefficient of the size term", "log"
        ),
        Parameter("B", "nats/token tokens^beta", 1e-6, 1e40, "coefficient of the data term", "log"),
        Parameter("E", "nats/token", 1e-3, 1e3, "irreducible loss", "log"),
        Parameter("alpha", "1", 0.0, 4.0, "exponent of the size term"),
        Parameter("beta", "1", 0.0, 4.0, "exponent of the data term"),
    ),
    coefficients={"A": 482.01, "B": 2085.43, "E": 1.8169, "alpha": 0.3478, "beta": 0.3659},
    terms=(
        Term("A", {"alpha": minus_log("N")}),
        Term("B", {"beta": minus_log("D")}),
        Term("E"),
    ),
    protocol=FitProtocol(
        objective="huber",
        delta=1e-3,
        grid={
            "A": (0.0, 5.0, 10.0, 15.0, 20.0, 25.0),
            "B": (0.0, 5.0, 10.0, 15.0, 20.0, 25.0),
            "E": (-1.0, -0.5, 0.0, 0.5, 1.0),
            "alpha": (0.0, 0.5, 1.0, 1.5, 2.0),
            "beta": (0.0, 0.5, 1.0, 1.5, 2.0),
        },
        source="Hoffmann et al. 2022, approach 3: 4,500 starts",
    ),
    errata=(
        "The refit's values are the optimum of another objective, a Huber likelihood with a "
        "fitted scale sigma; the sum of Huber losses at delta = 1e-3 has its optimum elsewhere.",
        "Minimising the mean instead of the sum with an optimiser's default tolerances stops "
        "early, at a point that is no optimum.",
    ),
)
