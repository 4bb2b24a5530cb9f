"""The training time of plans, by the speed of a user's own runs over size and sparsity."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from moelaws.analysis.advice.plans import Plans
from moelaws.analysis.inputs import completed, read_runs
from moelaws.files.atomic import read_json
from moelaws.files.layout import Results
from moelaws.laws.base import Array
from moelaws.spec.errors import UserError, located

_COLUMNS = ("N_active", "S", "tokens_per_second")
_REWEIGHTED = 30  # rounds of least squares, each weighted by the residuals of the one before
_MIN_RUNS = 8  # for a speed over size and sparsity


@dataclass(frozen=True)
class Speed:
    """FLOP/s of trainings on one device, 6 N_active D over the seconds of the training loop."""

    device: str  # that the runs were trained on
    runs: int  # how many were measured
    coefficients: Array  # (3,) of ln FLOP/s: a constant, over ln N_active, over -ln(1 - S)
    ends: Array  # (2, 2) least and largest measured ln N_active and -ln(1 - S)

    def hours(self, plan: Plans) -> float:
        """Returns the hours of one device; beyond the measured runs the nearest speed counts."""
        ln_speed = self.coefficients @ np.array([1.0, *np.clip(_place(plan), *self.ends.T)])
        return float(6 * plan.N_active * plan.D / np.exp(ln_speed) / 3600)

    def beyond(self, plan: Plans) -> bool:
        """Tells whether a plan lies beyond the measured sizes or sparsities."""
        (low, high), place = self.ends.T, _place(plan)
        return bool(((place < low - 1e-9) | (place > high + 1e-9)).any())


def _place(plan: Plans) -> Array:
    return np.array([np.log(plan.N_active), -np.log1p(-plan.S)])


def measured(table: Path) -> Speed:
    """Returns the speed of the completed runs of a study's ``table``, all of one device."""
    runs = completed_runs(table, "run_id")
    with located(table):
        speed = of_runs(runs, f"the device of {table.name}")
        devices = sorted({_device(table, run_id, speed.device) for run_id in runs["run_id"]})
        if len(devices) > 1:
            raise UserError(f"its runs were trained on several devices: {', '.join(devices)}")
    return replace(speed, device=devices[0])


def completed_runs(table: Path, *columns: str) -> pd.DataFrame:
    """Returns the completed runs of a study's ``table``, which must have the ``columns``."""
    frame = read_runs(table)
    assert frame is not None
    with located(table):
        _require(frame, columns)
    return completed(frame)


def _require(frame: pd.DataFrame, columns: Iterable[str]) -> None:
    if missing := [name for name in columns if name not in frame]:
        raise UserError(f"the column {missing[0]} is missing: this is no table of a study")


def of_runs(runs: pd.DataFrame, device: str = "") -> Speed:
    """Returns the speed of completed ``runs``, all of one ``device``, which may have no name.

    ln FLOP/s is linear in ln N_active and -ln(1 - S), so that a mixture may be slower than a dense
    model of the same active size. Its absolute deviations are least, so that some runs which shared
    their device with other work hardly count. A missing column or too few runs are a UserError.
    """
    _require(runs, _COLUMNS)
    runs = runs[(runs["tokens_per_second"] > 0) & (runs["N_active"] > 0) & (runs["S"] < 1)]
    if len(runs) < _MIN_RUNS:
        raise UserError(
            f"{len(runs)} completed runs have a measured speed (tokens_per_second), and "
            f"{_MIN_RUNS} are needed"
        )
    x = np.column_stack([np.log(runs["N_active"]), -np.log1p(-runs["S"])])
    ln_speed = np.log(6 * (runs["N_active"] * runs["tokens_per_second"]).to_numpy(float))
    design, weights = np.column_stack([np.ones(len(x)), x]), np.ones(len(x))
    for _ in range(_REWEIGHTED):
        coefficients = np.linalg.lstsq(weights[:, None] * design, weights * ln_speed, rcond=None)[0]
        weights = 1 / np.sqrt(np.maximum(np.abs(ln_speed - design @ coefficients), 1e-4))
    return Speed(device, len(runs), coefficients, np.column_stack([x.min(0), x.max(0)]))


def _device(table: Path, run_id: str, unknown: str) -> str:
    """Returns the device of a run recorded in the same ``results/``; ``unknown`` if it is not."""
    root = next((folder for folder in table.absolute().parents if folder.name == "results"), None)
    record = Results(root).run(run_id) / "provenance.json" if root else None
    if record is None or not record.is_file():
        return unknown
    made_by = read_json(record)
    device, threads = str(made_by.get("device", "")), made_by.get("threads", 1)
    cores = "one core" if threads == 1 else f"{threads} cores"
    return f"{cores} of {made_by.get('cpu', 'a CPU')}" if device == "cpu" else device
