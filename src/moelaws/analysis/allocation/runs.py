"""The runs as the paper's loss laws see them: its sparsity, and the deviation from r*."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.inputs import Inputs
from moelaws.fitting.report import FitReport
from moelaws.laws.allocation.ratio import ratio
from moelaws.tables.column import Column

FIT = "ratio"

COLUMNS = (
    Column("run_id", "string", "1", "identity of the run"),
    Column("seed", "int", "1", "seed of initial weights and data order"),
    Column("C", "float", "FLOP", "training budget, C_A + C_E over all tokens"),
    Column("N_total", "float", "parameters", "all parameters, embeddings included"),
    Column("N_active", "float", "parameters", "active parameters without embeddings"),
    Column("D", "float", "tokens", "training tokens"),
    Column("S", "float", "1", "sparsity with shared experts in E and k, 1 - A"),
    Column("E", "float", "experts", "experts a layer, shared ones included"),
    Column("r", "float", "1", "FLOPs of the experts over FLOPs of attention"),
    Column("r_star", "float", "1", "r* at the run's C and S, by the fit to these runs"),
    Column("r_star_published", "float", "1", "r* there by the paper's coefficients"),
    Column("sparsest", "int", "1", "1 for runs of the largest sparsity, else 0"),
    Column("L", "float", "nats/token", "validation loss"),
    Column("L_se", "float", "nats/token", "its standard error", True),
)


def derive(inputs: Inputs) -> pd.DataFrame:
    """The completed runs that name a budget, with r* of the fit ``ratio`` at each one's C and S.

    ``sparsest`` marks what the paper holds out, S = 97.67 % in its own grid (allocation, sec 4.2).
    """
    return of_runs(inputs.completed, inputs.fit(FIT))


def warnings(frame: pd.DataFrame) -> list[str]:
    """Nothing: each row is a run."""
    return []


def of_runs(runs: pd.DataFrame, fitted: FitReport) -> pd.DataFrame:
    """``runs`` with r* by ``fitted``, a fit of allocation.ratio over C and S."""
    rows = runs[runs["C"].notna()].reset_index(drop=True)
    C, S = rows["C"].to_numpy(float), rows["S_shared"].to_numpy(float)
    law = laws.fittable(fitted.law)
    frame = pd.DataFrame(
        {
            "run_id": rows["run_id"],
            "seed": rows["seed"],
            "C": C,
            "N_total": rows["N_total"].astype(float),
            "N_active": rows["N_active_nonemb"].astype(float),
            "D": rows["D"].astype(float),
            "S": S,
            "E": (rows["E"] + rows["E_s"]).astype(float),
            "r": rows["r"],
            "r_star": law.predict(fitted.part({}).estimates(), {"C": C, "S": S}),
            "r_star_published": ratio(C, S),
            "sparsest": np.isclose(S, S.max(), rtol=1e-9, atol=0).astype(int),
            "L": rows["L"],
            "L_se": rows["L_se"],
        }
    )
    return frame[[column.name for column in COLUMNS]]
