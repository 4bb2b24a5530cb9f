"""What figures draw of the cost model: S(E) and its terms, E_opt over the overhead, and factors."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Row, Rows
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
    costs = factors(inputs).melt(["form", "E"], [*TERMS], "term", "cost")
    shown = costs[(costs["form"] == CORRECTED) | costs["term"].isin(MISPRINTED)]
    return shown.assign(name=shown["term"].map(TERMS))


def relative(inputs: Inputs) -> Rows:
    """Returns S over S(1) for each shape and form, and that of traditional experts.

    Without overhead S(1) is twice the cost of one traditional expert, for any shape.
    """
    forms = (PRINTED, CORRECTED)
    every = [x for f in forms for x in _shapes(f, E=EXPERTS_DRAWN, alpha=EXAMPLE["alpha"])]
    return (x.assign(S=x["S"] / x["S"][0], half=x["E"] / 2) for x in every)


def optima(inputs: Inputs) -> Rows:
    """Returns the number of experts of least cost over the overhead, by variant and shape."""
    return (
        own.assign(variant=variant, E=own[result])
        for variant, (form, result) in VARIANTS.items()
        for own in _shapes(form, alpha=OVERHEADS_DRAWN)
    )


def factors(inputs: Inputs) -> pd.DataFrame:
    """Returns the costs in the example, and those of traditional experts over them, both forms."""
    at: Row = {"E": EXPERTS_DRAWN, **EXAMPLE}
    return pd.concat(_evaluated(form, at) for form in (PRINTED, CORRECTED))


def both_factors(inputs: Inputs) -> Rows:
    """Returns the corrected factor of the whole without overhead, by d0 / L."""
    at: Row = {"E": EXPERTS_DRAWN, "L": 1.0, "alpha": 0.0}
    return (_evaluated(CORRECTED, {**at, "d0": ratio}) for ratio in RATIOS)


def _shapes(form: str, **at: Any) -> Iterator[pd.DataFrame]:
    """Yields what a form gives for each of ``SHAPES``, with the words for it."""
    for L, d0 in SHAPES:
        shape = f"$L$ = {style.short(L)}, $d_0$ = {style.short(d0)}"
        yield _evaluated(form, {"L": L, "d0": d0, **at}).assign(shape=shape)


def _evaluated(form: str, at: Row) -> pd.DataFrame:
    """Returns the results of a ``form`` of the model, and what they are ``at``."""
    return pd.DataFrame({"form": form, **evaluate(form, **at), **at})
