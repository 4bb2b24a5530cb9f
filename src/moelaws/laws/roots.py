"""Where a function of one variable crosses zero, for whole arrays at once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array


@np.errstate(invalid="ignore")  # an end that is NaN has no root
def rising_root(function: Callable[[Array], Array], low: ArrayLike, high: ArrayLike) -> Array:
    """Returns where ``function`` turns from negative to positive between ``low`` and ``high``.

    ``low`` and ``high`` broadcast to the shape of the result, which ``function`` takes and returns.
    NaN where the function is not negative at ``low`` and positive at ``high``.
    """
    low, high = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
    crosses = (function(low) < 0) & (function(high) > 0)
    return np.where(crosses, bisect(function, low, high), np.nan)


def bisect(function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Returns ``rising_root`` without the check: an end, where there is no such crossing."""
    for _ in range(100):
        middle = 0.5 * (low + high)
        below = function(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)
