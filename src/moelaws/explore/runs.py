"""All runs of a tier as columns: the rows of the studies' tables, and runs without a row yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd

from moelaws.explore.encode import floats, integers
from moelaws.explore.material import Material
from moelaws.explore.words import count
from moelaws.grids.expand import Run
from moelaws.grids.sweep import expand_study
from moelaws.records.runs import Record, flatten, read_record
from moelaws.spec.study import Study
from moelaws.tables.describe import describe
from moelaws.tables.parquet import column_metadata, read_study
from moelaws.tables.schema import TRAINED_COLUMNS

DECLARED = {c.name: (c.unit, c.description) for c in TRAINED_COLUMNS}
# Columns that the page has beside those of the tables.
OWN = {
    "steps_done": ("steps", "optimizer steps done so far"),
    "started": ("1", "when the run's last attempt began"),
    "message": ("1", "what the trainer said of a run that failed"),
    "tags": ("1", "tags that people gave to the run"),
    "note": ("1", "what people wrote of the run"),
}


@dataclass(frozen=True)
class Runs:
    """The runs of a tier.

    Attributes:
        frame: a row a run; ``study`` joins the studies that ask for it.
        units: column -> its unit and its description.
        records: run -> its record, of trained runs whose record is whole.
        tables: study -> its table, of the studies that have one.
        asked: study -> how many runs its grid asks for at this tier.
    """

    frame: pd.DataFrame
    units: Mapping[str, tuple[str, str]]
    records: Mapping[str, Record]
    tables: Mapping[str, pd.DataFrame]
    asked: Mapping[str, int]

    @cached_property
    def row(self) -> dict[tuple[str, str], int]:
        """(study, run) -> its row of the frame."""
        return {
            (study, run): row
            for row, (studies, run) in enumerate(
                zip(self.frame["study"], self.frame["run_id"], strict=True)
            )
            for study in studies.split(", ")
        }

    def rows_of(self, study: str, table: pd.DataFrame) -> list[int | None]:
        """Returns the row of each run of a study's ``table``; None where it does not name one."""
        if "run_id" not in table:
            return [None] * len(table)
        return [self.row.get((study, str(run))) for run in table["run_id"]]

    def columns(self) -> list[dict[str, Any]]:
        """Returns the columns that hold anything, as the page reads them."""
        every = [(str(name), self.frame[name]) for name in self.frame]
        return [
            {"name": name, "unit": unit, "description": description, **_encoded(values)}
            for name, values in every
            if values.notna().any()
            for unit, description in [self.units.get(name, ("1", ""))]
        ]

    def details(self) -> list[dict[str, Any]]:
        """Returns the configuration and the provenance of each run, with dotted keys."""
        known = [self.records.get(run) for run in self.frame["run_id"]]
        return [
            {"config": flatten(r.config), "provenance": flatten(r.provenance)} if r else {}
            for r in known
        ]


def read_runs(material: Material) -> Runs:
    """Returns the runs of all studies of a tier; notes what is missing or damaged."""
    tables: dict[str, pd.DataFrame] = {}
    units: dict[str, tuple[str, str]] = dict(OWN)
    asked: dict[str, int] = {}
    records: dict[str, Record | None] = {}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for study in material.studies:
        path = material.folder.table(study.study)
        table = material.read(read_study, path)
        if table is not None:
            tables[study.study] = table
            units = column_metadata(path) | units
            for row in _of_table(material, table, records):
                _join(rows, study, row)
        sweep = _sweep(material, study)
        asked[study.study] = len(sweep) if sweep else 0 if table is None else len(table)
        for run in sweep:
            if (study.study, run.run_id) not in rows:
                found = _under_way(material, study, run, records)
                if found is not None:
                    _join(rows, study, found)
    frame = pd.DataFrame(_once(rows))
    frame = pd.DataFrame(columns=["run_id", "study", "status"]) if frame.empty else frame
    whole = {run: record for run, record in records.items() if record and not record.damaged}
    _note_records(material, records, frame)
    _note_unstarted(material, asked, frame)
    return Runs(frame, DECLARED | units, whole, tables, asked)


