"""Which runs of a sweep keep their final weights."""

from __future__ import annotations

import math

from moelaws.grids.sweep import Sweep
from moelaws.spec.errors import located
from moelaws.spec.rows import select
from moelaws.tables.describe import describe


def kept_runs(sweep: Sweep) -> list[str]:
    """Returns the runs that the study's ``keep_weights`` selects, by columns known before training.

    Raises:
        UserError: for an expression that does not parse, or a column that is not there by then.
    """
    expression = sweep.study.keep_weights
    if not expression.strip():
        return []
    kept = []
    for run in sweep.runs:
        known = {**describe(run), "C": run.C}
        columns = {
            n: math.nan if v is None else v for n, v in known.items() if not isinstance(v, str)
        }
        with located(sweep.study.file, "keep_weights"):
            if select(columns, expression):
                kept.append(run.run_id)
    return kept
