"""Loss from size, data and number of experts (Wang et al. 2024; allocation paper, Eq 5)."""

from moelaws.laws.base import FitProtocol
from moelaws.laws.forms import power_law_sum
from moelaws.laws.terms import irreducible_loss, over, term
from moelaws.laws.vocabulary import variable

_N = variable("N", "parameters: total or active, one of them throughout a fit")
_D = variable("D")
_E = variable("E", "experts a layer; 1 for a dense model")
_EXPERTS = over(_E, "gamma", None, "exponent of the number of experts", bounds=(-4.0, 4.0))

# The allocation paper draws the fit and prints no values.
LAW = power_law_sum(
    id="wang.loss",
    title="Loss from size, data and number of experts",
    source="Wang et al. 2024, as in allocation, Eq 5",
    terms=(
        term("a", None, "the size term", over(_N, "alpha", None, "exponent of the size"), _EXPERTS),
        term("b", None, "the data term", over(_D, "beta", None, "exponent of the data")),
        irreducible_loss("tau", None),
    ),
    order=("a", "b", "tau", "alpha", "beta", "gamma"),
    variables=(_N, _D, _E),
    protocol=FitProtocol(
        "huber",
        "chosen here, in the style of allocation's Table 3: the paper states no protocol for its "
        "baselines; the held-out sparsity is that of its own law",
        "S >= 0.976",
    ),
    errata=(
        "E0.5 (allocation, App D.3): printed: both panels of Fig 5 are said to show this law; "
        "corrected: panel (a) does, panel (b) shows the law of Abnar et al. (sparsity.loss), as "
        "the text says.",
        "The allocation paper quotes the law as limited to E < 100 and blind to the fraction of "
        "experts that are active; two tables that differ in k alone get the same prediction.",
    ),
)
