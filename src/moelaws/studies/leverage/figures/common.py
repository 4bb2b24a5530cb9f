"""What the leverage paper's figures share: the published leverage, and its budgets."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moelaws.studies.leverage.laws import joint

PUBLISHED_BUDGETS = (1e18, 3e20)  # FLOP: the least and the largest of the paper's isoFLOP curves


def published_leverage(A: ArrayLike, G: ArrayLike, C: ArrayLike) -> NDArray[np.float64]:
    """Returns EL by Eq 4 with Table 6 at A = E_a / E, granularity G and compute C (FLOP)."""
    return np.asarray(joint.LAW.predict(joint.LAW.published, {"A": A, "G": G, "C": C}))
