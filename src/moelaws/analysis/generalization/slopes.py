"""Exponents of the model- and the data-scaling sweeps, without and with a floor (App A.5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.generalization.draws import Estimates, estimates, paired, with_interval
from moelaws.analysis.inputs import Inputs
from moelaws.laws.generalization.kappa import kappa
from moelaws.tables.column import Column

FLOORS = {"generalization.scaling": "none", "generalization.scaling:floor": "fitted"}

COLUMNS = (
    Column("series", "string", "1", "what is scaled: model (N_act), data (D), or both together"),
    Column("floor", "string", "1", "loss floor L_inf: none, or fitted"),
    Column("name", "string", "1", "the number: alpha, a, L_inf; kappa of both series together"),
    Column("value", "float", "1", "its estimate", True),
    Column("value_low", "float", "1", "lower end of its interval", True),
    Column("value_high", "float", "1", "upper end of its interval", True),
    Column("level", "float", "1", "coverage of the intervals"),
    Column("n", "int", "1", "runs behind it"),
    Column("aic", "float", "1", "Akaike's criterion of the fit: the less, the better", True),
    Column("r2", "float", "1", "share of the variance of ln L that the fit explains", True),
)


def derive(inputs: Inputs) -> pd.DataFrame:
    """The table ``COLUMNS`` from the fits model_line, model_floor, data_line and data_floor.

    kappa = alpha_D (1 + alpha_N) / alpha_N is 1 where both slopes agree on one smoothness (Eq 24,
    generalization).
    """
    records: list[dict[str, Any]] = []
    for form in ("line", "floor"):
        found = {series: _one(inputs, f"{series}_{form}") for series in ("model", "data")}
        floor = FLOORS[inputs.fit(f"model_{form}").law]
        for series, fit in found.items():
            for name, value in fit.params.items():
                records.append(
                    {
                        **_about(series, floor, fit),
                        "name": name,
                        **with_interval("value", value, fit.draws[name], fit.level),
                    }
                )
        model, data = found["model"], found["data"]
        drawn = kappa(*_positive(*paired(model.draws["alpha"], data.draws["alpha"])))
        both = kappa(*_positive(model.params["alpha"], data.params["alpha"]))
        about = {**_about("both", floor, model), "n": model.part.n + data.part.n}
        about |= {"aic": float("nan"), "r2": float("nan"), "name": "kappa"}
        records.append({**about, **with_interval("value", float(both), drawn, model.level)})
    return pd.DataFrame(records)[[column.name for column in COLUMNS]]


def warnings(frame: pd.DataFrame) -> list[str]:
    """A line for each exponent whose interval does not exclude 0."""
    rows = frame[(frame["name"] == "alpha") & ~(frame["value_low"] > 0)]
    return [
        f"{row.series} scaling, floor {row.floor}: the exponent is not told from 0 "
        f"({row.value:.3g}, {row.value_low:.3g} to {row.value_high:.3g})"
        for row in rows.itertuples()
    ]


def _one(inputs: Inputs, fit: str) -> Estimates:
    (found,) = estimates(inputs, fit)
    return found


def _about(series: str, floor: str, fit: Estimates) -> dict[str, Any]:
    nan = float("nan")
    aic, r2 = (fit.part.metrics.get(name) for name in ("aic", "r2"))
    return {
        "series": series,
        "floor": floor,
        "level": fit.level,
        "n": fit.part.n,
        "aic": nan if aic is None else aic,
        "r2": nan if r2 is None else r2,
    }


def _positive(*exponents: Any) -> list[Any]:
    """Exponents where they are above 0; the identities hold of no others: NaN."""
    return [np.where(np.asarray(x, float) > 0, x, np.nan) for x in exponents]
