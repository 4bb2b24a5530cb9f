"""The forms of the laws of leverage over A and G compared at each budget (App N, leverage)."""

from __future__ import annotations

from typing import Any

import pandas as pd

from moelaws import laws
from moelaws.analysis.inputs import Inputs, at
from moelaws.fitting.fit import fit
from moelaws.spec.errors import UserError, located
from moelaws.spec.study import Fit
from moelaws.tables.column import Column

# Law -> the sweep of its points, its variable's column.
FORMS = {
    "leverage.activation": ("activation", "A", "A_routed"),
    "leverage.activation:power": ("activation", "A", "A_routed"),
    "leverage.granularity": ("granularity", "G", "G"),
    "leverage.granularity:saturating": ("granularity", "G", "G"),
    "leverage.granularity:power": ("granularity", "G", "G"),
}

COLUMNS = (
    Column("law", "string", "1", "the law's form"),
    Column("C", "float", "FLOP", "training budget"),
    Column("n", "int", "1", "points of efficiency leverage"),
    Column("parameters", "int", "1", "parameters of the form"),
    Column("R2", "float", "1", "share of the variance of EL explained", True),
    Column("rmse", "float", "1", "root mean square error of EL", True),
    Column("note", "string", "1", "why there is no fit; empty where there is"),
)


def derive(inputs: Inputs) -> pd.DataFrame:
    """The table ``COLUMNS`` from the derived table ``points``, at the budgets that were trained."""
    points = inputs.derived("points")
    points = points[(points["measured"] == 1) & (points["EL"] > 0)]
    records = []
    for ref, (sweep, variable, column) in FORMS.items():
        own = points[points["sweep"].str.split(",").map(lambda names, s=sweep: s in names)]
        for C in sorted(own["C"].unique()):
            records.append({"law": ref, "C": C, **_fitted(ref, at(own, "C", C), variable, column)})
    return pd.DataFrame(records, columns=[c.name for c in COLUMNS])


def warnings(frame: pd.DataFrame) -> list[str]:
    """A line for each form that could not be fitted at some budgets."""
    missing = frame[frame["note"] != ""]
    return [
        f"{law}: not fitted at {len(rows)} budgets: {rows['note'].iloc[0]}"
        for law, rows in missing.groupby("law")
    ]


def _fitted(ref: str, rows: pd.DataFrame, variable: str, column: str) -> dict[str, Any]:
    law = laws.fittable(ref)
    P, n = len(law.parameters), len(rows)
    found = {"n": n, "parameters": P, "R2": float("nan"), "rmse": float("nan"), "note": ""}
    if n <= P:
        return {**found, "note": f"{n} points for {P} parameters"}
    spec = Fit(name="form", law=ref, mapping={variable: column, "EL": "EL"}, bootstrap=1)
    try:
        with located("points"):
            metrics = fit(law, rows, spec).parts[0].metrics
    except UserError as error:
        return {**found, "note": str(error)}
    return {**found, "R2": metrics["r2"], "rmse": metrics["rmse"]}
