"""Which runs of a sweep keep their weights, and at which steps."""

import math

from moelaws.grids.sweep import Sweep
from moelaws.spec.errors import located
from moelaws.spec.rows import select
from moelaws.tables.describe import describe


def kept_runs(sweep: Sweep) -> dict[str, tuple[int, ...]]:
    """Returns the runs that ``keep_weights`` selects by the columns that are known before training.

    Each has the steps before its last one whose weights are kept, too.
    """
    keep = sweep.study.keep_weights
    if not keep.keeps_any(sweep.tier):
        return {}
    kept = {}
    for run in sweep.runs:
        if keep.sweep and keep.sweep not in run.sweeps:
            continue
        known = {**describe(run), "C": run.C}
        columns = {
            n: math.nan if v is None else v for n, v in known.items() if not isinstance(v, str)
        }
        with located(sweep.study.file, "keep_weights"):
            if select(columns, keep.rows):
                kept[run.run_id] = keep.steps_of(run.config.steps)
    return kept
