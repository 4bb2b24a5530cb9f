"""Split of compute between attention and experts that minimises Eq 3 (allocation paper, App A).

The loss alpha_A C_A^-a + alpha_E C_E^-e, with a = gamma_A mu_A and e = gamma_E mu_E, of
C_A = C / (1+r) and C_E = C r / (1+r), has its optimal r where

    r^(e+1) (1+r)^(a-e) = (alpha_E e / (alpha_A a)) C^(a-e),

which has no closed form. The logarithm of the left side rises with ln r at a rate of at least
1 + min(a, e), so that the root is unique and bracketed. The closed form that the paper prints is
the variant ``printed``.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from moelaws.laws.base import Array, Columns, Formula, Variable
from moelaws.laws.roots import bisect


def _exact(columns: Columns) -> Mapping[str, Any]:
    """Solves App A.2's condition dL/dC_A = dL/dC_E exactly."""
    a, e = columns["a"], columns["e"]
    target = _ln_pull(columns) + (a - e) * np.log(columns["C"])

    def excess(ln_r: Array) -> Array:
        return np.asarray((1 + e) * ln_r + (a - e) * np.logaddexp(0.0, ln_r) - target)

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
    return np.asarray(np.log(alpha_E * e) - np.log(alpha_A * a))


LAW = Formula(
    id="allocation.elasticity",
    title="Split between attention and experts that minimises a two-term loss",
    source="allocation, Eq 3 and App A.2",
    equation="r^(e+1) * (1+r)^(a-e) = (alpha_E*e)/(alpha_A*a) * C^(a-e)",
    latex=r"r^{e+1} (1+r)^{a-e} = \frac{\alpha_E e}{\alpha_A a} C^{a-e}",
    variables=(
        Variable("C", "FLOP", "compute of attention and experts together"),
        Variable("alpha_A", "nats/token FLOP^a", "coefficient of the attention term"),
        Variable("alpha_E", "nats/token FLOP^e", "coefficient of the expert term"),
        Variable("a", "1", "elasticity of the attention term, gamma_A mu_A"),
        Variable("e", "1", "elasticity of the expert term, gamma_E mu_E"),
    ),
    outputs=(
        Variable("r", "1", "loss-optimal FLOPs of the experts over FLOPs of attention"),
        Variable("slope", "1", "d ln r / d ln C there: the local beta_r"),
    ),
    function=_exact,
    errata=(
        "E0.1 (App A.2, Eq 4): printed: r = alpha_r C^beta_r with alpha_r = "
        "(alpha_E e/(alpha_A a))^(1/(a+e+1)) and beta_r = (e-a)/(a+e+1); corrected: the implicit "
        "r^(e+1) (1+r)^(a-e) = (alpha_E e/(alpha_A a)) C^(a-e), with the local slope "
        "(a-e)(1+r)/((1+e)+(1+a)r). Only at a = e is it a power law, a constant "
        "(alpha_E e/(alpha_A a))^(1/(1+e)) where 1/(1+2e) is printed. The sign is reversed: at a = "
        "0.3, e = 0.2, alpha_A = 1.3, alpha_E = 2, C = 1e6 the optimum is r = 2.884 with slope "
        "+0.0785; printed: 0.405 and -0.0667.",
    ),
)
VARIANTS: Mapping[str, Formula] = {
    "printed": replace(
        LAW,
        variant="printed",
        source="allocation, Eq 4 as printed",
        equation="r = ((alpha_E*e)/(alpha_A*a))^(1/(a+e+1)) * C^((e-a)/(a+e+1))",
        latex=(
            r"r = \left(\frac{\alpha_E e}{\alpha_A a}\right)^{\frac{1}{a+e+1}}"
            r" C^{\frac{e-a}{a+e+1}}"
        ),
        function=_printed,
    )
}
