"""The efficiency leverage that the paper publishes, and how figures draw it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moelaws.figures import style
from moelaws.studies.leverage.laws import joint

LINE: dict[str, Any] = {
    "color": style.GREY,
    "linestyle": style.DASHES,
    "linewidth": 0.9,
    "zorder": 1,
}
BUDGETS = (1e18, 3e20)  # FLOP: the ends of the paper's isoFLOP curves


def leverage(A: ArrayLike, G: ArrayLike, C: ArrayLike) -> NDArray[np.float64]:
    """Returns EL by Eq 4 with Table 6 at A = E_a / E, granularity G and compute C (FLOP)."""
    return joint.LAW.predict(joint.LAW.published or {}, {"A": A, "G": G, "C": C})


def nearest_budget(C: float) -> float:
    """Returns the budget nearest to ``C`` (FLOP) at which the paper measured."""
    return float(np.clip(C, *BUDGETS))
