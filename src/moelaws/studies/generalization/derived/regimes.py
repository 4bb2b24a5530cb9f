"""Where the runs lie among the regimes of the bound (generalization, sec 4).

The bound N^-p + N/n + R/n holds up to constants that the paper does not give; here they are 1, its
exponent is the measured one, and samples n are training tokens, over which the paper fits it too.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.derive import table
from moelaws.analysis.fitted import FittedInputs
from moelaws.studies.generalization.derived.draws import estimates
from moelaws.studies.generalization.laws import active_experts, routing
from moelaws.tables.column import Column
from moelaws.tables.sweeps import in_sweep


@table(
    Column("D", "float", "tokens", "training tokens, n of the bound"),
    Column("N_act", "float", "parameters", "active parameters of the base architecture"),
    Column("R", "float", "nats", "its routing term"),
    Column("p", "float", "1", "2s/d: the measured model exponent above a floor", True),
    Column(
        "N_cross", "float", "parameters", "n^(1/(1+p)): approximation and estimation equal", True
    ),
    Column("N_cap", "float", "parameters", "(n/R)^(1/p): approximation and routing equal", True),
    Column("n_route", "float", "samples", "R^(1+p): below it routing dominates", True),
    Column("routing_dominated", "bool", "1", "whether D is below n_route"),
    Column("routing_share", "float", "1", "R / N_act: routing is negligible where it is small"),
    Column("k_star", "float", "experts", "k of least bound by Eq 9 with A = B^-p", True),
    Column("k_best", "float", "experts", "k of the routing runs' least loss at D, any M", True),
    Column("M_best", "float", "experts", "M of the routing runs' least loss at D", True),
)
def derive(inputs: FittedInputs) -> pd.DataFrame:
    """Gives a row for each token budget of the base architecture, the sweep ``data``.

    Eq 9's A is the coefficient of k^-p; with N_act = B k, B parameters for each active expert, it
    is B^-p where the bound's own constants are 1. Source: generalization, Eq 3, 7, 9, 13.
    """
    (fit,) = estimates(inputs, "model_floor")
    p = fit.params["alpha"] if fit.params["alpha"] > 0 else float("nan")
    runs = inputs.derived("runs")
    base = runs[in_sweep(runs, "data")].drop_duplicates("D").sort_values("D")
    d, w, layers, context = (
        base[name].to_numpy(float) for name in ("d_model", "width", "n_layers", "context")
    )
    B = layers * (2 * d * w + w + d)
    shared = {"s": p / 2, "d": 1.0, "M": base["M"], "n": base["D"]}
    bound = routing.LAW.evaluate({}, shared | {"k": base["k"], "L_T": layers, "l": context})
    active = {"A": B**-p, "B": B, "T": layers * context}
    best = [_best(runs[in_sweep(runs, "routing")], D) for D in base["D"]]
    return base.assign(
        p=p,
        **{name: bound[name] for name in ("N_cross", "N_cap", "n_route")},
        routing_dominated=bound["routing_dominated"] == 1,
        routing_share=base["R"] / base["N_act"],
        k_star=active_experts.LAW.evaluate({}, shared | active)["k_star"],
        k_best=[k for k, _ in best],
        M_best=[M for _, M in best],
    )


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Gives a line where there is no exponent to place the runs by."""
    if len(frame) and np.isnan(frame["p"]).all():
        return ["the model exponent above a floor is 0: the bound's regimes have no place"]
    return []


def _best(runs: pd.DataFrame, D: float) -> tuple[float, float]:
    """Returns k and M of the least mean loss at ``D`` tokens; NaN where no run has seen as many."""
    at = runs[np.isclose(runs["D"], D, rtol=1e-9, atol=0)]
    if not len(at):
        return float("nan"), float("nan")
    mean = at.groupby(["k", "M"])["L"].mean()
    k, M = mean.index[int(mean.to_numpy().argmin())]
    return float(k), float(M)
