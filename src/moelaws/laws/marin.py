"""Marin's open MoE recipe: optima, losses and rate (marin-community/marin, experiments/grug/moe).

The models have 64 experts, of which 4 are active, and a shared one.
"""

from collections.abc import Mapping

from moelaws.laws.base import FitProtocol, FittableLaw, Variable
from moelaws.laws.forms import power_law, power_law_sum
from moelaws.laws.leverage.allocation import optimum
from moelaws.laws.leverage.hyperparameters import PEAK
from moelaws.laws.terms import irreducible_loss, over, term, times
from moelaws.laws.vocabulary import LOSS, variable

_C = variable("C", "training compute: 3 forward passes without the output head")
_B = Variable("B_sequences", "sequences", "sequences of 4096 tokens an optimizer step")
_BPB = Variable("bpb", "bits/byte", "bits a byte of English C4 in Paloma")
_SWEEP, _LADDER = "marin, isoFLOP sweep v16", "marin, compute ladder"

LAW = optimum(
    (
        (variable("N_active", "best number of active parameters"), 1.09e-2, 0.535),
        (variable("D", "best number of training tokens"), 16.0, 0.464),
    ),
    _C,
    id="marin",
    title="Best active size and data over compute, 64 experts with 4 active",
    source=_SWEEP,
    errata=(
        "These are fitted to the best runs of six budgets from 1e18 to 3e20 FLOP.",
        "R: N is taken to count active parameters, for 6 N_active D is then 1.046 C^.999: 1.00 C "
        "at 1e20. The exponents sum to .999.",
    ),
)


def _loss(
    variant: str, source: str, a: float, alpha: float, e: float, response: Variable = LOSS
) -> FittableLaw:
    """Returns Paloma's loss, the mean over its domains, or another response as a/C^alpha + e."""
    unit, compute = response.unit, over(_C, "alpha", alpha, starts=(0.02, 0.05, 0.1, 0.2))
    return power_law_sum(
        id="marin",
        variant=variant,
        title=f"Least {response.description} over compute ({variant})",
        source=source,
        terms=(
            term("a", a, "the compute term", compute, starts=(0.0, 2.5, 5.0), unit=unit),
            irreducible_loss("e", e, starts=(-1.0, 0.0, 0.5), unit=unit),
        ),
        response=response,
        protocol=FitProtocol("huber", "ours; marin sets e of Paloma's loss and fits a and alpha"),
        errata=(
            "The sweep sets e = 1.6, the ladder 1.2: their losses at a budget do not compare.",
        ),
    )


_RATE = power_law(
    term(
        "coefficient",
        1.63,
        "the rate",
        times(variable("D"), "alpha", -0.2813, "exponent of D"),
        times(variable("d_model"), "delta", -0.3678, "exponent of d_model"),
        times(_B, "beta", 0.5, "exponent of the batch", bounds=(-4.0, 4.0)),
        unit="",
    ),
    id="marin",
    variant="lr",
    title="Learning rate over tokens, width and batch",
    source=_SWEEP,
    response=PEAK,
    protocol=FitProtocol("squared", "marin: 186 runs, R2 = .995; the square root of B is set"),
    errata=(
        "R: printed without a unit of B; sequences of 4096 tokens, for the recipe's later code "
        "has sqrt(tokens a step) with 1/64 = 4096^-1/2 of the coefficient that it prints with B.",
        "This is Adam's rate, for embeddings and the like. Matrices train by AdamH at 13/3 of it; "
        "the recipe caps a rate at .05.",
    ),
)

VARIANTS: Mapping[str, FittableLaw] = {
    "loss": _loss("loss", _SWEEP, 95.18, 0.0941, 1.6),
    "bpb": _loss("bpb", _SWEEP, 25.97, 0.0915, 0.4814, _BPB),
    "ladder": _loss("ladder", _LADDER, 58.67, 0.0842, 1.2),
    "dense": _loss("dense", _LADDER, 66.70, 0.0844, 1.2),
    "lr": _RATE,
}
