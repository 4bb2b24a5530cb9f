"""Cost of a sectional mixture of experts over the number of experts (sectional paper).

A pre-expert block of attention sees all E L tokens of width d0; then each of E experts sees L/E
tokens of width d0/E; alpha E^2 is the overhead of E experts. Costs are in the paper's operations,
multiply-adds: 3 L d0^2 for the projections of L tokens, L^2 d0 for each attention product.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from moelaws.laws.base import Array, Columns, Formula
from moelaws.laws.declared import law_beside
from moelaws.laws.roots import bisect

# Every optimum lies at or below it: no cost falls with E faster than E^-2 or rises slower than E.
_LARGEST_OPTIMUM = 2 ** (1 / 3)
PRINTED, CORRECTED = "as printed", "corrected"  # the two forms of the model

Number = Array | float


def terms(
    E: Number, L: Number, d0: Number, alpha: Number, printed: bool = False
) -> dict[str, Number]:
    """Returns the terms of S, in operations; ``printed`` keeps the misprint E4.4.

    Args:
        E: experts.
        L, d0: tokens of an expert, width of an embedding.
        alpha: overhead, operations; half of what each pair of experts costs (Eq 19).
        printed: whether attention before the experts is that of Eq 11, 14, 17, 20 and 22.
    """
    return {
        "projections": 3 * L * d0**2 * (E + E**-2),  # Eq 6
        "attention_before": 2 * E * L**2 * d0 if printed else 2 * (L * E) ** 2 * d0,
        "attention_experts": 2 * L**2 * d0 / E**2,  # Eq 13
        "overhead": alpha * E**2,
    }


def cost(E: Number, L: Number, d0: Number, alpha: Number, printed: bool = False) -> Array:
    """Returns S(E), the sum of its ``terms``. Source: Eq 20, 22."""
    return np.asarray(sum(terms(E, L, d0, alpha, printed).values()))


def _root(slope: Callable[[Array], Array], like: Array) -> Array:
    return bisect(slope, np.zeros(like.shape), np.full(like.shape, _LARGEST_OPTIMUM))


def _results(c: Columns, printed: bool, slope: Callable[[Array], Array]) -> dict[str, Number]:
    """Returns what both forms have: S, its terms, and the E of least S, where ``slope`` is zero."""
    one, two = (cost(**{**c, "E": E}, printed=printed) for E in (1, 2))
    step = two - one
    return {
        "S": cost(**c, printed=printed),
        **terms(**c, printed=printed),
        "E_opt": _root(slope, c["L"]),
        "E_whole": np.where(step > 0, 1.0, 2.0),  # S is convex and E_opt below 2
        "S_step": step,
    }


def _corrected(c: Columns) -> dict[str, Number]:
    """Returns the results of the corrected form.

    E_opt is the root of (4 L^2 d0 + 2 alpha) E^4 + 3 L d0^2 E^3 = 6 L d0^2 + 4 L^2 d0. It is above
    1 where alpha < 1.5 L d0^2.
    """
    E, L, d0 = c["E"], c["L"], c["d0"]
    a, cube = c["alpha"] / (L * d0), E**3
    return {
        **_results(c, False, lambda E: (4 * L + 2 * a) * E**4 + 3 * d0 * E**3 - (6 * d0 + 4 * L)),
        "projection_factor": cube / (cube + 1),  # E4.5
        "attention_factor": cube / (E**4 + 1),  # E4.6
        # Below 1 at every E >= 1 (E4.8).
        "total_factor": cube * (2 * L + 3 * d0) / (2 * L * E**4 + 3 * d0 * cube + 2 * L + 3 * d0),
    }


def _printed(c: Columns) -> dict[str, Number]:
    """Returns the results of the printed form.

    E_opt is the root of 2 alpha E^4 + q (E^3 - 2) = 0 with q = 3 L d0^2 + 2 L^2 d0. It is 2^(1/3)
    at alpha = 0. The root of Eq 21 minimises neither cost (E4.7).
    """
    E, L, d0 = c["E"], c["L"], c["d0"]
    a, cube = c["alpha"] / (L * d0), E**3
    return {
        **_results(c, True, lambda E: 2 * a * E**4 + (3 * d0 + 2 * L) * (E**3 - 2)),
        "E_opt_eq21": _root(
            lambda E: 2 * a * E**5 + (3 * d0 + 2 * L) * E**4 - 4 * L * E - 6 * d0, L
        ),
        "projection_factor": E**5 / (3 * (cube + 1)),  # Eq 15
        "attention_factor": cube / (2 + 3 * cube * L),  # Eq 16
        "attention_factor_eq14": cube / (cube + 1) / 2,  # by Eq 2 and 14 as printed
    }


LAW, VARIANTS = law_beside(__file__, {"": _corrected, "printed": _printed})


def evaluate(form: str, **columns: Any) -> dict[str, Array]:
    """Returns every result of a ``form`` of the model at ``columns``, which broadcast."""
    law: Formula = VARIANTS["printed"] if form == PRINTED else LAW
    return law.evaluate({}, columns)
