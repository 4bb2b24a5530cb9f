"""Loss from base size and experts with an irreducible loss: a form of ours, chosen to extrapolate.

Eq 1 of Clark et al. has no floor: its loss goes to zero as models grow. Here the reducible loss is
a power of the base size times a power of the saturating number of experts, without interaction. The
variant ``by_router`` has an exponent of the experts for each of the three routers of the paper.
"""

from dataclasses import replace

import numpy as np

from moelaws.laws.base import Array, Columns, Domain, Variable
from moelaws.laws.clark.routing import ln_saturated
from moelaws.laws.declared import law_beside

_INDICATOR = Domain("0 or 1", lambda x: (x == 0) | (x == 1))
_ROUTERS = tuple(
    Variable(name, "1", f"1 for a {router} router, else 0; S-Base if all are 0", _INDICATOR, 0.0)
    for name, router in (("rl_r", "RL-R"), ("hash", "Hash"))
)


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    """Returns ln L (B, n) and its derivatives (B, P, n)."""
    ln_a, alpha, *_, ln_start, ln_max, ln_e = theta_BP.T[:, :, None]  # between them the deltas
    ln_N = np.log(columns["N_active"])[None]
    of_routers = [columns[v.name] for v in _ROUTERS if v.name in columns]
    factor_Kn = np.stack([np.ones_like(columns["E"]), *of_routers])  # of each delta
    delta = theta_BP[:, 2:-3] @ factor_Kn
    y, by_start, by_max = ln_saturated(columns["E"] - 1, ln_start, ln_max)
    y, by_start = y - ln_start, by_start - 1  # of ln(Eh / E_start)
    ln_reducible = ln_a - alpha * ln_N - delta * y
    ln_L = np.logaddexp(ln_reducible, ln_e)
    weight = np.exp(ln_reducible - ln_L)  # of the reducible loss in L
    by_saturation = -weight * delta * by_start, -weight * delta * by_max
    by_deltas = (-weight * y * factor for factor in factor_Kn)
    rows = weight, -weight * ln_N, *by_deltas, *by_saturation, 1 - weight
    return ln_L, np.stack(rows, axis=1)


LAW, VARIANTS = law_beside(__file__, function=_value_and_jacobian)
VARIANTS["by_router"] = replace(VARIANTS["by_router"], variables=(*LAW.variables, *_ROUTERS))
