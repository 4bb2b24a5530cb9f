"""The runs as the paper counts them, the loss over the routing term, and the bound's regimes.

At fixed k the routing term R = k L l (1 + ln(M/k)) is linear in ln M, so that a slope over ln M is
also a slope over R. Each series of one k and one budget is cut at its middle M. Below lies the
moderate regime, in which the bound says that the loss rises; above lies the regime of many experts.

The bound N^-p + N/n + R/n (sec 4) holds up to constants that the paper does not give. Here they are
1, the exponent is the measured one, and the samples n are training tokens, as in the paper's fits.
"""

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Row, Rows, of_runs, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.regression import LEVEL, contrast, indicators
from moelaws.studies.generalization.derived.exponents import Estimates, estimates
from moelaws.studies.generalization.laws import active_experts, routing
from moelaws.studies.generalization.laws.routing import routing_term
from moelaws.tables.column import COVERAGE, RUNS, Column, estimated
from moelaws.tables.sweeps import in_sweep

FEW, MANY = "fewer experts", "more experts"
SERIES = ["k", "D"]


@table(
    *of_runs("run_id", "sweep", "corpus", "seed", "n_layers"),
    Column("width", "int", "hidden width w of an expert"),
    *of_runs("d_model", "n_heads"),
    Column("M", "int", "routed experts a layer", "experts"),
    *of_runs("k", "context", "N_active", "D"),
    Column("N_act", "float", "active parameters as Tables 3 and 4 count them", "parameters"),
    Column("R", "float", "routing term k L l ln(eM/k) of a sequence", "nats"),
    *of_runs("L", "L_se", "L_paired_se"),
)
def as_counted(inputs: Inputs) -> Rows:
    """Returns a row for each completed run.

    N_act = L (4 d^2 + k (2 d w + w + d)) counts bias-free attention and the k experts d -> w -> d
    with biases, but no router, norms or embeddings. It gives each row of the paper's Tables 3 and 4
    exactly.
    """
    runs = inputs.completed
    d, w, k, layers = (runs[c].astype(float) for c in ("d_model", "d_expert", "k", "n_layers"))
    return runs.rename(columns={"d_expert": "width", "E": "M"}).assign(
        N_act=layers * (4 * d**2 + k * (2 * d * w + w + d)),
        R=routing_term(k, runs["E"], layers, runs["context"]),
    )


@table(
    Column("part", "string", "fewer or more experts than the middle M of each series"),
    Column("D", "float?", "training tokens; missing: all budgets together", "tokens"),
    *estimated("slope", "change of the loss with ln M at fixed k and D", "nats/token"),
    COVERAGE,
    RUNS,
    told={
        "D.isna() and not (slope_low > 0 or slope_high < 0)": "routing, {part}: the sign of the "
        "loss's change with ln M is not told ({slope:.3g}, {slope_low:.3g} to {slope_high:.3g} "
        "nats, n = {n})"
    },
)
def routing_slopes(inputs: Inputs) -> Rows:
    """Yields a row for each half of the sweep ``routing``, over all budgets and at each of them."""
    runs = inputs.derived("runs", sweep="routing").sort_values(SERIES, kind="stable")
    for D, rows in ((np.nan, runs), *runs.groupby("D")):
        for half in (FEW, MANY):
            yield {"part": half, "D": D, **_slope(_half(rows, half))}


def _half(rows: pd.DataFrame, half: str) -> pd.DataFrame:
    """Returns each series' runs up to its middle M, or from there on; the middle is in both."""
    middle = rows.groupby(SERIES)["M"].transform(lambda M: np.sort(M.unique())[M.nunique() // 2])
    return rows[rows["M"] <= middle] if half == FEW else rows[rows["M"] >= middle]


def _slope(rows: pd.DataFrame) -> Row:
    """Fits L on ln M by least squares, with an intercept for each series and a t interval."""
    series = indicators(rows.groupby(SERIES).ngroup())
    X = np.column_stack([np.log(rows["M"].to_numpy(float)), series])
    slope = contrast(X, rows["L"].to_numpy(float), np.eye(X.shape[1])[0])
    return {"level": LEVEL, "n": len(rows), "slope": slope}


@table(
    *of_runs("corpus"),
    Column("D", "float", "training tokens, n of the bound", "tokens"),
    Column("N_act", "float", "active parameters of the base architecture", "parameters"),
    Column("R", "float", "its routing term", "nats"),
    Column("p", "float?", "2s/d: the measured model exponent above a floor"),
    Column("N_cross", "float?", "n^(1/(1+p)): approximation equals estimation", "parameters"),
    Column("N_cap", "float?", "(n/R)^(1/p): approximation and routing equal", "parameters"),
    Column("n_route", "float?", "R^(1+p): below it routing dominates", "samples"),
    Column("regime", "string?", "the bound's largest term, and what limits the model"),
    Column("routing_share", "float", "R / N_act: routing is negligible where it is small"),
    Column("k_star", "float?", "k of least bound by Eq 9 with A = B^-p", "experts"),
    Column("k_best", "float?", "k of the routing runs' least loss at D, any M", "experts"),
    Column("M_best", "float?", "M of the routing runs' least loss at D", "experts"),
    told={
        "p.isna()": "{corpus}: the model exponent above a floor is 0: the bound's regimes have no "
        "place"
    },
)
def regimes(inputs: FittedInputs) -> Rows:
    """Returns a row for each token budget of the base architecture on each corpus, sweep ``data``.

    Eq 9's A is the coefficient of k^-p. An active expert has B parameters, so that N_act = B k and
    A = B^-p where the bound's own constants are 1. Source: generalization, Eq 3, 7, 9, 13.
    """
    runs = inputs.derived("runs")
    own = [_regimes(runs[runs["corpus"] == f.corpus], f) for f in estimates(inputs, "model_floor")]
    return pd.concat(own, ignore_index=True)


def _regimes(runs: pd.DataFrame, fit: Estimates) -> pd.DataFrame:
    p = fit.params["alpha"] if fit.params["alpha"] > 0 else np.nan
    base = runs[in_sweep(runs, "data")].drop_duplicates("D").sort_values("D")
    shape = base[["d_model", "width", "n_layers", "context"]]
    d, w, layers, context = shape.to_numpy(float).T
    B = layers * (2 * d * w + w + d)
    shared = {"s": p / 2, "d": 1.0, "M": base["M"], "n": base["D"]}
    size = {"k": base["k"], "L_T": layers, "l": context, "N_active": base["N_act"]}
    bound = routing.LAW.evaluate({}, shared | size)
    active = {"A": B**-p, "B": B, "T": layers * context}
    routed = runs[in_sweep(runs, "routing")].groupby(["D", "k", "M"], as_index=False)["L"].mean()
    best = routed.loc[routed.groupby("D")["L"].idxmin()].set_index("D")
    return base.assign(
        p=p,
        **{name: bound[name] for name in ("N_cross", "N_cap", "n_route")},
        regime=pd.Series(bound["regime"], base.index).map(dict(enumerate(routing.REGIMES))),
        routing_share=base["R"] / base["N_act"],
        k_star=active_experts.LAW.evaluate({}, shared | active)["k_star"],
        k_best=base["D"].map(best["k"]),
        M_best=base["D"].map(best["M"]),
    )
