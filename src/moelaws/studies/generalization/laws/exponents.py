"""Scaling exponents from smoothness and intrinsic dimension (generalization paper, sec 4).

For a target of smoothness ``s`` on a manifold of dimension ``d``, the bound N^(-2s/d) + N/n on the
squared risk, over N active parameters and n samples, fixes every exponent.
"""

import math
from dataclasses import replace

import numpy as np

from moelaws.laws.base import BELOW_1, POSITIVE, Array, Columns, Formula, Variable

_S = Variable("s", "1", "smoothness of the target function")
_D = Variable("d", "1", "intrinsic dimension of the data")
_ALPHA_N = Variable("alpha_N", "1", "exponent of the risk in active parameters, or in experts")
_ALPHA_D = Variable("alpha_D", "1", "exponent of the risk in samples", BELOW_1)
_ALPHA_C = Variable("alpha_C", "1", "exponent of the risk in compute")


def _predicted_alpha_D(a: Array) -> Array:
    """Returns alpha_N / (1 + alpha_N) = 2s/(2s+d), the data exponent that fits it. Eq 4, 24."""
    return np.asarray(a / (1 + a))


def _predicted_alpha_C(a: Array) -> Array:
    """Returns alpha_N / (2 + alpha_N) = s/(s+d), the compute exponent at C ~ N n. Eq 19, 20."""
    return np.asarray(a / (2 + a))


def _from_smoothness(columns: Columns) -> dict[str, Array]:
    s, d, C = columns["s"], columns["d"], columns["C"]
    a = 2 * s / d  # Eq 6
    # The least A N^(-2s/d) + B N/n at N n = C (Eq 18, 54).
    N = (s / d * (columns["A"] / columns["B"]) * C) ** (d / (2 * (s + d)))
    return {
        "alpha_N": a,
        "alpha_D": _predicted_alpha_D(a),
        "alpha_C": _predicted_alpha_C(a),
        "N_exponent": d / (2 * (s + d)),
        "n_exponent": (2 * s + d) / (2 * (s + d)),
        "alpha_D_slow": a / (1 + 2 * a),  # 2s/(4s+d): an estimation error sqrt(N/n) (E3.1)
        "N_star": N,
        "n_star": C / N,
    }


def _from_N(columns: Columns) -> dict[str, Array]:
    a = columns["alpha_N"]
    s = columns["d"] * a / 2  # App B, Eq 6 inverted
    return {"s": s, "alpha_D": _predicted_alpha_D(a), "alpha_C": _predicted_alpha_C(a)}


def _from_D(columns: Columns) -> dict[str, Array]:
    """Inverts Eq 4 (App B); the result is NaN unless alpha_D < 1, as for every smoothness."""
    b, d = columns["alpha_D"], columns["d"]
    s = np.where(b < 1, d * b / (2 * np.where(b < 1, 1 - b, 1)), np.nan)
    a = 2 * s / d
    return {"s": s, "alpha_N": a, "alpha_C": _predicted_alpha_C(a)}


def _consistency(columns: Columns) -> dict[str, Array]:
    a, b = columns["alpha_N"], columns["alpha_D"]
    D, C = _predicted_alpha_D(a), _predicted_alpha_C(a)
    separable = a * b / (a + b)  # of a/N^alpha_N + b/n^alpha_D, Eq 23
    return {
        "alpha_C": separable,
        "alpha_D_predicted": D,
        "alpha_C_predicted": C,
        "delta_D": b - D,
        "delta_C": separable - C,
        "relative_delta_D": (b - D) / D,
        "relative_delta_C": (separable - C) / C,
        "kappa": b / D,
    }


