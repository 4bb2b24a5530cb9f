"""A parabola through the runs of one group, such as a budget: where is its lowest point?"""

from __future__ import annotations

import numpy as np

from moelaws.analysis.minimum import Array
from moelaws.fitting.quantiles import least_squares

DRAWS = 1000  # of a parabola's coefficients: the ends of a 90 % interval to about 1 % of its mass
TOO_FEW = "fewer than three sizes"


def parabola(
    u: Array, L: Array, u_3: Array, draws: int = DRAWS, seed: int = 0
) -> tuple[Array, Array]:
    """Fits a least-squares parabola of ``L`` (n,) on ``u`` (n,), read at ``u_3`` (3,).

    Returns its values (3,) and ``draws`` rows (draws, 3) from their sampling distribution under
    independent normal errors: Student t with n - 3 degrees of freedom. With n = 3 the fit is exact,
    nothing is known of the error, and the draws are empty.
    """
    centre, half = u_3[1], (u_3[2] - u_3[0]) / 2
    fitted = least_squares(np.vander((u - centre) / half, 3), L, draws=draws, seed=seed)
    at_3 = np.vander((u_3 - centre) / half, 3)
    return at_3 @ fitted.coefficients, fitted.draws @ at_3.T
