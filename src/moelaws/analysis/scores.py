"""Scores of kept runs on tasks (``moelaws bench``), as several studies read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def mean_of(tasks: pd.DataFrame) -> dict[str, Any]:
    """Returns the mean scores of ``tasks``, each of which counts once, as independent ones."""

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
