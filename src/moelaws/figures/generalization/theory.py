"""T2: measured exponents beside those that an intrinsic dimension and a smoothness give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.generalization.dimension import of_models
from moelaws.analysis.generalization.draws import estimates, paired, with_interval
from moelaws.analysis.generalization.identities import identities
from moelaws.analysis.inputs import Inputs
from moelaws.figures.tabular import Tabular
from moelaws.laws.generalization.exponents import (
    alpha_N,
    predicted_alpha_C,
    predicted_alpha_D,
    smoothness_from_D,
    smoothness_from_N,
)

SMOOTHNESS = (0.5, 1.0, 2.0)  # the paper's range is lost in its text


def compare(inputs: Inputs) -> Tabular:
    """Rows: the theory at each smoothness, then the slopes without and with a floor."""
    models = of_models(inputs.derived("dimension"))
    d = float(models["dimension"].median()) if len(models) else float("nan")
    records: list[dict[str, Any]] = []
    for s in SMOOTHNESS:
        a = float(alpha_N(s, d))
        exponents = {
            "alpha_N": a,
            "alpha_D": float(predicted_alpha_D(a)),
            "alpha_C": float(predicted_alpha_C(a)),
        }
        records.append({"row": f"theory, s = {s:g}", "d": d, "s_N": s, "s_D": s, **exponents})
    for form, words in (("line", "measured, no floor"), ("floor", "measured, floor fitted")):
        records.append({"row": words, "d": d, **_measured(inputs, form, d)})
    names = {
        "row": "",
        "d": "d",
        "alpha_N": "alpha_N",
        "alpha_N_interval": "alpha_N interval",
        "alpha_D": "alpha_D",
        "alpha_D_interval": "alpha_D interval",
        "alpha_C": "alpha_C",
        "alpha_D_predicted": "alpha_D pred",
        "relative_delta_D": "Delta_D / alpha_D pred",
        "relative_interval": "its interval",
        "s_N": "s from alpha_N",
        "s_D": "s from alpha_D",
    }
    frame = pd.DataFrame(records).reindex(columns=list(names)).rename(columns=names)
    notes = [
        "Theory: alpha_N = 2s/d, alpha_D = 2s/(2s + d), alpha_C = s/(s + d); consistent exponents "
        "have alpha_D = alpha_N/(1 + alpha_N). Intervals at 90 %.",
        "d: the median over the models probed, of the middle layers of their own hidden states."
        if len(models)
        else "No hidden states were probed: there is no d, and no theory to compare with.",
    ]
    return Tabular(frame, digits=4, notes=notes)


def _measured(inputs: Inputs, form: str, d: float) -> dict[str, Any]:
    (model,) = estimates(inputs, f"model_{form}")
    (data,) = estimates(inputs, f"data_{form}")
    a, b = model.params["alpha"], data.params["alpha"]
    point = identities(a, b)
    drawn = identities(*paired(model.draws["alpha"], data.draws["alpha"]))
    ends = {
        "alpha_N": with_interval("x", a, model.draws["alpha"], model.level),
        "alpha_D": with_interval("x", b, data.draws["alpha"], data.level),
        "relative": with_interval("x", float("nan"), drawn["relative_delta_D"], model.level),
    }
    return {
        "alpha_N": a,
        "alpha_D": b,
        **{f"{name}_interval": _words(x["x_low"], x["x_high"]) for name, x in ends.items()},
        **{n: float(point[n]) for n in ("alpha_C", "alpha_D_predicted", "relative_delta_D")},
        "s_N": float(smoothness_from_N(a, d)),
        "s_D": float(smoothness_from_D(b, d)),
    }


def _words(low: float, high: float) -> str:
    return f"{low:.3g} to {high:.3g}" if np.isfinite([low, high]).all() else "not known"


TABLES = {"T2": compare}
