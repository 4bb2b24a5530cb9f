"""The best model size of each budget, for mixtures and for dense models (leverage, App E.2).

Size is the model's scale M, its training FLOPs per token without logits, so that C = M D.
"""

from collections.abc import Iterator

import numpy as np

from moelaws.analysis.derive import Row, of_runs, table
from moelaws.analysis.inputs import Inputs, at
from moelaws.analysis.minimum import TOO_FEW, parabola_minima, with_ends
from moelaws.studies.hyperparameters.derived.near_optimal import by
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
def derive(inputs: Inputs, optimizer: str = "adamw") -> Iterator[Row]:
    """Yields the best size of each budget and kind of model, by least loss and by a parabola."""
    for kind, sweep in SWEEPS.items():
        rows = by(optimizer, inputs.sweep(sweep)).reset_index(drop=True)
        rows = rows.assign(M=rows["C_leverage_no_router"] / rows["D"])
        for _, best in rows[best_trials(rows, ["C"])].sort_values("C").iterrows():
            C, group = float(best["C"]), at(rows, "C", best["C"])
            M = group["M"].to_numpy(float)
            row: Row = {f"{name}_argmin": best[name] for name in "MDL"}
            row |= {"kind": kind, "A": best["A"], "C": C, "n": len(group)}
            row |= {"end": bool(best["M"] in (M.min(), M.max())), "inside": False, "note": TOO_FEW}
            if lowest := parabola_minima(np.log(M), group["L"].to_numpy(float)):
                row |= with_ends("M_star", np.exp(lowest.x), LEVEL, "M")
                pairs = {"D_star": "M_star", "D_low": "M_high", "D_high": "M_low"}
                row |= {D_end: C / row[M_end] for D_end, M_end in pairs.items()}
                row |= {"inside": bool(lowest.inside[0]), "note": lowest.notes[0]}
            yield row
