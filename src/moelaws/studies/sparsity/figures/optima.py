"""Tables of optimal sparsities over size (F4), and of the published optima of F3, F11 and F12.

F4 shows optima of the isoFLOP surfaces. Published are those of Eq 6 with the paper's coefficients,
where C = 6 N_a D with N_a = (1 - S) N. Eq 6 was fitted between 3e19 and 1e21 FLOPs on another
corpus and tokenizer, so its curves are not drawn beside runs of other budgets.
"""

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows
from moelaws.analysis.inputs import Inputs
from moelaws.studies.sparsity.laws import loss

PUBLISHED_BUDGETS = (3e19, 1e21)  # FLOPs, the paper's least and largest
COEFFICIENTS = dict(loss.LAW.published or {})
PUBLISHED_POINTS = 61


def published(inputs: Inputs) -> Rows:
    """Yields the sizes and losses of Eq 6's optima over S, at the paper's budgets among ours."""
    table = inputs.derived("optima")
    ends = -np.log1p(-table["S"].min()), -np.log1p(-table["S"].max())
    S = -np.expm1(-np.linspace(*ends, PUBLISHED_POINTS))
    yield pd.DataFrame(columns=["C", "S", "N_total", "N_active", "L_star"], dtype=float)
    for C in _published_budgets(table):
        best = loss.optimal_size(COEFFICIENTS, S, C)
        sizes = {"N_total": best.N, "N_active": best.N_active}
        yield pd.DataFrame({"C": C, "S": S, **sizes, "L_star": best.L})


def _published_budgets(rows: pd.DataFrame) -> list[float]:
    within = rows["C"].between(PUBLISHED_BUDGETS[0] * 0.99, PUBLISHED_BUDGETS[1] * 1.01)
    return sorted({float(C) for C in rows.loc[within, "C"]})


def inside(inputs: Inputs, size: str) -> pd.DataFrame:
    """Returns S* over N, and in ``S_inside`` those that are no bounds and have runs nearby."""
    table = inputs.derived("sparsity_optima", size=size)
    return table.assign(S_inside=table["S_star"].where(table["inside"]))


def published_sparsity(inputs: Inputs, size: str) -> Rows:
    """Yields S* of Eq 6 over N at the paper's budgets among ours, no larger than any of ours."""
    table = inputs.derived("sparsity_optima", size=size)
    N = np.geomspace(table["N"].min(), table["N"].max(), PUBLISHED_POINTS)
    yield pd.DataFrame(columns=["C", "N", "S"], dtype=float)
    for C in _published_budgets(table):
        S = np.minimum(loss.optimal_sparsity(COEFFICIENTS, N, C), table["S_star"].max())
        yield pd.DataFrame({"C": C, "N": N, "S": S})
