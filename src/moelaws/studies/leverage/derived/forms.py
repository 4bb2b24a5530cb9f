"""The forms of the laws of leverage over A and over G, compared at each budget (App N, leverage).

They are fitted here and not as fits of the study, for a budget with too few points for a form
leaves a note where a fit would fail.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from moelaws.analysis.derive import Rows, table
from moelaws.analysis.inputs import Inputs, at
from moelaws.fitting.fit import fit
from moelaws.laws.base import FittableLaw, Law
from moelaws.spec.errors import UserError, located
from moelaws.spec.fit import Fit
from moelaws.studies.leverage.laws import activation, granularity
from moelaws.tables.column import Column
from moelaws.tables.sweeps import in_sweep

# Each form with the sweep of its points and the column of its variable.
FORMS: tuple[tuple[Law, str, str], ...] = (
    (activation.LAW, "activation", "A_routed"),
    (activation.VARIANTS["power"], "activation", "A_routed"),
    (granularity.LAW, "granularity", "G"),
    (granularity.VARIANTS["saturating"], "granularity", "G"),
    (granularity.VARIANTS["power"], "granularity", "G"),
)


@table(
    Column("law", "string", "1", "the law's form"),
    Column("C", "float", "FLOP", "training budget"),
    Column("n", "int", "1", "points of efficiency leverage"),
    Column("parameters", "int", "1", "parameters of the form"),
    Column("R2", "float", "1", "share of the variance of EL explained", True),
    Column("rmse", "float", "1", "root mean square error of EL", True),
    Column("note", "string", "1", "why there is no fit; empty where there is"),
)
def derive(inputs: Inputs) -> Rows:
    """Makes a row for each form at each budget that was trained, from the table ``points``."""
    points = inputs.derived("points")
    points = points[(points["measured"] == 1) & (points["EL"] > 0)]
    records = []
    for law, sweep, column in FORMS:
        own = points[in_sweep(points, sweep)]
        for C in sorted(own["C"].unique()):
            records.append({"law": law.ref, "C": C, **_errors(law, at(own, "C", C), column)})
    return records


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Names each form that could not be fitted at some budgets."""
    missing = frame[frame["note"] != ""]
    return [
        f"{law}: not fitted at {len(rows)} budgets: {rows['note'].iloc[0]}"
        for law, rows in missing.groupby("law")
    ]


def _errors(law: Law, points: pd.DataFrame, column: str) -> dict[str, Any]:
    """Fits the law to the points of one budget and returns its errors, or why there are none."""
    assert isinstance(law, FittableLaw)
    P, n = len(law.parameters), len(points)
    errors = {"n": n, "parameters": P, "R2": float("nan"), "rmse": float("nan"), "note": ""}
    if n <= P:
        return {**errors, "note": f"{n} points for {P} parameters"}
    mapping = {law.variables[0].name: column, "EL": "EL"}
    spec = Fit(name="form", law=law.ref, mapping=mapping, bootstrap=1)
    try:
        with located("points"):
            metrics = fit(law, points, spec).parts[0].metrics
    except UserError as error:
        return {**errors, "note": str(error)}
    return {**errors, "R2": metrics["r2"], "rmse": metrics["rmse"]}
