"""The runs in the variables of the paper's loss laws, with r* at each one's budget."""

from __future__ import annotations

import numpy as np

from moelaws import laws
from moelaws.analysis.derive import Rows, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.studies.allocation.laws.ratio import ratio
from moelaws.tables.column import Column


@table(
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
    Column("L_se", "float", "nats/token", "its standard error, by document", True),
)
def derive(inputs: FittedInputs) -> Rows:
    """Lists the completed runs that name a budget, with r* of the fit ``ratio`` at their C and S.

    ``sparsest`` marks what the paper holds out, S = 97.67 % in its own grid (allocation, sec 4.2).
    """
    rows = inputs.completed
    rows = rows[rows["C"].notna()].reset_index(drop=True)
    C, S = rows["C"].to_numpy(float), rows["S_shared"].to_numpy(float)
    report = inputs.fit("ratio")
    fitted = laws.fittable(report.law)
    return rows.assign(
        N_active=rows["N_active_nonemb"],
        S=S,
        E=rows["E"] + rows["E_s"],
        r_star=fitted.predict(report.part({}).estimates(), {"C": C, "S": S}),
        r_star_published=ratio(C, S),
        sparsest=np.isclose(S, S.max(), rtol=1e-9, atol=0).astype(int),
    )