def _of_table(
    material: Material, table: pd.DataFrame, records: dict[str, Record | None]
) -> Iterator[dict[str, Any]]:
    """Yields the rows of a study's table, with what the runs' records say beside it."""
    for row in table.to_dict("records"):
        found = None
        if row["source"] == "trained":
            found = _record(material, str(row["run_id"]), records)
        yield {**{str(name): value for name, value in row.items()}, **_of_record(found)}


def _under_way(
    material: Material, study: Study, run: Run, records: dict[str, Record | None]
) -> dict[str, Any] | None:
    """Returns the row of a run that the table lacks; None where it did not start or is damaged."""
    record = _record(material, run.run_id, records)
    if record is None or record.damaged:
        return None
    summary = record.summary
    loss = {"L": "loss", "L_se": "loss_se", "bpb": "bits_per_byte", "seconds": "wall_seconds"}
    return {
        **describe(run),
        "tier": material.project.tier,
        "source": "trained",
        "status": record.status,
        "C": run.C,
        **{name: summary[key] for name, key in loss.items() if key in summary},
        **_of_record(record),
    }


def _record(material: Material, run_id: str, records: dict[str, Record | None]) -> Record | None:
    """Returns the record of a run, read once; None where the run has no folder."""
    if run_id not in records:
        there = material.results.run(run_id).is_dir()
        records[run_id] = read_record(material.results, run_id) if there else None
    return records[run_id]


def _of_record(record: Record | None) -> dict[str, Any]:
    """Returns what a whole record says beside a table's row."""
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


def _sweep(material: Material, study: Study) -> tuple[Run, ...]:
    """Returns the runs that the study's grid asks for; none where they cannot be told."""
    if material.simulated or material.project.tier not in study.grids:
        return ()
    sweep = material.attempt(partial(expand_study, study, material.project))
    return sweep.runs if sweep else ()


def _join(rows: dict[tuple[str, str], dict[str, Any]], study: Study, row: dict[str, Any]) -> None:
    rows[study.study, str(row["run_id"])] = row


def _once(rows: Mapping[tuple[str, str], dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns each run once, with the studies that ask for it; an imported run is its study's."""
    once: dict[tuple[str, str], dict[str, Any]] = {}
    for (study, run), row in rows.items():
        key = study if row["source"] == "imported" else "", run
        if key in once:
            once[key]["study"] += f", {study}"
        else:
            once[key] = {**row, "run_id": run, "study": study}
    return list(once.values())


def _encoded(values: pd.Series) -> dict[str, Any]:
    """Returns a column's numbers, or its texts as levels and their codes."""
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        return {"type": "number", "values": floats(numbers, bits=64)}
    kept = values[values.notna()]
    if len(kept) and all(isinstance(x, int | float) and not isinstance(x, bool) for x in kept):
        return {"type": "number", "values": floats(pd.to_numeric(values), bits=64)}
    codes, levels = pd.factorize(values)
    return {"type": "text", "levels": [str(x) for x in levels], "codes": integers(codes)}


def _note_records(
    material: Material, records: Mapping[str, Record | None], frame: pd.DataFrame
) -> None:
    damaged = [run for run, record in records.items() if record and record.damaged]
    shown = set(frame["run_id"])  # the others did not start
    missing = [run for run, record in records.items() if record is None and run in shown]
    if damaged:
        material.notes.append(
            f"Damaged, and so left out: {_some(damaged)} ({count(len(damaged), 'record')}). "
            "`moelaws verify` says what is wrong."
        )
    if missing:
        material.notes.append(
            f"Without a record below {material.results.runs}: {count(len(missing), 'run')}, whose "
            "configuration and training curve are not shown."
        )


def _note_unstarted(material: Material, asked: Mapping[str, int], frame: pd.DataFrame) -> None:
    for study, wanted in asked.items():
        known = sum(study in studies.split(", ") for studies in frame["study"])
        if known < wanted:
            material.notes.append(
                f"Of the {count(wanted, 'run')} that the study {study} asks for {wanted - known} "
                "did not start yet."
            )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
