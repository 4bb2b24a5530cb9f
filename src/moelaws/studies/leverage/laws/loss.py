"""Loss of a mixture of experts over compute, by its efficiency leverage (leverage paper, Eq 4).

The paper publishes the leverage and no loss. Where a dense model's loss over compute is assumed,
the leverage gives the mixture's: at C it has the loss that the dense model has at EL*C. This law
serves to simulate losses, and to fit the leverage to losses in one stage.
"""

from dataclasses import replace

import numpy as np

from moelaws.laws.base import Array, Columns, FitProtocol, with_published
from moelaws.laws.forms import GeneralLaw
from moelaws.laws.vocabulary import LOSS, variable
from moelaws.studies.leverage.laws import joint
from moelaws.studies.leverage.laws.curve import LAW as CURVE

# The assumed dense curve is near 2.6 nats/token at 1e20 FLOP, as in the paper's figures.
ASSUMED_DENSE = {"alpha": 60.0, "beta": -0.085, "b": 1.6}


def _ln_loss(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    ln_alpha, exponent, ln_b = (theta_BP[:, i, None] for i in range(3))
    ln_EL, by_EL = joint.LAW.function(theta_BP[:, 3:], {**columns, "A": 1 - columns["S"]})
    # ln of the compute of the dense model that has the same loss.
    ln_C = np.log(columns["C"]) + ln_EL
    ln_term = ln_alpha + exponent * ln_C
    ln_L = np.logaddexp(ln_term, ln_b)
    weight = np.exp(ln_term - ln_L)  # of the compute term in L
    own = np.stack([weight, weight * ln_C, 1 - weight], axis=1)
    return ln_L, np.concatenate([own, (weight * exponent)[:, None] * by_EL], axis=1)


LAW = GeneralLaw(
    id="leverage.loss",
    title="Loss by efficiency leverage, beside an assumed dense curve",
    source="leverage, Eq 4 and Table 6 for EL; the dense curve's coefficients are assumed",
    equation=(
        "L = alpha*(EL*C)^beta + b,"
        " where EL = Ahat^(a + d*log10(C) + gamma*log2(G)^2 + beta_G*log2(G)),"
        " Ahat = 1/(1/(1 - S + 1/(1/A_start - 1/A_max)) + 1/A_max)"
    ),
    latex=(
        r"L = \alpha\,(EL \cdot C)^{\beta} + b,\quad"
        r" EL = \hat{A}^{a + d \log_{10} C + \gamma (\log_2 G)^2 + \beta_G \log_2 G}"
    ),
    variables=(
        variable("C", "training compute, without logits"),
        variable("S", "sparsity (E - k) / E; A = 1 - S is Table 6's k / E"),
        variable("G"),
    ),
    response=LOSS,
    parameters=(
        *with_published(CURVE.parameters, ASSUMED_DENSE),
        # The curve has a beta of its own.
        *(replace(p, name="beta_G") if p.name == "beta" else p for p in joint.LAW.parameters),
    ),
    function=_ln_loss,
    only_with={"G": ("gamma", "beta_G")},
    protocol=FitProtocol(
        objective="huber",
        grid={
            "alpha": (2.0, 4.0, 8.0),
            "beta": (-0.05, -0.1, -0.2),
            "b": (-0.5, 0.5),
            "a": (0.0, 1.2),
            "d": (-0.08, -0.03),
            "gamma": (0.02,),
            "beta_G": (-0.1,),
            "A_start": (-5.0, -3.0),
            "A_max": (1.0, 30.0),
        },
        source="not a fit of the paper; objective as in the sparsity paper, own starts",
    ),
    errata=(
        "R: the paper fits loss curves and prints none. alpha = 60, beta = -.085 and b = 1.6 are "
        "assumed here, not published; the other coefficients are Table 6's.",
        "R: a model whose experts are all active (S = 0) is the dense one but for Ahat(1) = "
        "1 + A_start, which is Eq 4's own (E1.4).",
        "All of the leverage's errata hold here: `moelaws laws leverage.joint`.",
    ),
)
