"""Loss from size, data and granularity of the experts (Krajewski et al. 2024, Eq 9)."""

from __future__ import annotations

from collections.abc import Mapping

from moelaws.laws.base import FitProtocol, Parameter, Variable
from moelaws.laws.kinds import PowerLawSum, Term, minus_log

_N = Variable("N", "parameters", "total parameters without embeddings")
_D = Variable("D", "tokens", "training tokens")
_L = Variable("L", "nats/token", "held-out loss")

_A = Parameter(
    "a", "nats/token parameters^alpha", 1e-6, 1e40, "coefficient of the size term", "log"
)
_ALPHA = Parameter("alpha", "1", 0.0, 4.0, "exponent of N")
_B = Parameter("b", "nats/token tokens^beta", 1e-6, 1e40, "coefficient of the data term", "log")
_BETA = Parameter("beta", "1", 0.0, 4.0, "exponent of D")
_C = Parameter("c", "nats/token", 1e-3, 1e3, "irreducible loss", "log")

_STARTS = {
    "a": (1.0, 3.0, 5.0),
    "alpha": (0.05, 0.15, 0.4),
    "b": (1.0, 3.0, 5.0),
    "beta": (0.05, 0.15, 0.4),
    "c": (-1.0, 0.0, 1.0),
}
_PROTOCOL = (
    "Krajewski et al. 2024, sec 5.3: Huber at delta 0.1, BFGS, weight decay 5e-4; it states neither"
    " starts nor scale: the starts and residuals of ln L are ours, and no weight decay"
)

LAW = PowerLawSum(
    id="granularity.loss",
    title="Loss from size, data and granularity of the experts",
    source="Krajewski et al. 2024, Eq 9; values: Table 1, MoE",
    equation="L = c + (g/G^gamma + a)/N^alpha + b/D^beta",
    latex=(
        r"L = c + \left(\frac{g}{G^{\gamma}} + a\right) \frac{1}{N^{\alpha}} + \frac{b}{D^{\beta}}"
    ),
    variables=(
        _N,
        _D,
        # Its unit is not that of the leverage paper's G, so that it is never derived as that one.
        Variable("G", "d_ff/d_expert", "granularity d_ff / d_expert = 4 d_model / d_expert"),
    ),
    response=_L,
    parameters=(
        Parameter(
            "g", "nats/token parameters^alpha", 1e-6, 1e40, "coefficient of granularity", "log"
        ),
        Parameter("gamma", "1", 0.0, 4.0, "exponent of G"),
        _A,
        _ALPHA,
        _B,
        _BETA,
        _C,
    ),
    coefficients={
        "g": 2.1,
        "gamma": 0.58,
        "a": 18.1,
        "alpha": 0.115,
        "b": 30.8,
        "beta": 0.147,
        "c": 0.47,
    },
    terms=(
        Term("g", {"gamma": minus_log("G"), "alpha": minus_log("N")}),
        Term("a", {"alpha": minus_log("N")}),
        Term("b", {"beta": minus_log("D")}),
        Term("c"),
    ),
    protocol=FitProtocol(
        objective="huber",
        delta=0.1,
        grid={"g": (-1.0, 1.0, 3.0), "gamma": (0.25, 0.75, 1.25), **_STARTS},
        source=_PROTOCOL,
    ),
    errata=(
        "G here is d_ff/d_expert with d_ff = 4 d_model; the leverage paper's granularity, which "
        "this package's tables hold, is 2 d_model/d_expert: half of it. Multiply a table's G by 2.",
        "Fitted at an expansion rate of 64 (parameters of an MoE layer over those of a dense "
        "one): N is the total, 43 times the active parameters there.",
    ),
)

VARIANTS: Mapping[str, PowerLawSum] = {
    "dense": PowerLawSum(
        id=LAW.id,
        variant="dense",
        title="Loss of a dense model from size and data, of the same study",
        source="Krajewski et al. 2024, Eq 1; values: Table 1, Dense",
        equation="L = c + a/N^alpha + b/D^beta",
        latex=r"L = c + \frac{a}{N^{\alpha}} + \frac{b}{D^{\beta}}",
        variables=(_N, _D),
        response=_L,
        parameters=(_A, _ALPHA, _B, _BETA, _C),
        coefficients={"a": 16.3, "alpha": 0.126, "b": 26.7, "beta": 0.127, "c": 0.47},
        terms=LAW.terms[1:],
        protocol=FitProtocol(objective="huber", delta=0.1, grid=_STARTS, source=_PROTOCOL),
        errata=("The irreducible loss c was taken over from the fit of the MoE models.",),
    )
}
