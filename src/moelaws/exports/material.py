"""What an experiment tracker gets of a run; it is the same for all trackers.

A parameter is a column of the study's table or a key of the configuration, ``train/loss`` is a
column of the run's history over its steps, ``load/cv/layer1`` one of its experts' load, and
``final/L`` a number of its summary.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import pyarrow as pa

from moelaws.files.atomic import replacing_folder
from moelaws.files.layout import Results
from moelaws.files.lock import one_at_a_time
from moelaws.files.parquet import read_parquet
from moelaws.grids.expand import Run
from moelaws.grids.sweep import expand_study
from moelaws.records.names import name_of
from moelaws.records.progress import Report
from moelaws.records.runs import Annotations, Record, flatten
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.from_toml import table_beside
from moelaws.spec.project import Project, chosen_studies
from moelaws.spec.run import RunConfig
from moelaws.tables.describe import describe

ENDED = ("completed", "diverged")  # the states whose result will not change
_TABLE = table_beside(__file__)
_LOAD = _TABLE["load"]


class Place(NamedTuple):
    """Where a run stands in a grid: the study, the tier, and the budget and sweeps of its point.

    Runs that are in no chosen study go to the study ``moelaws``.
    """

    study: str = "moelaws"
    tier: str = ""
    C: float | None = None
    sweeps: tuple[str, ...] = ()


class Point(NamedTuple):
    """What was measured at one step."""

    step: int  # optimizer steps done
    time: float  # seconds since 1970 at which the step would have ended without any interruption
    values: Mapping[str, float]  # name -> value, in the units of the run's files


class TrackedRun(NamedTuple):
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
        summary, started = flatten(record.summary), _started(record, folder)
        final = {
            name: float(summary[key])
            for name, key in _TABLE["final"].items()
            if type(summary.get(key)) in (int, float)
        }
        sizes = describe(Run(record.run_id, config, place.C, place.sweeps))
        settings = flatten({"config": config.model_dump(mode="json")})
        parameters = {
            name: value if isinstance(value, str | int | float) else json.dumps(value)
            for name, value in {**sizes, "C": place.C, **settings}.items()
            if value is not None and name not in _TABLE["no_parameters"]
        }
        return cls(
            record.run_id,
            place,
            f"{name_of(config)} · {record.run_id[:8]}",
            record.status,
            parameters,
            _points(folder, int(summary.get("steps", config.steps)), started, final),
            final,
            [path for name in _TABLE["files"] if (path := folder / name).is_file()],
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
    put: Callable[[TrackedRun], object],
    report: Report,
    named: bool = False,
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Writes each run among ``records`` that has ended, once for each study that has it.

    ``places`` maps runs to their places in studies. Runs of no study are written, too, if it is
    None, as without a project, or if the user ``named`` the runs. ``put`` makes a tracker hold a
    run as it is now, in place of what it held of that run. Returns the ``study`` and the ``run_id``
    of each run that was written, and the ``run_id`` of each that was left out, with the ``reason``.
    """
    records = list(records)
    written, left_out = [], []
    for number, record in enumerate(records, 1):
        run_id = record.run_id
        report("export", number, len(records), f"{number}/{len(records)} runs")
        in_studies = (places or {}).get(run_id, [])
        try:
            if record.status not in ENDED:
                raise UserError(record.status.replace("_", " "))
            if not in_studies and places is not None and not named:
                raise UserError("no chosen study asks for it at this tier")
            for place in in_studies or [Place()]:
                put(TrackedRun.of(record, results, place))
                written.append({"study": place.study, "run_id": run_id})
        except UserError as error:
            left_out.append({"run_id": run_id, "reason": str(error)})
    return written, left_out


@contextmanager
def into_folder(
    put: Callable[[Path, TrackedRun], None], folder: Path
) -> Iterator[Callable[[TrackedRun], None]]:
    """Yields what puts a run below ``folder``, into which one process at a time writes."""
    folder.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(folder):
        yield partial(put, folder)


@contextmanager
def replacing_run(place: Path, mark: str) -> Iterator[Path]:
    """Yields a new folder that takes the place of ``place``, and of the run's earlier exports.

    Those are the folders beside it that hold a file ``mark``, a pattern that has the run's id.
    """
    with replacing_folder(place) as work:
        yield work
    for old in place.parent.glob(f"*/{mark}"):
        if old.parent != place:
            shutil.rmtree(old.parent)


def _points(folder: Path, last: int, started: float, final: Mapping[str, float]) -> list[Point]:
    values: dict[int, dict[str, float]] = {}
    history = _table(folder / "history.parquet", "step", "seconds")
    steps, seconds = [0, *history.pop("step")], [0.0, *history["seconds"]]
    for step, row in zip(steps[1:], history.to_dict("records"), strict=True):
        values[step] = {f"train/{name}": value for name, value in row.items()}
    load = _table(folder / "load.parquet", "validation", "step", "layer", *_LOAD)
    for row in load[load["validation"] == 0].to_dict("records"):
        own = {f"load/{name}/layer{row['layer']}": row[name] for name in _LOAD}
        values.setdefault(row["step"], {}).update(own)
    last = max([last, *values])
    values.setdefault(last, {}).update({f"final/{k}": value for k, value in final.items()})
    ordered = sorted(values)
    times = (started + np.interp(ordered, steps, seconds)).tolist()
    return [Point(step, at, values[step]) for step, at in zip(ordered, times, strict=True)]


def _table(path: Path, *needed: str) -> pd.DataFrame:
    """Returns the columns of a table that hold no lists, with no rows if there is no such file.

    Those ``needed`` must be there.
    """
    if not path.is_file():
        return pd.DataFrame(columns=list(needed))
    table = read_parquet(path)
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
        "commit": provenance.get("commit"),
        "changed_since_commit": "yes" if provenance.get("dirty") else "",
        "code": provenance.get("code"),
        "message": record.summary.get("message"),
    }
    return {name: str(value) for name, value in tags.items() if value}
