"""Tables of the runs that the joint law is fitted to in one stage, and of the pair's scores."""

from collections.abc import Sequence

import pandas as pd

from moelaws.analysis.derive import Rows, of_kept, of_runs, table
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.scores import ALL, COLUMNS, by_skill, mean_of
from moelaws.studies.leverage.derived.series import at_best_size
from moelaws.tables.column import Column

ARCHITECTURE = ["C", "E", "k", "E_s"]  # of a sweep at a budget


@table(
    *of_runs("run_id", "status", "trunk"),
    Column("sweep", "string", "those of the sweeps in which the run has the best size"),
    *of_runs("C", "C_leverage_no_router", "C_leverage", "n_layers", "d_model", "A", "E", "k"),
    *of_runs("E_s", "S", "G", "L"),
)
def losses(inputs: Inputs, sweeps: Sequence[str]) -> Rows:
    """Returns the runs of the best size of each architecture of ``sweeps`` at each C (App K)."""
    best = [at_best_size(inputs.sweep(name), ARCHITECTURE).assign(sweep=name) for name in sweeps]
    runs = pd.concat(best)
    names = runs.groupby("run_id")["sweep"].transform(",".join)
    return runs.assign(sweep=names).drop_duplicates("run_id").reset_index(drop=True)


@table(
    *of_runs("run_id", "N_total", "N_active", "S"),
    Column("step", "int", "optimizer steps behind the weights", "steps"),
    Column("D", "float", "training tokens behind the weights", "tokens"),
    *COLUMNS,
)
def scores(inputs: Inputs, sweep: str) -> Rows:
    """Yields the scores of each completed run of ``sweep`` at each step whose weights were kept."""
    for run, scores in of_kept(inputs.sweep(sweep).sort_values("N_total"), inputs.scores):
        for step, tasks in scores.groupby("step"):
            about = {**run, "step": step, "D": float(tasks["tokens"].iloc[0])}
            yield {**about, "by": ALL, "skill": ALL, "group": ALL, **mean_of(tasks)}
            yield from (about | row for row in sorted(by_skill(tasks), key=lambda r: r["by"]))