LAW = Formula(
    id="generalization.exponents",
    title="Scaling exponents from smoothness and intrinsic dimension",
    source="generalization, Eq 4, 6, 18-20",
    equation=(
        "alpha_N = 2*s/d; alpha_D = 2*s/(2*s + d); alpha_C = s/(s + d); "
        "N_star = ((s/d)*(A/B)*C)^(d/(2*(s + d))); n_star = C/N_star"
    ),
    latex=(
        r"\alpha_N = \frac{2s}{d},\quad \alpha_D = \frac{2s}{2s+d},\quad"
        r" \alpha_C = \frac{s}{s+d},\quad N^* = \left(\frac{s}{d}\frac{A}{B} C\right)^{d/(2(s+d))}"
    ),
    variables=(
        _S,
        _D,
        Variable(
            "C", "parameters samples", "N n, to which compute is proportional", POSITIVE, math.nan
        ),
        Variable(
            "A", "parameters^alpha_N", "coefficient of the approximation error", POSITIVE, 1.0
        ),
        Variable("B", "samples/parameter", "coefficient of the estimation error", POSITIVE, 1.0),
    ),
    outputs=(
        _ALPHA_N,
        _ALPHA_D,
        _ALPHA_C,
        Variable("N_exponent", "1", "exponent of the optimal active parameters in compute"),
        Variable("n_exponent", "1", "exponent of the optimal number of samples in compute"),
        Variable("alpha_D_slow", "1", "data exponent that the rate of Lemma E.1 gives (E3.1)"),
        Variable("N_star", "parameters", "compute-optimal active parameters"),
        Variable("n_star", "samples", "compute-optimal number of samples"),
    ),
    function=_from_smoothness,
    errata=(
        "E3.1 (Lemma E.1): symmetrisation and Massart's lemma give an estimation error of order "
        "sqrt(ln N / n), not the 1/n of Thm 3.4, so the fast rate is not proven there; the slow "
        "one gives alpha_D = 2s/(4s+d): .1667 in place of .2 at s = 1, d = 8.",
        "E3.2 (Table 4): its five rows repeat one model (4 layers, width 512, 8,396,800 active "
        "parameters, 2 of 8 experts); they are the budgets of the data scaling behind alpha_D, "
        "not the routing ablation: k = 1 or 4 would give 6,295,552 or 12,599,296.",
        "The paper writes beta for the smoothness; s here, for beta is an exponent elsewhere.",
    ),
)

VARIANTS = {
    "from_N": replace(
        LAW,
        variant="from_N",
        title="Smoothness from a model-scaling slope",
        source="generalization, App B",
        equation=(
            "s = d*alpha_N/2; alpha_D = alpha_N/(1 + alpha_N); alpha_C = alpha_N/(2 + alpha_N)"
        ),
        latex=r"s = \frac{d\,\alpha_N}{2}",
        variables=(_ALPHA_N, _D),
        outputs=(_S, _ALPHA_D, _ALPHA_C),
        function=_from_N,
    ),
    "from_D": replace(
        LAW,
        variant="from_D",
        title="Smoothness from a data-scaling slope",
        source="generalization, App B",
        equation=(
            "s = d*alpha_D/(2*(1 - alpha_D)); alpha_N = alpha_D/(1 - alpha_D); "
            "alpha_C = alpha_D/(2 - alpha_D)"
        ),
        latex=r"s = \frac{d\,\alpha_D}{2(1-\alpha_D)}",
        variables=(_ALPHA_D, _D),
        outputs=(_S, _ALPHA_N, _ALPHA_C),
        function=_from_D,
    ),
    "consistency": replace(
        LAW,
        variant="consistency",
        title="How far two measured exponents are from the identities between them",
        source="generalization, App B.2, Eq 23, 24 and Table 5",
        equation=(
            "alpha_C = alpha_N*alpha_D/(alpha_N + alpha_D); "
            "alpha_D_predicted = alpha_N/(1 + alpha_N); alpha_C_predicted = alpha_N/(2 + alpha_N); "
            "delta_D = alpha_D - alpha_D_predicted; delta_C = alpha_C - alpha_C_predicted; "
            "kappa = alpha_D/alpha_D_predicted"
        ),
        latex=(
            r"\alpha_C = \frac{\alpha_N\alpha_D}{\alpha_N+\alpha_D},\quad"
            r" \alpha_D^{\mathrm{pred}} = \frac{\alpha_N}{1+\alpha_N},\quad"
            r" \alpha_C^{\mathrm{pred}} = \frac{\alpha_N}{2+\alpha_N}"
        ),
        variables=(_ALPHA_N, replace(_ALPHA_D, domain=POSITIVE)),
        outputs=(
            replace(_ALPHA_C, description="compute exponent of the separable law"),
            Variable("alpha_D_predicted", "1", "data exponent that alpha_N implies"),
            Variable("alpha_C_predicted", "1", "compute exponent that alpha_N implies"),
            Variable("delta_D", "1", "alpha_D less the predicted one"),
            Variable("delta_C", "1", "alpha_C less the predicted one"),
            Variable("relative_delta_D", "1", "delta_D over the predicted alpha_D"),
            Variable("relative_delta_C", "1", "delta_C over the predicted alpha_C"),
            Variable("kappa", "1", "alpha_D over the predicted alpha_D"),
        ),
        function=_consistency,
        errata=(
            *LAW.errata,
            "E3.3 (Table 5): the derived cells are truncated, not rounded, to four decimals: they "
            "agree with the formulas within 1e-4.",
        ),
    ),
}
