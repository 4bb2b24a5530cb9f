"""What routing gains: each routed run beside the dense model of its base size."""

from __future__ import annotations

import pandas as pd

from moelaws.analysis.derive import table
from moelaws.analysis.fitted import FittedInputs
from moelaws.fitting.quantiles import percentiles
from moelaws.laws.clark.routing import effective_parameters
from moelaws.studies.routing.routers import DENSE, ROUTERS, main_runs
from moelaws.tables.column import Column


@table(
    Column("run_id", "string", "1", "the routed run"),
    Column("router", "string", "1", "routing technique"),
    Column("size", "string", "1", "size label of the dense base model"),
    Column("N_dense", "int", "parameters", "parameters of the dense base model"),
    Column("E", "int", "experts", "routed experts a layer"),
    Column("L", "float", "nats/token", "validation loss"),
    Column("L_dense", "float", "nats/token", "the same of the dense model of that size"),
    Column("gain", "float", "nats/token", "L_dense - L"),
    Column("N_effective", "float", "parameters", "dense size of the same loss, by Eq 1"),
    Column("low", "float", "parameters", "lower end of its interval, by the fit's draws"),
    Column("high", "float", "parameters", "upper end of its interval"),
)
def derive(inputs: FittedInputs) -> pd.DataFrame:
    """Returns one row a routed run with one active expert and every other layer routed.

    The dense loss is the mean over seeds, which one size has.
    """
    runs = main_runs(inputs.completed)
    dense = runs[runs["router"] == DENSE].groupby("N_dense")["L"].mean()
    tables = []
    for router in ROUTERS:
        own = runs[runs["router"] == router.name].sort_values(["N_dense", "E"])
        report, draws = inputs.fit(router.fit), inputs.draws(router.fit)
        N, E = own["N_dense"].to_numpy(float), own["E"].to_numpy(float)
        drawn = effective_parameters({str(n): draws[n].to_numpy()[:, None] for n in draws}, N, E)
        low, high = percentiles(drawn, report.level)
        own = own.assign(L_dense=own["N_dense"].map(dense), low=low, high=high)
        N_effective = effective_parameters(report.part({}).estimates(), N, E)
        tables.append(own.assign(gain=own["L_dense"] - own["L"], N_effective=N_effective))
    return pd.concat(tables, ignore_index=True)
