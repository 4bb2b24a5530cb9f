"""T6: the joint law's coefficients; T16, T17: how well the forms over A and over G fit."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from moelaws import laws
from moelaws.analysis.inputs import Inputs
from moelaws.figures.tabular import Tabular
from moelaws.laws.leverage import joint

# Tables 16 and 17 and App N.2, leverage.
PUBLISHED_R2 = {
    "leverage.activation": 0.9915,
    "leverage.activation:power": 0.9772,
    "leverage.granularity": 0.9575,
    "leverage.granularity:saturating": 0.9432,
    "leverage.granularity:power": 0.8276,
}


def table_6(inputs: Inputs) -> Tabular:
    """Eq 4's coefficients: from the points of leverage, from the losses, and published."""
    published = joint.LAW.published or {}
    ours = {name: inputs.fit(name).parts[0].params for name in ("joint", "loss")}
    records = []
    for name in joint.LAW.names:
        record: dict[str, object] = {"coefficient": name, "published": published[name]}
        for fit, label in (("joint", "EL points"), ("loss", "losses")):
            own = ours[fit]["beta_G" if (fit, name) == ("loss", "beta") else name]
            record |= {
                label: own.estimate,
                f"{label}, low": own.low,
                f"{label}, high": own.high,
            }
        records.append(record)
    optimum: dict[str, object] = {"coefficient": "best G", "published": _best(published, "beta")}
    for fit, label, slope in (("joint", "EL points", "beta"), ("loss", "losses", "beta_G")):
        optimum[label] = _best(inputs.fit(fit).parts[0].estimates(), slope)
    frame = pd.DataFrame([*records, optimum])
    numbers = [name for name in frame.columns if name != "coefficient"]
    level = 100 * inputs.fit("joint").level
    return Tabular(
        frame.astype(dict.fromkeys(numbers, float)),
        notes=(
            "A is E_a/E, log C of base 10 and log G of base 2, with which the published "
            "coefficients give the paper's numbers.",
            f"Low and high are {level:g} % intervals. Those of the EL points resample whole "
            "architectures and leave out the dense curve's own error, which all points share; "
            "those of the losses hold it.",
            "A_max far above 1 is without effect: Ahat = A + A_start.",
        ),
    )


def _best(params: Mapping[str, float], slope: str) -> float:
    found = joint.optimal_granularity({"gamma": params["gamma"], "beta": params[slope]})
    return float(found)


def goodness(inputs: Inputs, law: str) -> Tabular:
    """R2 of each form at each budget, beside the published one."""
    forms = inputs.derived("forms")
    forms = forms[forms["law"].str.partition(":")[0] == law]
    records = []
    for ref, rows in forms.groupby("law", sort=False):
        fitted = rows[rows["R2"].notna()]
        records.append(
            {
                "form": laws.get(str(ref)).equation.partition(", where")[0],
                "parameters": int(rows["parameters"].iloc[0]),
                "budgets fitted": len(fitted),
                "points a budget": int(rows["n"].median()),
                "R2, median": fitted["R2"].median(),
                "R2, least": fitted["R2"].min(),
                "R2, published": PUBLISHED_R2[str(ref)],
            }
        )
    notes = ["One fit a budget, least squares on ln EL; R2 is of EL."]
    missing = forms[forms["note"] != ""]
    notes += [f"{ref}: {rows['note'].iloc[0]}." for ref, rows in missing.groupby("law")]
    return Tabular(pd.DataFrame(records), notes=notes)


def table_16(inputs: Inputs) -> Tabular:
    """The forms over the activation ratio."""
    return goodness(inputs, "leverage.activation")


def table_17(inputs: Inputs) -> Tabular:
    """The forms over the granularity."""
    return goodness(inputs, "leverage.granularity")


TABLES = {"T6": table_6, "T16": table_16, "T17": table_17}
