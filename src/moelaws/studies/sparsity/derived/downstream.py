"""Scores of the kept runs on tasks beside their loss (sec 4, Fig 5 and 10): a row a run and skill.

A skill is one task, or a group of tasks as their mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from moelaws.analysis.derive import table
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.scores import COLUMNS, GROUP, TASK, mean_of
from moelaws.spec.errors import UserError
from moelaws.tables.column import Column

ABOUT = ["run_id", "C", "S", "d_model", "seed", "L", "L_se"]


@table(
    Column("run_id", "string", "1", "identity of the run"),
    Column("C", "float", "FLOPs", "training budget", True),
    Column("S", "float", "1", "sparsity, (E - k) / E"),
    Column("d_model", "int", "1", "width"),
    Column("seed", "int", "1", "seed of the run"),
    Column("L", "float", "nats/token", "held-out loss"),
    Column("L_se", "float", "nats/token", "its standard error by document", True),
    Column("by", "string", "1", "task: one task; group: the mean of a group's tasks"),
    *COLUMNS,
)
def derive(inputs: Inputs) -> Iterator[dict[str, Any]]:
    """Gives the scores after the last step of each completed run that was scored."""
    for run in inputs.completed.to_dict("records"):
        try:
            scores = inputs.scores(run["run_id"])
        except UserError:  # not among those whose weights are kept
            continue
        last = scores[scores["step"] == scores["step"].max()]
        about = {name: run[name] for name in ABOUT}
        for group, tasks in last.groupby("group", sort=False):
            yield {**about, "by": GROUP, "skill": group, "group": group, **mean_of(tasks)}
            for _, task in tasks.groupby("task", sort=False):
                name = task["task"].iloc[0]
                yield {**about, "by": TASK, "skill": name, "group": group, **mean_of(task)}


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Gives a line where nothing was scored, or where no run is better than guessing."""
    if frame.empty:
        return ["no scores: no completed run's weights are kept"]
    tasks = frame[frame["by"] == TASK]
    guessed = [
        str(skill)
        for skill, rows in tasks.groupby("skill", sort=False)
        if not (rows["error"] + 2 * rows["error_se"] < rows["chance"]).any()
    ]
    if not guessed:
        return []
    return [f"no run is told from guessing by its answers on {', '.join(guessed)}"]
