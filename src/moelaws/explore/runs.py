"""All runs of a tier as columns, with their training curves and the load of their experts.

The columns are those of the studies' tables; runs that have no row yet are added.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.explore.material import Data, Material, shortened
from moelaws.records.names import name_of_row
from moelaws.records.runs import Record, flatten, read_record
from moelaws.spec.errors import listed
from moelaws.spec.from_toml import table_beside
from moelaws.tables.describe import describe
from moelaws.tables.parquet import column_metadata, read_study, read_table
from moelaws.tables.schema import TRAINED_COLUMNS

DECLARED = {c.name: (c.unit, c.description) for c in TRAINED_COLUMNS}
OWN = table_beside(__file__)
MAX_POINTS = 200  # of a curve
COLUMNS_OF_CURVES = ("step", "loss", "seconds")
# Column of a table -> key of a run's summary
OF_SUMMARY = {"L": "loss", "L_se": "loss_se", "bpb": "bits_per_byte", "seconds": "wall_seconds"}


@dataclass(frozen=True)
class Runs:
    frame: pd.DataFrame  # a row for each run; ``study`` joins the studies that list it
    units: Mapping[str, tuple[str, str]]  # column -> its unit and its description
    records: Mapping[str, Record]  # run -> its record, of trained runs whose record is whole

    @cached_property
    def row(self) -> dict[tuple[str, str], int]:
        """Returns (study, run) -> its row of the frame."""
        named = zip(self.frame["study"], self.frame["run_id"], strict=True)
        return {
            (study, run): row
            for row, (studies, run) in enumerate(named)
            for study in studies.split(", ")
        }

    def rows_of(self, study: str, table: pd.DataFrame) -> list[int | None]:
        """Returns the row of each run of a study's ``table``; None if the table names no run."""
        if "run_id" not in table:
            return [None] * len(table)
        return [self.row.get((study, str(run))) for run in table["run_id"]]

    def columns(self) -> list[Data]:
        """Returns the columns that are not empty, as the page reads them."""
        return [
            {"name": name, "unit": unit, "description": description, **_encoded(values)}
            for name, values in ((str(name), self.frame[name]) for name in self.frame)
            if values.notna().any()
            for unit, description in [self.units.get(name, ("1", ""))]
        ]

    def details(self) -> list[Data]:
        """Returns the configuration and the provenance of each run, with dotted keys."""
        return [
            {"config": flatten(r.config), "provenance": flatten(r.provenance)} if r else {}
            for r in map(self.records.get, self.frame["run_id"])
        ]


def read_runs(material: Material) -> Runs:
    """Returns the runs of all studies of a tier, and notes what is missing or damaged."""
    units, results, notes = dict(OWN), material.results, material.notes
    # (study, run) -> its row; the study is given only for imported runs
    every: dict[tuple[str, str], Data] = {}
    # Run -> its record, read once; None if the run has no folder
    records: dict[str, Record | None] = {}

    def record(run_id: str) -> Record | None:
        if run_id not in records:
            there = results.run(run_id).is_dir()
            records[run_id] = read_record(results, run_id) if there else None
        return records[run_id]

    for study in material.studies:
        key, path = study.study, material.folder.table(study.study)
        rows: list[dict[Any, Any]] = []
        if (table := material.read(read_study, path)) is not None:
            units, rows = column_metadata(path) | units, table.to_dict("records")
        known = {row["run_id"] for row in rows}
        sweep = material.sweeps.get(key)
        asked = sweep.runs if sweep else ()
        waiting = {run.run_id: run for run in asked if run.run_id not in known}
        for run_id, run in waiting.items():
            if (own := record(run_id)) and not own.damaged:
                done = {n: own.summary.get(name) for n, name in OF_SUMMARY.items()}
                done |= {"tier": material.project.tier, "source": "trained", "C": run.C}
                rows.append({**describe(run), **done, "status": own.status})
        if unstarted := sum(record(run_id) is None for run_id in waiting):
            notes.append(
                f"Of the {len(asked)} runs in the grid of the study {key}, {unstarted} did not "
                "start yet."
            )
        for row in rows:
            run_id, source = str(row["run_id"]), row["source"]
            place = key if source == "imported" else "", run_id
            if place in every:  # another study lists it too
                every[place]["study"] += f", {key}"
            else:
                more = _of_record(record(run_id) if source == "trained" else None)
                named = {"run_id": run_id, "name": name_of_row(row), "study": key}
                every[place] = {**row, **more, **named}
    frame = pd.DataFrame([*every.values()])
    frame = pd.DataFrame(columns=["run_id", "study", "status"]) if frame.empty else frame
    whole = {run: own for run, own in records.items() if own and not own.damaged}
    if damaged := [run for run, own in records.items() if own and own.damaged]:
        notes.append(
            f"These records are damaged and left out ({len(damaged)}): {listed(damaged, 5)}. "
            "`moelaws verify` says what is wrong."
        )
    if missing := [run for run in frame["run_id"] if run in records and not records[run]]:
        notes.append(
            f"{results.runs} has no record of these runs ({len(missing)}), so "
            f"their configuration and training curve are not shown: {listed(missing, 5)}."
        )
    return Runs(frame, DECLARED | units, whole)


def _of_record(record: Record | None) -> Data:
    """Returns the values of an undamaged record that a table's row does not have."""
    if record is None or record.damaged:
        return {}
    known = {
        "steps_done": record.summary.get("steps"),
        "started": record.provenance.get("started"),
        "message": record.summary.get("message"),
        "tags": record.annotations.text,
        "note": record.annotations.note,
    }
    return {name: value for name, value in known.items() if value not in (None, "")}


def _encoded(values: pd.Series) -> Data:
    """Returns a column as numbers, or its texts as levels and codes."""
    kept = values[values.notna()]
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if numeric or all(isinstance(x, int | float) and not isinstance(x, bool) for x in kept):
        numbers = pd.to_numeric(values).to_numpy(dtype=float, na_value=np.nan)
        return {"type": "number", "values": numbers.tolist()}
    codes, levels = pd.factorize(values)
    return {"type": "text", "levels": [str(x) for x in levels], "codes": codes.tolist()}


def thinned(n: int) -> NDArray[np.intp]:
    """Returns indices of at most ``MAX_POINTS`` of ``n`` points, with the first and the last."""
    if n <= MAX_POINTS:
        return np.arange(n)
    # They lie closer at the beginning, where a loss falls fast.
    return np.unique(np.round((n - 1) * np.linspace(0, 1, MAX_POINTS) ** 2).astype(np.intp))


def curves(material: Material, runs: Runs) -> list[dict[str, list[float]]]:
    """Returns the training curve of each run, in columns that may be empty."""
    every = [_curve(material, run) if run in runs.records else None for run in runs.frame["run_id"]]
    return [
        {name: [] if curve is None else shortened(curve[name]) for name in COLUMNS_OF_CURVES}
        for curve in every
    ]


def _curve(material: Material, run: str) -> pd.DataFrame | None:
    """Returns some steps of a run, up to now if it is still training."""
    results = material.results
    for path in (results.run(run) / "history.parquet", results.history_so_far(run)):
        frame = material.read(read_table, path)
        if frame is not None:
            return frame.iloc[thinned(len(frame))] if set(COLUMNS_OF_CURVES) <= set(frame) else None
    return None


def load(material: Material, runs: Runs) -> list[list[list[float]]]:
    """Returns the fraction of tokens of each expert in the last validation, by run and layer."""
    return [
        [*map(shortened, _load(material, run))] if run in runs.records else []
        for run in runs.frame["run_id"]
    ]


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
