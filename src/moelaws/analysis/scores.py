"""Scores of kept runs on tasks (``moelaws bench``), as several studies read them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from moelaws.spec.from_toml import table_beside
from moelaws.tables.column import stated

# What a row is about, in the column ``by``; all is the mean of all tasks.
TASK, GROUP, ALL = "task", "group", "all"
COLUMNS = stated(table_beside(__file__))
# Column of a score -> the axis of a figure that shows it.
MEASURES = {"error": "error (share of wrong answers)", "bits_per_byte": "right answer (bits/byte)"}


def by_skill(tasks: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yields the scores of each group of ``tasks``, as their mean, and of each task in it."""
    for group, own in tasks.groupby("group", sort=False):
        yield {"by": GROUP, "skill": group, "group": group, **mean_of(own)}
        for skill, one in own.groupby("task", sort=False):
            yield {"by": TASK, "skill": skill, "group": group, **mean_of(one)}


def mean_of(tasks: pd.DataFrame) -> dict[str, Any]:
    """Returns the mean scores of ``tasks``, with equal weights and independent errors."""

    def error(name: str) -> float:
        return float(np.sqrt(np.square(tasks[name]).sum(min_count=len(tasks))) / len(tasks))

    return {
        "tasks": len(tasks),
        "items": int(tasks["items"].sum()),
        "chance": 1 - float(tasks["chance"].mean()),
        "error": 1 - float(tasks["accuracy"].mean()),
        "error_se": error("accuracy_se"),
        "bits_per_byte": float(tasks["bits_per_byte"].mean()),
        "bits_per_byte_se": error("bits_per_byte_se"),
    }
