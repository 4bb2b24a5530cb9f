"""The course of training: each run's loss over its steps, and its experts' load at the end."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.explore.encode import floats, integers
from moelaws.explore.material import Material
from moelaws.explore.runs import Runs
from moelaws.tables.parquet import read_table

MAX_POINTS = 200  # of a curve
COLUMNS = ("step", "loss", "seconds")


def thinned(n: int, points: int = MAX_POINTS) -> NDArray[np.intp]:
    """Returns the indices of at most ``points`` of ``n`` points, with the first and the last.

    They lie closer at the beginning, where a loss falls fast.
    """
    if n <= points:
        return np.arange(n)
    return np.unique(np.round((n - 1) * np.linspace(0, 1, points) ** 2).astype(np.intp))


def curves(material: Material, runs: Runs) -> dict[str, Any]:
    """Returns the training curves of all runs, one after the other; some may be empty."""
    every = [_curve(material, run) if run in runs.records else None for run in runs.frame["run_id"]]
    known = [curve for curve in every if curve is not None]
    step, loss, seconds = (_joined(c[name].to_numpy(float) for c in known) for name in COLUMNS)
    return {
        "offset": _offsets(0 if curve is None else len(curve) for curve in every),
        "step": floats(step),
        "loss": floats(loss),
        "seconds": floats(seconds),
    }


def _curve(material: Material, run: str) -> pd.DataFrame | None:
    """Returns some steps of a run, up to now if it is still training."""
    results = material.results
    for path in (results.run(run) / "history.parquet", results.history_so_far(run)):
        frame = material.read(read_table, path)
        if frame is not None:
            return frame.iloc[thinned(len(frame))] if set(COLUMNS) <= set(frame) else None
    return None


def load(material: Material, runs: Runs) -> dict[str, Any]:
    """Returns the fraction of tokens of each expert of each layer in the last validation.

    It is that of all runs, one after the other.
    """
    loads = [_load(material, run) if run in runs.records else [] for run in runs.frame["run_id"]]
    return {
        "layers": integers([len(layers) for layers in loads]),
        "experts": integers([len(layers[0]) if layers else 0 for layers in loads]),
        "offset": _offsets(sum(map(len, layers)) for layers in loads),
        "share": floats(_joined(row for layers in loads for row in layers)),
    }


def _load(material: Material, run: str) -> list[NDArray[np.float64]]:
    """Returns the fractions (E,) of each layer with experts; empty if no file holds them."""
    frame = material.read(read_table, material.results.run(run) / "load.parquet")
    if frame is None or not {"validation", "step", "layer", "assignments"} <= set(frame):
        return []
    held_out = frame[frame["validation"].astype(bool)]
    frame = held_out if len(held_out) else frame
    last = frame[frame["step"] == frame["step"].max()].sort_values("layer")
    counts = [np.asarray(row, dtype=float) for row in last["assignments"]]
    if len({len(row) for row in counts}) != 1:
        return []
    return [row / max(row.sum(), 1.0) for row in counts]


def _offsets(lengths: Iterable[int]) -> str:
    """Returns where each run's points begin, and where the last one's end."""
    return integers(np.cumsum([0, *lengths]))


def _joined(arrays: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate([np.empty(0), *arrays])
