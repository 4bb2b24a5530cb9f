"""What an experiment tracker gets of a run; it is the same for all trackers.

A parameter is a column of the study's table or a key of the configuration, ``train/loss`` is a
column of the run's history over its steps, ``load/cv/layer1`` one of its experts' load, and
``final/L`` a number of its summary.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pyarrow as pa

from moelaws.files.layout import Results
from moelaws.files.parquet import read_parquet
from moelaws.grids.expand import Run
from moelaws.grids.sweep import expand_study
from moelaws.records.names import name_of
from moelaws.records.progress import Report
from moelaws.records.runs import Annotations, Record, flatten
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project, chosen_studies
from moelaws.spec.run import RunConfig
from moelaws.tables.describe import describe

ENDED = ("completed", "diverged")  # the states whose result will not change
FILES = ("config.json", "summary.json", "provenance.json", "log")
_LOAD = ("cv", "entropy", "kl", "overflow", "unused", "never_used")
# Name of a final number -> key of the summary.
_FINAL = {
    "L": "loss",
    "L_se": "loss_se",
    "bits_per_byte": "bits_per_byte",
    "L_train": "train_loss",
    "epochs": "epochs",
    "tokens": "tokens",
    "seconds": "wall_seconds",
    "tokens_per_second": "tokens_per_second",
    "peak_memory": "peak_memory_bytes",
    **{f"balance_{name}": f"balance.{name}" for name in ("cv", "entropy", "kl")},
    **{name: f"balance.{name}" for name in ("overflow", "unused", "never_used")},
}


@dataclass(frozen=True)
class Place:
    """Where a run stands in a grid: the study, the tier, and the budget and sweeps of its point.

    Runs that are in no chosen study go to the study ``moelaws``.
    """

    study: str = "moelaws"
    tier: str = ""
    C: float | None = None
    sweeps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Point:
    """What was measured at one step."""

    step: int  # optimizer steps done
    time: float  # in seconds since 1970, as if the run had never been interrupted
    values: Mapping[str, float]  # name -> value, in the units of the run's files


@dataclass(frozen=True)
class TrackedRun:
    """A run of one study, as a tracker gets it."""

    run_id: str
    place: Place
    label: str  # tells it from others of its study, such as ``d48 E32 2e11 s0 · 3fb1c02d``
    status: str
    # Columns of the study's table that follow from the configuration, and keys of the
    # configuration, such as ``config.model.d_model`` -> value; a list is JSON.
    parameters: Mapping[str, Any]
    points: list[Point]  # by step; the final numbers stand at the last one
    final: Mapping[str, float]  # name -> number of the summary
    files: list[Path]  # of the record
    tags: Mapping[str, str]
    annotations: Annotations
    started: float  # in seconds since 1970
    seconds: float  # of training and evaluation

    @classmethod
    def of(cls, record: Record, results: Results, place: Place) -> Self:
        """Returns a run that completed or diverged.

        A configuration that this version does not know is refused, and so is a damaged record.
        """
        folder = results.run(record.run_id)
        config = parse(RunConfig, record.config, folder / "config.json")
        run = Run(record.run_id, config, place.C, place.sweeps)
        sizes = {k: v for k, v in describe(run).items() if k not in ("run_id", "sweep", "corpus")}
        summary, started = flatten(record.summary), _started(record, folder)
        numbers = {key: float(x) for key, x in summary.items() if type(x) in (int, float)}
        final = {name: numbers[key] for name, key in _FINAL.items() if key in numbers}
        values = {**sizes, "C": place.C, **flatten({"config": config.model_dump(mode="json")})}
        parameters = {
            name: value if isinstance(value, str | int | float) else json.dumps(value)
            for name, value in values.items()
            if value is not None
        }
        return cls(
            record.run_id,
            place,
            f"{name_of(config)} · {record.run_id[:8]}",
            record.status,
            parameters,
            _points(folder, int(summary.get("steps", config.steps)), started, final),
            final,
            [path for name in FILES if (path := folder / name).is_file()],
            _tags(record, place),
            record.annotations,
            started,
            float(summary.get("wall_seconds", 0.0)),
        )

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]


def places_of(project: Project) -> dict[str, list[Place]]:
    """Returns run -> its places in the chosen studies, each of which must have the tier's grid."""
    places: dict[str, list[Place]] = {}
    for study in chosen_studies(project):
        for run in expand_study(study, project).runs:
            place = Place(study.study, project.tier, run.C, run.sweeps)
            places.setdefault(run.run_id, []).append(place)
    return places


