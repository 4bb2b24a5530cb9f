"""Efficiency leverage over activation ratio, granularity and compute (leverage paper, Eq 4)."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array, Columns, FitProtocol, signed
from moelaws.laws.clark.routing import ln_saturated
from moelaws.laws.forms import GeneralLaw
from moelaws.laws.vocabulary import variable
from moelaws.studies.leverage.laws.activation import A_MAX, A_START, EL


def _ln_EL(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    a, d, gamma, beta, ln_start, ln_max = (theta_BP[:, i, None] for i in range(6))
    t, x = np.log10(columns["C"]), np.log2(columns["G"])
    ln_A, by_start, by_max = ln_saturated(columns["A"], ln_start, ln_max)
    e = a + d * t + gamma * x**2 + beta * x
    jacobian = np.stack([ln_A, t * ln_A, x**2 * ln_A, x * ln_A, e * by_start, e * by_max], axis=1)
    return e * ln_A, jacobian


LAW = GeneralLaw(
    id="leverage.joint",
    title="Efficiency leverage over activation ratio, granularity and compute",
    source="leverage, Eq 4 and Table 6",
    equation=(
        "EL = Ahat^(a + d*log10(C) + gamma*log2(G)^2 + beta*log2(G)),"
        " where Ahat = 1/(1/(A + 1/(1/A_start - 1/A_max)) + 1/A_max)"
    ),
    latex=(
        r"EL = \hat{A}^{a + d \log_{10} C + \gamma (\log_2 G)^2 + \beta \log_2 G},\quad"
        r" \frac{1}{\hat{A}} = \frac{1}{A + (1/A_{start} - 1/A_{max})^{-1}} + \frac{1}{A_{max}}"
    ),
    variables=(
        variable("A", "activation ratio; k / E, of routed experts alone, with Table 6"),
        variable("G"),
        variable("C", "training compute of the mixture of experts, without logits"),
    ),
    response=EL,
    parameters=(
        signed("a", 10.0, "exponent of Ahat at C = 1 FLOP and G = 1", 1.23, (-1.0, 0.0, 1.0, 2.0)),
        signed(
            "d",
            2.0,
            "change of the exponent for ten times the compute",
            -7.61e-2,
            (-0.1, -0.05, 0.0),
        ),
        signed("gamma", 2.0, "curvature of the exponent in log2 G", 1.67e-2, (0.0, 0.02)),
        signed("beta", 4.0, "slope of the exponent in log2 G, at G = 1", -1.17e-1, (-0.1, 0.0)),
        replace(A_START, published=1.63e-2, starts=(-7.0, -5.0, -3.0)),
        replace(A_MAX, published=5.28e16, starts=(1.0, 10.0, 38.0)),
    ),
    function=_ln_EL,
    protocol=FitProtocol(
        "huber",
        "leverage, sec 4.2.3 and App G: Huber and BFGS; delta and starts are ours",
        "EL >= 6",
    ),
    errata=(
        "R (Eq 4): printed without the logarithms' bases; log10 of C and log2 of G, with which "
        "Table 6 gives the text's leverage above 7 at A = 3.1 %, G = 12, C = 1e22 (7.245) and its "
        "best granularity near 12 (11.34). No other base of log C gives less than 4000.",
        "R (Table 6): goes with A = k / E of routed experts, the labels of Fig 4: at G = 12, "
        "C = 1e22 EL is 7.22 for 12 of 384 experts, and 6.98 for the formal "
        "(k + E_s) / (E + E_s) = 13/385, which is not above 7.",
        "E1.3 (sec 4.2.2): printed: d is a positive constant; corrected: it is negative "
        "(-.0761), for Ahat < 1.",
        "E1.4 (sec 4.2.1): printed: A = 1 gives EL = 1; corrected: Ahat(1) = 1.0163, so that EL "
        "is .98956 at G = 12, C = 1e22.",
        "E1.5 (sec 5): printed: MoE-mini has granularity 12; corrected: 2*2048/384 = 10.667 with "
        "12 active experts. EL at A = 3.1 %, C = 1e22 goes from 7.24490 to 7.24452.",
        "E1.6 (abstract, sec 5): printed: MoE-mini saves more than 7 times the compute; "
        "corrected: that is the ratio of active parameters, 7.19. The ratio of training FLOPs per "
        "token is 6.00, or 5.28 with logits; 1e12 tokens are 7.05e21 FLOP, not 1e22, where Eq 4 "
        "gives 6.97, or 6.74 at the formal A.",
        "E1.11 (text): printed: the larger model has 16B parameters; corrected: 17.5B.",
        "The printed errors do not agree: RMSE .2169 over 200 points and .5275 over 24 pool to "
        ".268; mean -.0273 and standard deviation .2803 of the residuals make .282.",
        "A_max of Table 6 is without effect: Ahat = A + A_start. Fits on such data cannot tell "
        "one large A_max from another.",
    ),
)


def optimal_granularity(params: Mapping[str, ArrayLike]) -> Array:
    """Returns the granularity of the largest leverage, 2^(-beta / (2 gamma)), at every A and C.

    This holds for Ahat < 1, which is all but A near 1. It is NaN where gamma <= 0, so that no
    granularity is best. Broadcasts over the parameters. Source: leverage, Eq 4.
    """
    gamma, beta = (np.asarray(params[name], float) for name in ("gamma", "beta"))
    convex = gamma > 0
    return np.where(convex, np.exp2(-beta / (2 * np.where(convex, gamma, 1.0))), np.nan)
