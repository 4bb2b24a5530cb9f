"""Efficiency leverage over compute, a power law (leverage paper, Eq 3)."""

from __future__ import annotations

from moelaws.laws.base import FitProtocol, Parameter, Variable
from moelaws.laws.kinds import LinearLaw, log, one

LAW = LinearLaw(
    id="leverage.compute",
    title="Efficiency leverage over compute",
    source="leverage, Eq 3",
    equation="EL = exp(c_C)*C^a_C",
    latex=r"EL = e^{c_C}\, C^{a_C}",
    variables=(Variable("C", "FLOP", "training compute of the mixture of experts"),),
    response=Variable("EL", "1", "efficiency leverage: dense compute over compute at equal loss"),
    parameters=(
        Parameter("c_C", "1", -500.0, 500.0, "ln EL at 1 FLOP"),
        Parameter("a_C", "1", -10.0, 10.0, "exponent; positive where leverage grows with compute"),
    ),
    coefficients=None,  # fitted for each architecture; the paper draws the lines alone
    features={"c_C": one, "a_C": log("C")},
    log_response=True,
    protocol=FitProtocol(
        objective="squared",
        source="leverage, sec 4.2.1 and App N.3; objective not stated",
    ),
    errata=(
        "E1.11 (sec 4.2.1): printed: Eq 2 is fitted to each architecture's leverage over compute; "
        "corrected: Eq 3 is, and the curves are in Figure 4, not 6.",
        "R: the paper gives no objective for this fit; here least squares on ln EL.",
        "Eq 4 at fixed A and G is this law with a_C = d*log10(Ahat).",
    ),
)
