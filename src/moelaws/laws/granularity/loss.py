"""Loss from size, data and granularity of the experts (Krajewski et al. 2024, Eq 9)."""

from collections.abc import Mapping

from moelaws.laws.base import FitProtocol, Variable
from moelaws.laws.forms import PowerLawSum, power_law_sum
from moelaws.laws.terms import Term, irreducible_loss, over, term
from moelaws.laws.vocabulary import variable

_N = variable("N", "total parameters without embeddings")
_D = variable("D")
# Its unit differs from that of the leverage paper's G, so that it is never derived like that one.
_G = Variable("G", "d_ff/d_expert", "granularity d_ff / d_expert = 4 d_model / d_expert")

_PROTOCOL = FitProtocol(
    "huber",
    "Krajewski et al. 2024, sec 5.3: Huber at delta 0.1, BFGS, weight decay 5e-4; it states "
    "neither starts nor scale: the starts and residuals of ln L are ours, and no weight decay",
    delta=0.1,
)


def _dense(a: float, alpha: float, b: float, beta: float) -> tuple[Term, Term, Term]:
    """Returns the terms that both forms have, with their published values."""
    logs, exponents = (1.0, 3.0, 5.0), (0.05, 0.15, 0.4)
    size = over(_N, "alpha", alpha, "exponent of N", starts=exponents)
    data = over(_D, "beta", beta, "exponent of D", starts=exponents)
    return (
        term("a", a, "the size term", size, starts=logs),
        term("b", b, "the data term", data, starts=logs),
        irreducible_loss("c", 0.47, starts=(-1.0, 0.0, 1.0)),
    )


_SIZE, _DATA, _FLOOR = _dense(a=18.1, alpha=0.115, b=30.8, beta=0.147)
_GRANULARITY = over(_G, "gamma", 0.58, "exponent of G", starts=(0.25, 0.75, 1.25))

LAW = power_law_sum(
    id="granularity.loss",
    title="Loss from size, data and granularity of the experts",
    source="Krajewski et al. 2024, Eq 9; values: Table 1, MoE",
    equation="L = c + (g/G^gamma + a)/N^alpha + b/D^beta",
    latex=(
        r"L = c + \left(\frac{g}{G^{\gamma}} + a\right) \frac{1}{N^{\alpha}} + \frac{b}{D^{\beta}}"
    ),
    terms=(
        term("g", 2.1, "granularity", _GRANULARITY, *_SIZE.powers, starts=(-1.0, 1.0, 3.0)),
        _SIZE,
        _DATA,
        _FLOOR,
    ),
    order=("g", "gamma", "a", "alpha", "b", "beta", "c"),
    variables=(_N, _D, _G),
    protocol=_PROTOCOL,
    errata=(
        "G here is d_ff/d_expert with d_ff = 4 d_model; the leverage paper's granularity, which "
        "this package's tables hold, is 2 d_model/d_expert: half of it. Multiply a table's G by 2.",
        "Fitted at an expansion rate of 64 (parameters of an MoE layer over those of a dense "
        "one): N is the total, 43 times the active parameters there.",
    ),
)

VARIANTS: Mapping[str, PowerLawSum] = {
    "dense": power_law_sum(
        id=LAW.id,
        variant="dense",
        title="Loss of a dense model from size and data, of the same study",
        source="Krajewski et al. 2024, Eq 1; values: Table 1, Dense",
        equation="L = c + a/N^alpha + b/D^beta",
        latex=r"L = c + \frac{a}{N^{\alpha}} + \frac{b}{D^{\beta}}",
        terms=_dense(a=16.3, alpha=0.126, b=26.7, beta=0.127),
        protocol=_PROTOCOL,
        errata=("The irreducible loss c was taken over from the fit of the MoE models.",),
    )
}
