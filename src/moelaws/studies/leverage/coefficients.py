"""The tables of the leverage paper that compare fitted laws with the printed ones: T6, T16, T17."""

from __future__ import annotations

import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.figures.tabular import Tabular
from moelaws.studies.leverage.laws import activation, granularity, joint

# The forms of a law with the R2 that Tables 16 and 17 and App N.2 print.
FORMS = (
    (activation.LAW, 0.9915),
    (activation.VARIANTS["power"], 0.9772),
    (granularity.LAW, 0.9575),
    (granularity.VARIANTS["saturating"], 0.9432),
    (granularity.VARIANTS["power"], 0.8276),
)


def compare(inputs: FittedInputs) -> Tabular:
    """Sets T6: Eq 4's coefficients as published, from the points of leverage and from losses."""
    published = joint.LAW.published or {}
    columns: dict[str, list[float | str | None]] = {
        "coefficient": [*joint.LAW.names, "best G"],
        "published": [
            *(published[name] for name in joint.LAW.names),
            float(joint.optimal_granularity(published)),
        ],
    }
    for fit, label, slope in (("joint", "EL points", "beta"), ("loss", "losses", "beta_G")):
        params = inputs.fit(fit).parts[0].params
        own = [params[slope if name == "beta" else name] for name in joint.LAW.names]
        exponent = {"gamma": params["gamma"].estimate, "beta": params[slope].estimate}
        best_G = float(joint.optimal_granularity(exponent))
        columns[label] = [*(p.estimate for p in own), best_G]
        columns[f"{label}, low"] = [*(p.low for p in own), None]
        columns[f"{label}, high"] = [*(p.high for p in own), None]
    level = 100 * inputs.fit("joint").level
    return Tabular(
        pd.DataFrame(columns).astype(dict.fromkeys(list(columns)[1:], float)),
        notes=(
            "A is E_a/E, log C of base 10 and log G of base 2, with which the published "
            "coefficients give the paper's numbers.",
            f"Low and high are {level:g} % intervals. Those of the EL points resample whole "
            "architectures and leave out the dense curve's own error, which all points share; "
            "those of the losses hold it.",
            "A_max far above 1 is without effect: Ahat = A + A_start.",
        ),
    )


def goodness_of_fit(inputs: Inputs, law: str) -> Tabular:
    """Sets T16 and T17: how well each form of ``law`` explains the leverage, beside the paper."""
    forms = inputs.derived("forms")
    forms = forms[forms["law"].str.partition(":")[0] == law]
    records = []
    for form, published in FORMS:
        rows = forms[forms["law"] == form.ref]
        if not len(rows):
            continue
        fitted = rows[rows["R2"].notna()]
        records.append(
            {
                "form": form.equation.partition(", where")[0],
                "parameters": int(rows["parameters"].iloc[0]),
                "budgets fitted": len(fitted),
                "points a budget": int(rows["n"].median()),
                "R2, median": fitted["R2"].median(),
                "R2, least": fitted["R2"].min(),
                "R2, published": published,
            }
        )
    notes = ["One fit a budget, least squares on ln EL; R2 is of EL."]
    missing = forms[forms["note"] != ""]
    notes += [f"{ref}: {rows['note'].iloc[0]}." for ref, rows in missing.groupby("law")]
    return Tabular(pd.DataFrame(records), notes=notes)
