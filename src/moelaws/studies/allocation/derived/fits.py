"""Tables that follow from the fits of r*: r* beside each run's ratio, and the second stage."""

from itertools import product

import numpy as np

from moelaws.analysis.derive import Row, Rows, of_runs, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.fitting.fit import fit
from moelaws.fitting.report import estimates_table
from moelaws.spec.errors import UserError, located
from moelaws.spec.fit import Fit
from moelaws.studies.allocation.laws import ratio
from moelaws.tables.column import COVERAGE, NOTE, Column, estimated

LAWS = {"alpha_r": ratio.VARIANTS["stage2_alpha"], "beta_r": ratio.VARIANTS["stage2_beta"]}


@table(
    *of_runs("run_id", "seed", "C", "N_total", "N_total_nonemb", "D", "r"),
    Column("N_active", "float", "active parameters without embeddings", "parameters"),
    Column("S", "float", "sparsity with shared experts in E and k, 1 - A"),
    Column("E", "float", "experts a layer, shared ones included", "experts"),
    Column("r_star", "float", "r* at the run's C and S, by the fit to these runs"),
    Column("r_star_published", "float", "r* there by the paper's coefficients"),
    # What the paper holds out, S = 97.67 % in its own grid (allocation, sec 4.2)
    Column("sparsest", "int", "1 for runs of the largest sparsity, else 0"),
    *of_runs("L", "L_se"),
)
def runs(inputs: FittedInputs) -> Rows:
    """Lists completed runs that name a budget, with r* of the fit ``ratio`` at their C and S."""
    rows = inputs.completed
    rows = rows[rows["C"].notna()].reset_index(drop=True)
    C, S = rows["C"].to_numpy(float), rows["S_shared"].to_numpy(float)
    return rows.assign(
        N_active=rows["N_active_nonemb"],
        S=S,
        E=rows["E"] + rows["E_s"],
        r_star=inputs.predict("ratio", C=C, S=S),
        r_star_published=ratio.ratio(C, S),
        sparsest=np.isclose(S, S.max(), rtol=1e-9, atol=0).astype(int),
    )


@table(
    Column("selection", "string", "the fit whose r* stand behind it: raw or adjusted"),
    Column("coefficient", "string", "of r* = alpha_r C^beta_r: alpha_r or beta_r"),
    Column("parameter", "string", "prefactor, or exponent of 1 - S"),
    *estimated("estimate", "from the coefficient at each sparsity", "1", ""),
    Column("published", "float", "the paper's value"),
    COVERAGE,
    Column("n", "int", "sparsities that it rests on"),
    NOTE,
    told={"note != ''": "{coefficient} over 1-S ({selection}): {note}"},
)
def stages(inputs: FittedInputs) -> Rows:
    """Fits lines of ln alpha_r and ln beta_r in ln(1 - S), for each declared fit split by S.

    A beta_r that is not positive has no logarithm: it is left out, and the note says so. Intervals
    are Student's t of the line's residuals. Source: allocation, sec 3.3 and Fig 2b, 2c.
    """
    for name, (coefficient, law) in product(sorted(inputs.fits), LAWS.items()):
        report = inputs.fit(name)
        table = estimates_table(report)
        positive = table[table[coefficient] > 0]
        dropped = len(table) - len(positive)
        note = f"{dropped} of {len(table)} sparsities have {coefficient} <= 0" if dropped else ""
        spec = Fit(name=f"{name}_{coefficient}", law=law.ref, mapping={}, level=report.level)
        params: Row = {}
        try:
            with located("table"):
                params = dict(fit(law, positive, spec).parts[0].params)
        except UserError as error:
            note = "; ".join(filter(None, (note, str(error))))
        for parameter in law.names:
            yield {
                "selection": name.removeprefix("ratio_"),
                "coefficient": coefficient,
                "parameter": parameter,
                **(vars(params[parameter]) if params else {}),
                "published": (law.published or {})[parameter],
                "level": report.level,
                "n": len(positive),
                "note": note,
            }
