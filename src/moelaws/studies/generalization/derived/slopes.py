"""Exponents of the model- and the data-scaling sweeps, without and with a floor (App A.5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from moelaws.analysis.derive import table
from moelaws.analysis.fitted import FittedInputs
from moelaws.studies.generalization.derived.consistency import consistency
from moelaws.studies.generalization.derived.draws import estimates, paired, with_interval
from moelaws.tables.column import Column

FLOORS = {"line": "none", "floor": "fitted"}  # how the fits' names end -> their floor


@table(
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
def derive(inputs: FittedInputs) -> Iterator[dict[str, Any]]:
    """Gives a row for each parameter of model_line, model_floor, data_line and data_floor.

    A row for each floor has kappa = alpha_D (1 + alpha_N) / alpha_N, which is 1 where both slopes
    agree on one smoothness (Eq 24, generalization).
    """
    for form, floor in FLOORS.items():
        (model,), (data,) = (estimates(inputs, f"{series}_{form}") for series in ("model", "data"))
        about: dict[str, Any] = {"floor": floor, "level": model.level}
        for series, fit in (("model", model), ("data", data)):
            metrics = {name: fit.result.metrics.get(name) for name in ("aic", "r2")}
            for name in fit.params:
                row = {"series": series, **about, "name": name, "n": fit.result.n, **metrics}
                yield row | fit.with_interval(name)
        drawn = consistency(*paired(model.draws["alpha"], data.draws["alpha"]))["kappa"]
        kappa = consistency(model.params["alpha"], data.params["alpha"])["kappa"]
        row = {"series": "both", **about, "name": "kappa", "n": model.result.n + data.result.n}
        yield row | with_interval("value", kappa, drawn, model.level)


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Gives a line for each exponent whose interval does not exclude 0."""
    rows = frame[(frame["name"] == "alpha") & ~(frame["value_low"] > 0)]
    return [
        f"{row.series} scaling, floor {row.floor}: the exponent is not told from 0 "
        f"({row.value:.3g}, {row.value_low:.3g} to {row.value_high:.3g})"
        for row in rows.itertuples()
    ]
