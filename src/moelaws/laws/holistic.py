"""Compute-optimal model scale and data of mixtures (Wan et al. 2026, 2603.21862)."""

from moelaws.laws.base import Variable
from moelaws.laws.leverage.allocation import optimum
from moelaws.laws.vocabulary import variable

LAW = optimum(
    (
        (Variable("M", "FLOP/token", "best training FLOPs per token"), 0.0437, 0.5437),
        (variable("D", "best number of training tokens"), 22.89, 0.4563),
    ),
    variable("C", "training compute M D"),
    id="holistic",
    title="Best model scale and data over compute, mixtures of N/N_active from 18 to 25",
    source="Wan et al. 2026 (arXiv 2603.21862), values as a survey quotes them",
    errata=(
        "R: quoted with C in 1e18 FLOP; C is taken in FLOP, D in tokens. At 1e20 FLOP that gives "
        "3.06e10 tokens, beside 3.37e10 by leverage.allocation and 3.05e10 by marin. With C in "
        "1e18 FLOP, and D then in 1e9 tokens, it would be 1.87e11, over 2,000 tokens an active "
        "parameter. M*D is 1.0003 C in either unit, which takes M to count both passes.",
    ),
)
