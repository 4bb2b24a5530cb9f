"""What of a run goes to an experiment tracker, whichever it is.

The names are the same in all of them: a parameter is a column of the study's table or a key of the
configuration, ``train/loss`` is a column of the run's history over its steps, ``load/cv/layer1``
one of its experts' load, and ``final/L`` a number of its summary.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from moelaws.grids.expand import Run
from moelaws.records import seal
from moelaws.records.annotations import Annotations
from moelaws.records.layout import Results
from moelaws.records.parquet import read_parquet
from moelaws.records.runs import Record, flatten
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.tables.describe import describe

FORMAT = 1  # of what is sent: another number replaces what was sent before
NO_STUDY = "moelaws"  # the study of runs that no chosen study asks for
ENDED = ("completed", "diverged")  # the states whose result will not change
SENT = ("config.json", "summary.json", "provenance.json", "log")
_READ = (*SENT, "history.parquet", "load.parquet")
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
class Asked:
    """A study that asks for a run, its tier, and the budget and sweeps of the grid's point."""

    study: str = NO_STUDY
    tier: str = ""
    C: float | None = None
    sweeps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Point:
    """What was measured at one step.

    Attributes:
        step: optimizer steps done.
        time: in seconds since 1970; pauses between resumptions are left out.
        values: name -> value, in the units of the run's files.
    """

    step: int
    time: float
    values: Mapping[str, float]


@dataclass(frozen=True)
class TrackedRun:
    """A run of one study, as a tracker gets it.

    Attributes:
        asked: the study for which it is sent.
        folder: of the run's record.
        sizes: column of the study's table -> value, of what follows from the configuration.
        config: key of the configuration, such as ``config.model.d_model`` -> value.
        final: name -> number of the summary.
        started: in seconds since 1970.
        seconds: of training and evaluation.
    """

    run_id: str
    asked: Asked
    folder: Path
    status: str
    sizes: Mapping[str, Any]
    config: Mapping[str, Any]
    final: Mapping[str, float]
    steps: int
    started: float
    seconds: float
    tags: Mapping[str, str]
    annotations: Annotations

    @classmethod
    def of(cls, record: Record, results: Results, asked: Asked) -> TrackedRun:
        """Returns a run that completed or diverged.

        Raises:
            UserError: for a configuration that this version does not know.
        """
        folder = results.run(record.run_id)
        config = parse(RunConfig, record.config, folder / "config.json")
        run = Run(record.run_id, config, asked.C, asked.sweeps)
        sizes = {k: v for k, v in describe(run).items() if k not in ("run_id", "sweep")}
        summary = flatten(record.summary)
        return cls(
            record.run_id,
            asked,
            folder,
            record.status,
            _known({**sizes, "C": asked.C}),
            _known(flatten({"config": config.model_dump(mode="json")})),
            {name: float(summary[key]) for name, key in _FINAL.items() if _is_number(summary, key)},
            int(summary.get("steps", config.steps)),
            _started(record, folder),
            float(summary.get("wall_seconds", 0.0)),
            _tags(record, asked),
            record.annotations,
        )

    @property
    def study(self) -> str:
        return self.asked.study

    @property
    def label(self) -> str:
        """Tells the run from others of its study, such as ``d48 E32 2e11 s0 · 3fb1c02d``."""
        sizes = self.sizes
        experts = f"E{sizes['E']}" if sizes["kind"] == "moe" else "dense"
        budget = f"{sizes.get('C', sizes['C_sparsity']):.2g}".replace("e+", "e")
        words = (f"d{sizes['d_model']}", experts, budget, f"s{sizes['seed']}")
        return f"{' '.join(words)} · {self.run_id[:8]}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The sizes and the configuration together."""
        return {**self.sizes, **self.config}

    @property
    def files(self) -> list[Path]:
        """The files of the record that go along."""
        return [path for name in SENT if (path := self.folder / name).is_file()]

    @cached_property
    def record_digest(self) -> str:
        """Is another one where the run was trained again; annotations do not change it."""
        paths = [self.folder / name for name in _READ]
        files = {path.name: seal.digest(path) for path in paths if path.is_file()}
        return _digest(FORMAT, files, self.parameters, self.status, self.started, self.final)

    @cached_property
    def digest(self) -> str:
        """Is another one where anything that is sent changed."""
        own = self.annotations
        return _digest(self.record_digest, self.label, dict(self.tags), own.tags, own.note)

    def points(self) -> list[Point]:
        """Returns what was measured, by step; the final numbers stand at the last one.

        Raises:
            UserError: for a damaged or foreign file of the record.
        """
        values: dict[int, dict[str, float]] = {}
        steps, seconds = [0], [0.0]
        if (path := self.folder / "history.parquet").is_file():
            columns = _columns(read_parquet(path), path, "step", "seconds")
            steps += columns["step"]
            seconds += columns["seconds"]
            names = [f"train/{name}" for name in columns if name != "step"]
            rows = zip(*(column for name, column in columns.items() if name != "step"), strict=True)
            for step, row in zip(columns["step"], rows, strict=True):
                values[step] = dict(zip(names, row, strict=True))
        if (path := self.folder / "load.parquet").is_file():
            columns = _columns(read_parquet(path), path, "validation", "step", "layer", *_LOAD)
            for i, (held_out, step) in enumerate(
                zip(columns["validation"], columns["step"], strict=True)
            ):
                if not held_out:
                    at = values.setdefault(step, {})
                    layer = columns["layer"][i]
                    at |= {f"load/{name}/layer{layer}": columns[name][i] for name in _LOAD}
        last = max([self.steps, *values])
        at = values.setdefault(last, {})
        at |= {f"final/{name}": value for name, value in self.final.items()}
        ordered = sorted(values)
        times = self.started + np.interp(ordered, steps, seconds)
        return [
            Point(step, time, values[step])
            for step, time in zip(ordered, times.tolist(), strict=True)
        ]


def _columns(table: pa.Table, path: Path, *needed: str) -> dict[str, list[Any]]:
    """Returns the columns of numbers of a table, as Python's numbers."""
    if missing := [name for name in needed if name not in table.column_names]:
        raise UserError(f"{path} has no column {missing[0]}")
    plain = [name for name in table.column_names if not pa.types.is_nested(table[name].type)]
    return {name: table[name].to_numpy().tolist() for name in plain}


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values that there are; lists as JSON."""
    plain = (str, int, float)
    return {
        key: value if isinstance(value, plain) else json.dumps(value)
        for key, value in values.items()
        if value is not None
    }


def _is_number(summary: Mapping[str, Any], key: str) -> bool:
    value = summary.get(key)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _started(record: Record, folder: Path) -> float:
    """Returns when the run began, in seconds; where that is not on record, when it ended."""
    try:
        return datetime.fromisoformat(record.provenance["started"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return (folder / "summary.json").stat().st_mtime


def _tags(record: Record, asked: Asked) -> dict[str, str]:
    provenance = record.provenance
    tags = {
        "run_id": record.run_id,
        "study": asked.study,
        "tier": asked.tier,
        "sweep": ",".join(asked.sweeps),
        "status": record.status,
        "commit": provenance.get("commit") or "",
        "changed_since_commit": "yes" if provenance.get("dirty") else "",
        "code": provenance.get("code") or "",
        "message": record.summary.get("message") or "",
    }
    return {name: str(value) for name, value in tags.items() if value}


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
