"""Efficiency leverage over compute, a power law (leverage paper, Eq 3)."""

from moelaws.laws.base import FitProtocol, signed
from moelaws.laws.forms import LinearLaw
from moelaws.laws.terms import log, one
from moelaws.laws.vocabulary import variable
from moelaws.studies.leverage.laws import activation

LAW = LinearLaw(
    id="leverage.compute",
    title="Efficiency leverage over compute",
    source="leverage, Eq 3",
    equation="EL = exp(c_C)*C^a_C",
    latex=r"EL = e^{c_C}\, C^{a_C}",
    variables=(variable("C", "training compute of the mixture of experts"),),
    response=activation.LAW.response,
    # The law is fitted to each architecture; the paper draws these lines and prints no numbers.
    parameters=(
        signed("c_C", 500.0, "ln EL at 1 FLOP"),
        signed("a_C", 10.0, "exponent; positive where leverage grows with compute"),
    ),
    features={"c_C": one, "a_C": log("C")},
    log_response=True,
    protocol=FitProtocol("squared", "leverage, sec 4.2.1 and App N.3; objective not stated"),
    errata=(
        "E1.11 (sec 4.2.1): printed: Eq 2 is fitted to each architecture's leverage over compute; "
        "corrected: Eq 3 is, and the curves are in Figure 4, not 6.",
        "R: the paper gives no objective for this fit; here least squares on ln EL.",
        "Eq 4 at fixed A and G is this law with a_C = d*log10(Ahat).",
    ),
)
