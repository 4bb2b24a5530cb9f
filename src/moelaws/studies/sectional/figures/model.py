"""What figures draw of the cost model: S(E) and its terms, E_opt over the overhead, and factors."""

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.studies.sectional.laws.cost import CORRECTED, PRINTED, evaluate

# (L, d0): the example of the text, a shorter and a longer sequence, a narrower and a wider model.
SHAPES = ((512, 512), (4096, 512), (4096, 4096), (4096, 16384), (32768, 4096))
EXAMPLE = {"L": 4096.0, "d0": 4096.0, "alpha": 1e8}
EXPERTS_DRAWN = np.geomspace(1, 64, 121)  # the values of E along an axis
OVERHEADS_DRAWN = np.geomspace(1e6, 1e15, 181)
TERMS = {
    "projections": "projections",
    "attention_before": "attention before",
    "attention_experts": "attention in experts",
    "overhead": "overhead",
    "S": "whole cost $S$",
}
MISPRINTED = ("attention_before", "S")  # the other terms are the same in both forms
# The panels of ``optima``: title -> the form and its result.
VARIANTS = {
    "published (Eq 21)": (PRINTED, "E_opt_eq21"),
    "published cost": (PRINTED, "E_opt"),
    "corrected cost": (CORRECTED, "E_opt"),
}
RATIOS = (4, 1, 0.125)  # d0 / L, on which alone the factor of both depends


def terms(inputs: Inputs) -> pd.DataFrame:
    """Returns the cost of each term over experts in the example, as printed and corrected."""
    tables = []
    for form in (PRINTED, CORRECTED):
        costs = evaluate(form, E=EXPERTS_DRAWN, **EXAMPLE)
        for term in TERMS if form == CORRECTED else MISPRINTED:
            own = {"form": form, "term": term, "name": TERMS[term], "E": EXPERTS_DRAWN}
            tables.append(pd.DataFrame({**own, "cost": costs[term]}))
    return pd.concat(tables)


def relative(inputs: Inputs) -> pd.DataFrame:
    """Returns S over S(1) for each shape and form, and that of traditional experts.

    Without overhead S(1) is twice the cost of one traditional expert, for any shape.
    """
    tables = []
    for form in (PRINTED, CORRECTED):
        for L, d0 in SHAPES:
            cost = evaluate(form, E=EXPERTS_DRAWN, L=L, d0=d0, alpha=EXAMPLE["alpha"])["S"]
            own = {"form": form, "shape": _shape(L, d0), "L": L, "d0": d0, "E": EXPERTS_DRAWN}
            tables.append(pd.DataFrame({**own, "S": cost / cost[0], "half": EXPERTS_DRAWN / 2}))
    return pd.concat(tables)


def optima(inputs: Inputs) -> pd.DataFrame:
    """Returns the number of experts of least cost over the overhead, by variant and shape."""
    tables = []
    for variant, (form, result) in VARIANTS.items():
        for L, d0 in SHAPES:
            E = evaluate(form, L=L, d0=d0, alpha=OVERHEADS_DRAWN)[result]
            own = {"variant": variant, "shape": _shape(L, d0), "L": L, "d0": d0}
            tables.append(pd.DataFrame({**own, "alpha": OVERHEADS_DRAWN, "E": E}))
    return pd.concat(tables)


def factors(inputs: Inputs) -> pd.DataFrame:
    """Returns the cost of traditional experts over that of sections in the example, both forms."""
    E = EXPERTS_DRAWN
    forms = {form: evaluate(form, E=E, **EXAMPLE) for form in (PRINTED, CORRECTED)}
    return pd.concat(pd.DataFrame(own).assign(form=form, E=E) for form, own in forms.items())


def both_factors(inputs: Inputs) -> pd.DataFrame:
    """Returns the corrected factor of the whole without overhead, by d0 / L."""
    tables = []
    for ratio in RATIOS:
        factor = evaluate(CORRECTED, E=EXPERTS_DRAWN, L=1.0, d0=ratio, alpha=0.0)["total_factor"]
        tables.append(pd.DataFrame({"ratio": ratio, "E": EXPERTS_DRAWN, "factor": factor}))
    return pd.concat(tables)


def _shape(L: float, d0: float) -> str:
    return f"$L$ = {style.short(L)}, $d_0$ = {style.short(d0)}"
