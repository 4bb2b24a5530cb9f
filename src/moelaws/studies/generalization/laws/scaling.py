"""Loss over one scale, active parameters or tokens: the slopes of the generalization paper.

A straight line of ln L over ln x has no floor. The form ``floor`` has one, and the theory speaks of
its slope. Fits show which of the two forms the runs follow.
"""

import math
from dataclasses import replace

from moelaws.laws.base import FitProtocol, Parameter, Variable
from moelaws.laws.forms import power_law, power_law_sum
from moelaws.laws.terms import Term, irreducible_loss, over

_X = Variable("x", "1", "what is scaled: active parameters, or training tokens")
_UNIT = "nats/token x^alpha"
_SOURCE = "generalization, sec 5.1 and App A.5"
_ERRATA = (
    "U (sec 5.1, App A.6): the floor L_inf that the paper subtracts before it draws a line is lost "
    "in the text, as are its slopes; here the floor is fitted with them, or there is none.",
)


LAW = power_law(
    Term(
        Parameter("a", _UNIT, 1e-300, 1e300, "coefficient", "log"),
        (over(_X, "alpha", None, "exponent: minus the slope of ln L", (-math.inf, math.inf)),),
    ),
    id="generalization.scaling",
    title="Loss over one scale without a floor: a line in ln-ln",
    source=_SOURCE,
    latex=r"L = a\, x^{-\alpha}",
    protocol=FitProtocol("squared", f"{_SOURCE}: linear regression of ln L"),
    errata=_ERRATA,
)

_ALPHA = over(_X, "alpha", None, "exponent", starts=(0.05, 0.15, 0.3, 0.6, 1.0))
_A = Parameter("a", _UNIT, 1e-6, 1e40, "coefficient", "log", starts=(0.0, 2.0, 5.0, 10.0))
_L_INF = replace(
    irreducible_loss("L_inf", None, starts=(-1.0, 0.0, 0.5, 1.0)).coefficient,
    description="floor: the loss at infinite x",
)

VARIANTS = {
    "floor": power_law_sum(
        id=LAW.id,
        variant="floor",
        title="Loss over one scale with a floor",
        source=_SOURCE,
        latex=r"L = a\, x^{-\alpha} + L_\infty",
        terms=(Term(_A, (_ALPHA,)), Term(_L_INF)),
        protocol=FitProtocol(
            "squared",
            f"{_SOURCE} state no way to choose the floor; ours: squares of ln L, 80 starts",
        ),
        errata=_ERRATA,
    )
}