def export(
    records: Iterable[Record],
    results: Results,
    places: Mapping[str, list[Place]] | None,
    write: Callable[[TrackedRun], object],
    report: Report,
    named: bool = False,
) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Writes each run among ``records`` that has ended, once for each study that has it.

    ``places`` maps runs to their places in studies. Runs of no study are written, too, if it is
    None, as without a project, or if the user ``named`` the runs. ``write`` makes a tracker hold a
    run as it is now, in place of what it held of that run. Returns the study and the id of each run
    that was written, and run -> why it was left out.
    """
    records = list(records)
    written: list[tuple[str, str]] = []
    left_out: dict[str, str] = {}
    for number, record in enumerate(records, 1):
        report("export", number, len(records), f"{number}/{len(records)} runs")
        in_studies = (places or {}).get(record.run_id, [])
        if record.status not in ENDED:
            left_out[record.run_id] = record.status.replace("_", " ")
        elif not in_studies and places is not None and not named:
            left_out[record.run_id] = "no chosen study asks for it at this tier"
        else:
            try:
                for place in in_studies or [Place()]:
                    write(TrackedRun.of(record, results, place))
                    written.append((place.study, record.run_id))
            except UserError as error:
                left_out[record.run_id] = str(error)
    return written, left_out


def _points(folder: Path, last: int, started: float, final: Mapping[str, float]) -> list[Point]:
    values: dict[int, dict[str, float]] = {}
    steps, seconds = [0], [0.0]
    if (path := folder / "history.parquet").is_file():
        history = _columns(read_parquet(path), path, "step", "seconds")
        steps, seconds = [*steps, *history["step"]], [*seconds, *history["seconds"]]
        for step, row in zip(history.pop("step"), history.to_dict("records"), strict=True):
            values[step] = {f"train/{name}": value for name, value in row.items()}
    if (path := folder / "load.parquet").is_file():
        load = _columns(read_parquet(path), path, "validation", "step", "layer", *_LOAD)
        for row in load[load["validation"] == 0].to_dict("records"):
            own = {f"load/{name}/layer{row['layer']}": row[name] for name in _LOAD}
            values.setdefault(row["step"], {}).update(own)
    last = max([last, *values])
    values.setdefault(last, {}).update({f"final/{k}": value for k, value in final.items()})
    ordered = sorted(values)
    times = (started + np.interp(ordered, steps, seconds)).tolist()
    return [Point(step, at, values[step]) for step, at in zip(ordered, times, strict=True)]


def _columns(table: pa.Table, path: Path, *needed: str) -> pd.DataFrame:
    """Returns the columns of a table that hold no lists; those ``needed`` must be there."""
    if missing := [name for name in needed if name not in table.column_names]:
        raise UserError(f"{path} has no column {missing[0]}")
    plain = [name for name in table.column_names if not pa.types.is_nested(table[name].type)]
    frame: pd.DataFrame = table.select(plain).to_pandas()
    return frame


def _started(record: Record, folder: Path) -> float:
    """Returns when the run began, in seconds since 1970, or else when its summary was written."""
    try:
        return datetime.fromisoformat(record.provenance["started"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return (folder / "summary.json").stat().st_mtime


def _tags(record: Record, place: Place) -> dict[str, str]:
    provenance = record.provenance
    tags = {
        "run_id": record.run_id,
        "study": place.study,
        "tier": place.tier,
        "sweep": ",".join(place.sweeps),
        "status": record.status,
        "commit": provenance.get("commit") or "",
        "changed_since_commit": "yes" if provenance.get("dirty") else "",
        "code": provenance.get("code") or "",
        "message": record.summary.get("message") or "",
    }
    return {name: str(value) for name, value in tags.items() if value}
