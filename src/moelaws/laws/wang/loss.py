"""Loss from size, data and number of experts (Wang et al. 2024; allocation paper, Eq 5)."""

from __future__ import annotations

from moelaws.laws.base import AT_LEAST_1, FitProtocol, Parameter, Variable
from moelaws.laws.kinds import PowerLawSum, Term, minus_log

_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)
_LOGS = (0.0, 10.0, 20.0)

LAW = PowerLawSum(
    id="wang.loss",
    title="Loss from size, data and number of experts",
    source="Wang et al. 2024, as in allocation, Eq 5",
    equation="L = a/(N^alpha * E^gamma) + b/D^beta + tau",
    latex=r"L = \frac{a}{N^{\alpha} E^{\gamma}} + \frac{b}{D^{\beta}} + \tau",
    variables=(
        Variable("N", "parameters", "parameters: total or active, one of them throughout a fit"),
        Variable("D", "tokens", "training tokens"),
        Variable("E", "experts", "experts a layer; 1 for a dense model", AT_LEAST_1),
    ),
    response=Variable("L", "nats/token", "held-out loss"),
    parameters=(
        Parameter(
            "a", "nats/token parameters^alpha", 1e-6, 1e40, "coefficient of the size term", "log"
        ),
        Parameter("b", "nats/token tokens^beta", 1e-6, 1e40, "coefficient of the data term", "log"),
        Parameter("tau", "nats/token", 1e-3, 1e3, "irreducible loss", "log"),
        Parameter("alpha", "1", 0.0, 4.0, "exponent of the size"),
        Parameter("beta", "1", 0.0, 4.0, "exponent of the data"),
        Parameter("gamma", "1", -4.0, 4.0, "exponent of the number of experts"),
    ),
    coefficients=None,  # the allocation paper draws the fit and prints no values
    terms=(
        Term("a", {"alpha": minus_log("N"), "gamma": minus_log("E")}),
        Term("b", {"beta": minus_log("D")}),
        Term("tau"),
    ),
    protocol=FitProtocol(
        objective="huber",
        delta=1e-3,
        grid={
            "a": _LOGS,
            "b": _LOGS,
            "tau": (1.5,),
            "alpha": _QUARTERS,
            "beta": _QUARTERS,
            "gamma": _QUARTERS,
        },
        holdout="S >= 0.976",
        source=(
            "chosen here, in the style of allocation's Table 3: the paper states no protocol for "
            "its baselines; the held-out sparsity is that of its own law"
        ),
    ),
    errata=(
        "E0.5 (allocation, App D.3): printed: both panels of Fig 5 are said to show this law; "
        "corrected: panel (a) does, panel (b) shows the law of Abnar et al. (sparsity.loss), as "
        "the text says.",
        "The allocation paper quotes the law as limited to E < 100 and blind to the fraction of "
        "experts that are active; two tables that differ in k alone get the same prediction.",
    ),
)
