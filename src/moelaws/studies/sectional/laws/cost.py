"""Cost of a sectional mixture of experts over the number of experts (sectional paper).

A pre-expert block of attention sees all E L tokens of width d0; then each of E experts sees L/E
tokens of width d0/E; alpha E^2 is the overhead of E experts. Costs are in the paper's operations,
multiply-adds: 3 L d0^2 for the projections of L tokens, L^2 d0 for each attention product.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from moelaws.laws.base import NOT_NEGATIVE, POSITIVE, Array, Columns, Formula, Variable
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


_OPERATIONS = "operations"
_OUTPUTS = (
    Variable("S", _OPERATIONS, "cost of the whole"),
    Variable("projections", _OPERATIONS, "query, key and value projections"),
    Variable("attention_before", _OPERATIONS, "attention of the pre-expert block"),
    Variable("attention_experts", _OPERATIONS, "attention of the experts"),
    Variable("overhead", _OPERATIONS, "communication, synchronisation and routing"),
    Variable("E_opt", "experts", "real E of the least S"),
    Variable("E_whole", "experts", "whole E of the least S"),
    Variable("S_step", _OPERATIONS, "S(2) - S(1), above 0: a second expert costs more"),
)

LAW = Formula(
    id="sectional.cost",
    title="Cost of a sectional mixture of experts over the number of experts",
    source="sectional, Eq 20 corrected (E4.4)",
    equation=(
        "S = 3*L*d0^2*(E^3 + 1)/E^2 + 2*E^2*L^2*d0 + 2*L^2*d0/E^2 + alpha*E^2; "
        "projection_factor = E^3/(E^3 + 1); attention_factor = E^3/(E^4 + 1); "
        "total_factor = E^3*(2*L + 3*d0)/(2*L*E^4 + 3*d0*E^3 + 2*L + 3*d0)"
    ),
    latex=r"S = \frac{3Ld_0^2(E^3+1)}{E^2} + 2E^2L^2d_0 + \frac{2L^2d_0}{E^2} + \alpha E^2",
    variables=(
        Variable("L", "tokens", "tokens an expert"),
        Variable("d0", "1", "width of an embedding"),
        Variable(
            "alpha", _OPERATIONS, "overhead: half the cost of a pair of experts", NOT_NEGATIVE
        ),
        Variable("E", "experts", "experts", POSITIVE, math.nan),
    ),
    outputs=(
        *_OUTPUTS,
        Variable("projection_factor", "1", "projections of E traditional experts over these"),
        Variable("attention_factor", "1", "attention of E traditional experts over this"),
        Variable("total_factor", "1", "both, of E traditional experts over these, no overhead"),
    ),
    function=_corrected,
    errata=(
        "E4.1 (Eq 2): printed: attention of an expert costs L^2 d0; corrected: 2 L^2 d0, for there "
        "are two products.",
        "E4.2 (Eq 7-9): printed: projections cost 3 d0^2/H at H heads; corrected: 3 d0^2, for "
        "heads cancel (each projects d0 to d0/H); the paper's own text says so.",
        "E4.3 (Eq 10): printed: E^3 H_exp in the denominator; the paper's own Eq 9 has E^2 H_exp; "
        "corrected (E4.2): 3 E L d0^2 + 3 L d0^2/E^2.",
        "E4.4 (Eq 11, 14, 17, 20, 22): printed: 2 (L E)^2 d0 = 2 E L^2 d0; corrected: "
        "2 E^2 L^2 d0. The variant printed keeps it.",
        "E4.5 (Eq 15): printed: projections fall by E^5/(3(E^3+1)), 21.29 at E = 8; corrected: "
        "E^3/(E^3+1) = .99805, which is below 1 at every E.",
        "E4.6 (Eq 16): printed: attention falls by E^3/(2 + 3 E^3 L), 8.1e-5 at E = 8, L = 4096; "
        "corrected: E^3/(E^4+1) = .12497. Eq 2 and 14 as printed give E^3/(2(E^3+1)) = .49903.",
        "E4.7 (Eq 21): printed: the derivative of the projections has 1 - 2/E^4; corrected: "
        "1 - 2/E^3. At L = d0 = 4096, alpha = 1e8: root 1.21362 as printed; the least S printed is "
        "at 1.25961, the least S corrected at 1.10452.",
        "E4.8 (sec 3.3): printed: a super-linear gain with E; corrected: the total factor is below "
        "1 at every E >= 1, so that E sections always cost more than E traditional experts.",
        "E4.9 (sec 5.1): printed: LLaMA-7B has 4096-dimensional feed-forward networks; corrected: "
        "4096 is its d_model.",
        "dS/dE = 0 is a quartic in E (Eq 21 as printed a quintic) with one positive root, at most "
        "2^(1/3) = 1.25992 for all L, d0 and alpha. The best whole number of experts is always 1: "
        "S(2) - S(1) = 9 L^2 d0/2 + 3 L d0^2/4 + 3 alpha (L^2 d0/2 in place of 9 L^2 d0/2 as "
        "printed). That larger d0 or L make room for more experts is false in this model.",
        "Eq 19: alpha E^2 stands for E C_e + C_pair E (E-1)/2 with alpha = C_pair/2; the part "
        "linear in E is left out.",
    ),
)

VARIANTS = {
    "printed": dataclasses.replace(
        LAW,
        variant="printed",
        title="Cost of a sectional mixture of experts, as printed",
        source="sectional, Eq 15, 16, 20-22",
        equation=(
            "S = 3*L*d0^2*(E^3 + 1)/E^2 + 2*E*L^2*d0 + 2*L^2*d0/E^2 + alpha*E^2; "
            "projection_factor = E^5/(3*(E^3 + 1)); attention_factor = E^3/(2 + 3*E^3*L); "
            "attention_factor_eq14 = E^3/(2*(E^3 + 1))"
        ),
        latex=r"S = \frac{3Ld_0^2(E^3+1)}{E^2} + 2EL^2d_0 + \frac{2L^2d_0}{E^2} + \alpha E^2",
        outputs=(
            *_OUTPUTS,
            Variable("E_opt_eq21", "experts", "root of Eq 21 as printed, the least of no S"),
            Variable("projection_factor", "1", "Eq 15 as printed"),
            Variable("attention_factor", "1", "Eq 16 as printed"),
            Variable("attention_factor_eq14", "1", "what Eq 2 and 14 as printed give for Eq 16"),
        ),
        function=_printed,
    )
}


def evaluate(form: str, **columns: Any) -> dict[str, Array]:
    """Returns every result of a ``form`` of the model at ``columns``, which broadcast."""
    law = VARIANTS["printed"] if form == PRINTED else LAW
    return law.evaluate({}, columns)
