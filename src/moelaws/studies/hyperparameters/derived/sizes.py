"""The best model size of each budget, for mixtures and for dense models (leverage, App E.2).

Size is the model's scale M, its training FLOPs per token without logits, so that C = M D.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Row, of_runs, table
from moelaws.analysis.inputs import Inputs, at
from moelaws.analysis.minimum import TOO_FEW, parabola_minima, with_ends
from moelaws.tables.column import Column, estimated
from moelaws.tables.sweeps import best_trials

LEVEL = 0.9
SWEEPS = {"moe": "moe_sizes", "dense": "dense_sizes"}


@table(
    *of_runs("kind", "A", "C"),
    Column("M_argmin", "float", "FLOP/token", "scale of the run of least loss"),
    Column("D_argmin", "float", "tokens", "training tokens of the run of least loss"),
    Column("L_argmin", "float", "nats/token", "the least loss"),
    *estimated("M_star", "FLOP/token", "minimum of a parabola in ln M in the measured range", "M"),
    *estimated("D_star", "tokens", "C / M_star", "D"),
    Column("inside", "bool", "1", "the parabola's minimum is inside the measured range"),
    Column("end", "bool", "1", "the run of least loss has the least or the largest size tried"),
    Column("n", "int", "1", "completed runs"),
    Column("note", "string", "1", "why the minimum is not inside; empty where it is"),
    told={
        "note != ''": "{kind}, C={C:.3g}: no minimum of the loss inside the sizes measured: {note}"
    },
)
def derive(inputs: Inputs) -> Iterator[Row]:
    """Yields the best size of each budget and kind of model, by least loss and by a parabola."""
    for kind, sweep in SWEEPS.items():
        rows = inputs.sweep(sweep)
        rows = rows.assign(M=rows["C_leverage_no_router"] / rows["D"])
        for _, best in rows[best_trials(rows, ["C"])].sort_values("C").iterrows():
            group = at(rows, "C", best["C"])
            yield {"kind": kind, "A": best["A"], **_best(group, best)}


def _best(group: pd.DataFrame, best: pd.Series) -> Row:
    C, M = float(best["C"]), group["M"].to_numpy(float)
    record: Row = {f"{name}_argmin": best[name] for name in "MDL"}
    record |= {"C": C, "end": bool(best["M"] in (M.min(), M.max())), "n": len(group)}
    record |= {"inside": False, "note": TOO_FEW}
    lowest = parabola_minima(np.log(M), group["L"].to_numpy(float))
    if lowest is None:
        return record
    record |= with_ends("M_star", np.exp(lowest.x), LEVEL, "M")
    pairs = {"D_star": "M_star", "D_low": "M_high", "D_high": "M_low"}
    record |= {D: C / record[M] for D, M in pairs.items()}
    return record | {"inside": bool(lowest.inside[0]), "note": lowest.notes[0]}
