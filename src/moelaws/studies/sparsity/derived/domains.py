"""Losses by domain of the text, and what compute and sparsity do to each; no paper has these.

A domain is the outermost folder of the text's files. Of each, the best size at a budget C and a
sparsity S is that of a parabola of ln bpb in ln N_active. Slopes over these optima are those of

    ln bpb* = a + b ln C + c v,  v = -ln(1 - S)

by least squares; for c each budget has an a of its own, so that one budget is enough.
"""

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Row, Rows, of_kept, of_runs, records, table
from moelaws.analysis.inputs import Inputs, row_mask
from moelaws.analysis.minimum import parabola_minima
from moelaws.analysis.regression import LEVEL, contrast, indicators
from moelaws.tables.column import COVERAGE, NOTE, Column, estimated

WHOLE, OTHER = "all", "other"
LEAST = 0.02  # of the bytes; smaller domains are one
DOMAIN = Column("domain", "string", f"folder of the text; {OTHER}: small ones; {WHOLE}: the whole")


@table(
    *of_runs("run_id", "C", "S", "d_model", "N_total", "N_active", "D", "seed"),
    DOMAIN,
    Column("tokens", "int", "predicted tokens", "tokens"),
    Column("bytes", "int", "of text that these stand for", "bytes"),
    Column("bpb", "float", "held-out loss", "bits/byte"),
)
def losses(inputs: Inputs, rows: str = "") -> Rows:
    """Yields a row for each domain of each completed run, none for runs that know no domains.

    ``rows`` is a condition of runs.
    """
    runs = inputs.completed[row_mask(inputs.completed, rows)]
    for run, documents in of_kept(runs, inputs.documents):
        sizes = documents.groupby("domain")["bytes"].transform("sum")
        is_large = sizes >= LEAST * documents["bytes"].sum()
        named = documents.assign(domain=documents["domain"].where(is_large, OTHER))
        both = pd.concat([named, named.assign(domain=WHOLE)])
        sums = both.groupby("domain")[["tokens", "bytes", "nats"]].sum().reset_index()
        sums["bpb"] = sums["nats"] / sums["bytes"] / np.log(2)
        yield from (run | row for row in records(sums))


@table(
    DOMAIN,
    Column("n", "int", "budgets and sparsities whose best size lies inside what was measured"),
    *estimated("over_compute", "ln bpb* per e-fold of C"),
    *estimated("over_sparsity", "ln bpb* per e-fold of 1/(1-S)"),
    COVERAGE,
    NOTE,
    told={"note != ''": "{note}"},
)
def slopes(inputs: Inputs) -> Rows:
    """Returns the slopes of the whole text and of each of its domains, the flattest one first.

    All domains' intervals together have the level (Bonferroni).
    """
    known = inputs.derived("domains")
    of_domains = known["domain"].nunique() - 1
    if of_domains < 2:
        return []
    level = 1 - (1 - LEVEL) / of_domains
    rows = [
        {"domain": name, "level": level, **_slopes(own, level)}
        for name, own in known.groupby("domain")
    ]
    return sorted(rows, key=lambda row: -row["over_sparsity"].value)


def _slopes(rows: pd.DataFrame, level: float) -> Row:
    """Returns the slopes of one domain, by the best trial of each model and seed."""
    tuned = rows.loc[rows.groupby(["C", "S", "N_active", "seed"])["bpb"].idxmin()]
    optima = []
    for _, own in tuned.groupby(["C", "S"]):
        C, S = own[["C", "S"]].to_numpy(float)[0]
        best = parabola_minima(np.log(own["N_active"]), np.log(own["bpb"]))
        if best and best.inside[0]:
            optima.append((np.log(C), -np.log1p(-S), best.y[0]))
    c, v, y = np.array(optima).reshape(-1, 3).T
    plane, budgets = np.column_stack([np.ones_like(c), c, v]), indicators(c)
    over_sparsity = np.eye(budgets.shape[1] + 1)[-1]
    effects = {
        "over_compute": contrast(plane, y, np.array([0.0, 1.0, 0.0]), level),
        "over_sparsity": contrast(np.column_stack([budgets, v]), y, over_sparsity, level),
    }
    lacks = [name for name, slope in effects.items() if np.isnan(slope.low)]
    note = f"too few best sizes inside what was measured for {' and '.join(lacks)}" if lacks else ""
    return {**effects, "n": len(y), "note": note}
