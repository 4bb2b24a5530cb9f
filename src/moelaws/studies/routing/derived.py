"""Derived tables of the published runs by the fits of Eq 1."""

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows, of_runs, table
from moelaws.analysis.effect import Effect
from moelaws.analysis.fitted import FittedInputs
from moelaws.fitting.fit import fit
from moelaws.fitting.quantiles import jackknife, percentiles
from moelaws.laws.base import Array
from moelaws.laws.clark.routing import STATED_CUTOFFS, effective_parameters, log10_cutoff
from moelaws.studies.routing.routers import CUTOFF, DENSE, ROUTERS, main_runs
from moelaws.tables.column import COVERAGE, RUNS, Column, estimated

ROUTER = Column("router", "string", "routing technique")


@table(
    ROUTER,
    Column("size", "string", "size label of the dense base model"),
    Column("N_dense", "int", "parameters of the dense base model", "parameters"),
    *of_runs("run_id", "E", "L"),
    Column("gain", "float", "the loss of the dense model of that size, less L", "nats/token"),
    *estimated("N_effective", "dense size of the same loss, by Eq 1", "parameters", ""),
)
def gains(inputs: FittedInputs) -> Rows:
    """Returns a row for each routed run with one active expert and every other layer routed.

    The dense loss is a mean over seeds, of which one size has several.
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
        gain = own["N_dense"].map(dense) - own["L"]
        N_effective = effective_parameters(report.group({}).estimates(), N, E)
        tables.append(own.assign(gain=gain, N_effective=N_effective, low=low, high=high))
    return pd.concat(tables, ignore_index=True)


@table(
    ROUTER,
    Column("objective", "string", "of the fit: squared is the paper's, huber is ours"),
    RUNS,
    *estimated("log10_N", "log10 of the size at which routing stops helping, -b/c", "1", ""),
    COVERAGE,
    Column("printed", "float", "the same by b and c as the paper prints them"),
    Column("stated", "float", "the same as the paper's text states it"),
)
def cutoffs(inputs: FittedInputs) -> Rows:
    """Yields a row for each fit of Eq 1, by router and objective."""
    for router in ROUTERS:
        for name in (router.fit, router.huber):
            report, draws = inputs.fit(name), inputs.draws(name)
            drawn = log10_cutoff({name: draws[name].to_numpy() for name in ("b", "c")})
            low, high = percentiles(drawn, report.level, method="inverted_cdf")
            law, result = inputs.law(name), report.group({})
            estimate = float(log10_cutoff(result.estimates()))
            objective = inputs.spec(name).protocol.get("objective", law.protocol.objective)
            yield {
                "router": router.name,
                "objective": objective,
                "n": result.n,
                "log10_N": Effect(estimate, float(low), float(high)),
                "level": report.level,
                "printed": float(log10_cutoff(law.published or {})),
                "stated": float(np.log10(STATED_CUTOFFS[law.variant])),
            }


@table(
    ROUTER,
    Column("quantity", "string", "coefficient of Eq 1, or log10 of the cut-off -b/c"),
    Column("sizes", "int", "base sizes, each of which is left out once"),
    *estimated("estimate", "by all sizes", "1", ""),
)
def sizes(inputs: FittedInputs) -> Rows:
    """Yields a row for each router and quantity, with a jackknife interval over base sizes.

    Coefficients vary on the law's working scale. The interval of the cut-off has no end where a
    refit has no cut-off (c not above 0).
    """
    for router in ROUTERS:
        report, rows = inputs.fit(router.fit), inputs.rows(router.fit)
        law = inputs.law(router.fit)
        once = inputs.spec(router.fit).model_copy(update={"profile": ()})

        def quantities(params: dict[str, float], law: Any = law) -> Array:
            return np.append(law.vector(params), log10_cutoff(params))

        sizes = sorted(rows["N_dense"].unique())
        others = [fit(law, rows[rows["N_dense"] != size], once) for size in sizes]
        whole = quantities(report.group({}).estimates())
        left_out = np.array([quantities(other.group({}).estimates()) for other in others])
        low, high = jackknife(whole, left_out, report.level)
        numbers = [np.append(law.natural(x[:-1]), x[-1]) for x in (whole, low, high)]
        for quantity, *own in zip((*law.names, CUTOFF), *numbers, strict=True):
            row = {"router": router.name, "quantity": quantity, "sizes": len(sizes)}
            yield {**row, "estimate": Effect(*own)}
