"""Split of compute between attention and experts that minimises Eq 3 (allocation paper, App A).

The loss alpha_A C_A^-a + alpha_E C_E^-e, with a = gamma_A mu_A and e = gamma_E mu_E, of
C_A = C / (1+r) and C_E = C r / (1+r), has its optimal r where

    r^(e+1) (1+r)^(a-e) = (alpha_E e / (alpha_A a)) C^(a-e),

which has no closed form. The logarithm of the left side rises with ln r at a rate of at least
1 + min(a, e), so that the root is unique and bracketed. The closed form that the paper prints is
the variant ``printed``.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from moelaws.laws.base import Array, Columns
from moelaws.laws.declared import law_beside
from moelaws.laws.roots import bisect


def _exact(columns: Columns) -> Mapping[str, Any]:
    """Solves App A.2's condition dL/dC_A = dL/dC_E exactly."""
    a, e = columns["a"], columns["e"]
    target = _ln_pull(columns) + (a - e) * np.log(columns["C"])

    def excess(ln_r: Array) -> Array:
        return (1 + e) * ln_r + (a - e) * np.logaddexp(0.0, ln_r) - target

    width = np.abs(excess(np.zeros(a.shape))) / (1 + np.minimum(a, e))
    r = np.exp(bisect(excess, -width, width))
    return {"r": r, "slope": (a - e) * (1 + r) / ((1 + e) + (1 + a) * r)}


def _printed(columns: Columns) -> Mapping[str, Any]:
    """Returns the paper's Eq 4 as printed, which does not minimise Eq 3 (erratum E0.1)."""
    a, e = columns["a"], columns["e"]
    slope, gain = (e - a) / (a + e + 1), _ln_pull(columns) / (a + e + 1)
    return {"r": np.exp(gain) * columns["C"] ** slope, "slope": slope}


def _ln_pull(columns: Columns) -> Array:
    alpha_A, alpha_E, a, e = (columns[name] for name in ("alpha_A", "alpha_E", "a", "e"))
    return np.log(alpha_E * e) - np.log(alpha_A * a)


LAW, VARIANTS = law_beside(__file__, {"": _exact, "printed": _printed})
