"""Loss from base size and experts with an irreducible loss: a form of ours, chosen to extrapolate.

Eq 1 of Clark et al. has no floor: its loss goes to zero as models grow. Here the reducible loss is
a power of the base size times a power of the saturating number of experts, without interaction.
"""

from dataclasses import replace

import numpy as np

from moelaws.laws.base import Array, Columns, FitProtocol
from moelaws.laws.clark.routing import E_MAX, E_START, log_effective_experts
from moelaws.laws.forms import GeneralLaw
from moelaws.laws.terms import irreducible_loss, over, term
from moelaws.laws.vocabulary import LOSS, variable

_N = variable("N_active", "parameters of the dense base model (E = 1)")
_E = variable("E", "experts of a routed layer, one active")
_SIZE = term(
    "a",
    None,
    "the reducible loss",
    over(_N, "alpha", None, "exponent of N_active", starts=(0.05, 0.15, 0.3)),
    starts=(1.0, 3.0, 5.0),
).parameters
_EXPERTS = over(_E, "delta", None, "exponent of Eh", starts=(0.05, 0.2)).exponent
_FLOOR = irreducible_loss("e", None, starts=(-1.0, 0.0, 0.5)).coefficient


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    """Returns ln L (B, n) and its derivatives (B, P, n)."""
    ln_a, alpha, delta, ln_start, ln_max, ln_e = theta_BP.T[:, :, None]
    ln_N = np.log(columns["N_active"])[None]
    y, by_start, by_max = log_effective_experts(ln_start, ln_max, columns["E"][None])  # y = ln Eh
    ln_reducible = ln_a - alpha * ln_N - delta * y
    ln_L = np.logaddexp(ln_reducible, ln_e)
    weight = np.exp(ln_reducible - ln_L)  # of the reducible loss in L
    by_saturation = -weight * delta * by_start, -weight * delta * by_max
    rows = weight, -weight * ln_N, -weight * y, *by_saturation, 1 - weight
    return ln_L, np.stack([np.broadcast_to(row, ln_L.shape) for row in rows], axis=1)


LAW = GeneralLaw(
    id="routing.loss",
    title="Loss of a routed model from base size and experts, with an irreducible loss",
    source="ours; no paper states it",
    equation=(
        "L = a/(N_active^alpha * Eh^delta) + e, "
        "1/Eh = 1/(E - 1 + 1/(1/E_start - 1/E_max)) + 1/E_max"
    ),
    latex=(
        r"L = \frac{a}{N_{act}^{\alpha} \hat{E}^{\delta}} + e,\quad \frac{1}{\hat{E}} ="
        r" \frac{1}{E - 1 + \left(1/E_{start} - 1/E_{max}\right)^{-1}} + \frac{1}{E_{max}}"
    ),
    variables=(_N, _E),
    response=replace(LOSS, description="held-out loss at one number of training tokens"),
    parameters=(
        *_SIZE,
        _EXPERTS,
        replace(E_START, starts=(0.0, 1.4)),
        replace(E_MAX, starts=(4.6, 6.9)),
        _FLOOR,
    ),
    function=_value_and_jacobian,
    only_with={"E": ("delta", "E_start", "E_max")},
    protocol=FitProtocol(objective="huber", source="ours; 216 starts"),
    errata=(
        "Eh is E_start at one expert, so that a dense model has a*E_start^-delta for a; a and "
        "E_start are known together only.",
        "All fitted models saw one number of tokens: what training longer would save is in e.",
    ),
)
