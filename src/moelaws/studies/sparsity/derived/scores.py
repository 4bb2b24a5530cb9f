"""Scores of the kept runs on tasks beside their loss, and what sparsity adds at equal loss (sec 4).

A skill is one task, or a group of tasks as their mean. A score y is regressed on the loss, its
square and v = -ln(1 - S) (Fig 5 and 10, App D.3):

    y = a + b x + q x^2 + c v,  x = L - the middle of the range of L

``slope`` is b. ``shift`` is c times the range of v: how much more the sparsest models score than
the densest ones of equal loss. Divided by b it is ``equivalent``, the rise of the loss in nats that
changes the score as much. The paper draws the relation and states no law; this form is ours.
"""

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Row, Rows, of_kept, of_runs, table
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array
from moelaws.analysis.regression import LEVEL, of_draws
from moelaws.analysis.scores import COLUMNS, MEASURES, by_skill
from moelaws.fitting.quantiles import least_squares
from moelaws.tables.column import COVERAGE, NOTE, RUNS, Column, estimated

FEWEST = 8  # runs, at the least, that four coefficients are fitted to
UNITS = {"error": "1", "bits_per_byte": "bits/byte"}


@table(
    *of_runs("run_id", "C", "S", "d_model", "seed", "L", "L_se"),
    *COLUMNS,
)
def downstream(inputs: Inputs) -> Rows:
    """Yields the scores after the last step of each completed run that was scored."""
    for run, scores in of_kept(inputs.completed, inputs.scores):
        last = scores[scores["step"] == scores["step"].max()]
        yield from (run | row for row in by_skill(last))


@table(
    *COLUMNS[:3],
    Column("measure", "string", "the score: error or bits_per_byte"),
    Column("unit", "string", "of the score"),
    RUNS,
    *estimated("slope", "of the score over the loss in the middle of its range, per nat"),
    Column("S_densest", "float?", "least sparsity"),
    Column("S_sparsest", "float?", "largest sparsity"),
    *estimated("shift", "score of the sparsest less that of the densest"),
    *estimated("equivalent", "rise of the loss that does the same", "nats/token"),
    COVERAGE,
    NOTE,
    told={"note != '' and measure == 'bits_per_byte'": "{skill}: {note}"},
)
def relation(inputs: Inputs) -> Rows:
    """Yields a row for each task and group of tasks, and for each of the two scores."""
    scores = inputs.derived("downstream")
    for (by, skill), rows in scores.groupby(["by", "skill"], sort=False):
        for measure in MEASURES:
            about = {"by": by, "skill": skill, "group": rows["group"].iloc[0], "n": len(rows)}
            about |= {"measure": measure, "unit": UNITS[measure], "level": LEVEL}
            yield about | _relation(rows, measure)


def regressors(rows: pd.DataFrame, L: Array, S: Array) -> Array:
    """Returns the regressors (n, 4) of the runs ``rows`` at losses ``L`` (n,), sparsities ``S``."""
    x = L - (rows["L"].min() + rows["L"].max()) / 2
    return np.column_stack([np.ones_like(x), x, x**2, -np.log1p(-S)])


def regress(rows: pd.DataFrame, measure: str) -> Array | None:
    """Returns the coefficients of a score and their draws, (1 + B, 4).

    None where the runs are too few or too much alike.
    """
    X = regressors(rows, rows["L"].to_numpy(float), rows["S"].to_numpy(float))
    if len(rows) < FEWEST or np.linalg.matrix_rank(X) < X.shape[1]:
        return None
    return least_squares(X, rows[measure])


def _relation(rows: pd.DataFrame, measure: str) -> Row:
    """Returns the numbers of one score's regression, or a note why there are none."""
    fit = regress(rows, measure)
    if fit is None:
        return {"note": f"{len(rows)} runs, of which {FEWEST} must differ in loss and sparsity"}
    slopes, shifts = fit[:, 1], fit[:, 3] * np.ptp(-np.log1p(-rows["S"].to_numpy(float)))
    slope = of_draws(slopes)
    numbers: Row = {"S_densest": rows["S"].min(), "S_sparsest": rows["S"].max()}
    numbers |= {"slope": slope, "shift": of_draws(shifts)}
    # Where the slope may be 0, no rise of the loss is known to change the score as much.
    if not slope.low * slope.high > 0:
        return numbers | {"note": "the score is not told to follow the loss"}
    return numbers | {"equivalent": of_draws(shifts / slopes), "note": ""}
