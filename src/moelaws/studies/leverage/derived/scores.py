"""Scores of the validation pair on tasks over training (Fig 6b and 15, Tables 2 and 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from moelaws.analysis.derive import table
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.scores import ALL, COLUMNS, GROUP, TASK, mean_of
from moelaws.spec.errors import UserError
from moelaws.tables.column import Column


@table(
    Column("run_id", "string", "1", "identity of the run"),
    Column("N_total", "float", "parameters", "total parameters"),
    Column("N_active", "float", "parameters", "parameters that a token passes"),
    Column("S", "float", "1", "sparsity, (E - k) / E"),
    Column("step", "int", "steps", "optimizer steps behind the weights"),
    Column("D", "float", "tokens", "training tokens behind the weights"),
    Column("by", "string", "1", "task: one task; group: the mean of its tasks; all: of all groups"),
    *COLUMNS,
)
def derive(inputs: Inputs, sweep: str) -> Iterator[dict[str, Any]]:
    """Gives the scores of each completed run of ``sweep`` at each step whose weights were kept."""
    for run in inputs.sweep(sweep).sort_values("N_total").to_dict("records"):
        try:
            scores = inputs.scores(run["run_id"])
        except UserError:  # its weights were not kept
            continue
        for step, tasks in scores.groupby("step"):
            about = {name: run[name] for name in ("run_id", "N_total", "N_active", "S")}
            about |= {"step": step, "D": float(tasks["tokens"].iloc[0])}
            yield {**about, "by": ALL, "skill": ALL, "group": ALL, **mean_of(tasks)}
            for group, own in tasks.groupby("group", sort=False):
                yield {**about, "by": GROUP, "skill": group, "group": group, **mean_of(own)}
            for _, one in tasks.groupby("task", sort=False):
                skill, group = one["task"].iloc[0], one["group"].iloc[0]
                yield {**about, "by": TASK, "skill": skill, "group": group, **mean_of(one)}


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Gives a line where nothing was scored."""
    return [] if len(frame) else ["no scores: no completed run of the pair has kept weights"]
