"""Loss over one scale, active parameters or tokens: the slopes of the generalization paper.

A straight line of ln L over ln x has no floor; the form ``floor`` has, and is the one whose slope
the theory speaks of. Which of the two the runs follow is for the fit to say.
"""

from __future__ import annotations

import math

from moelaws.laws.base import FitProtocol, Parameter, Variable
from moelaws.laws.kinds import LinearLaw, PowerLawSum, Term, minus_log, one

_X = Variable("x", "1", "what is scaled: active parameters, or training tokens")
_L = Variable("L", "nats/token", "held-out loss")
_SOURCE = "generalization, sec 5.1 and App A.5"
_ERRATA = (
    "U (sec 5.1, App A.6): the floor L_inf that the paper subtracts before it draws a line is lost "
    "in the text, as are its slopes; here the floor is fitted with them, or there is none.",
)

LAW = LinearLaw(
    id="generalization.scaling",
    title="Loss over one scale without a floor: a line in ln-ln",
    source=_SOURCE,
    equation="L = a/x^alpha",
    latex=r"L = a\, x^{-\alpha}",
    variables=(_X,),
    response=_L,
    parameters=(
        Parameter("a", "nats/token x^alpha", 1e-300, 1e300, "coefficient", "log"),
        Parameter("alpha", "1", -math.inf, math.inf, "exponent: minus the slope of ln L"),
    ),
    coefficients=None,
    features={"a": one, "alpha": minus_log("x")},
    log_response=True,
    protocol=FitProtocol(objective="squared", source=f"{_SOURCE}: linear regression of ln L"),
    errata=_ERRATA,
)

VARIANTS = {
    "floor": PowerLawSum(
        id=LAW.id,
        variant="floor",
        title="Loss over one scale with a floor",
        source=_SOURCE,
        equation="L = a/x^alpha + L_inf",
        latex=r"L = a\, x^{-\alpha} + L_\infty",
        variables=(_X,),
        response=_L,
        parameters=(
            Parameter("a", "nats/token x^alpha", 1e-6, 1e40, "coefficient", "log"),
            Parameter("alpha", "1", 0.0, 4.0, "exponent"),
            Parameter("L_inf", "nats/token", 1e-3, 1e3, "floor: the loss at infinite x", "log"),
        ),
        coefficients=None,
        terms=(Term("a", {"alpha": minus_log("x")}), Term("L_inf")),
        protocol=FitProtocol(
            objective="squared",
            grid={
                "a": (0.0, 2.0, 5.0, 10.0),
                "alpha": (0.05, 0.15, 0.3, 0.6, 1.0),
                "L_inf": (-1.0, 0.0, 0.5, 1.0),
            },
            source=f"{_SOURCE} state no way to choose the floor; ours: squares of ln L, 80 starts",
        ),
        errata=_ERRATA,
    )
}
