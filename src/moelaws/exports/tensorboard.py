"""Runs as event files for TensorBoard: a folder for each study, and in it one for each run.

The name of a run's event file holds the run's identity and a digest of its content. So the names
alone tell what is there, and a file that is there is complete.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.record_writer import RecordWriter

from moelaws.exports.material import TrackedRun
from moelaws.exports.send import Outcome
from moelaws.records.files import replacing
from moelaws.records.lock import one_at_a_time
from moelaws.spec.from_json import parse_json

# What the page of hyperparameters has as columns, of all runs the same.
HPARAMS = (
    "N_total", "N_active", "C_sparsity", "D", "S", "A", "G", "E", "k", "n_layers",
    "d_model", "d_expert", "lr", "batch_tokens", "steps", "seed",
)  # fmt: skip
TEXTS = ("kind",)
METRICS = ("final/L", "final/bits_per_byte", "final/L_train", "final/balance_cv", "train/loss")


@contextmanager
def opened(folder: Path) -> Iterator[EventFiles]:
    """Yields the tracker that keeps runs below ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(folder):
        yield EventFiles(folder)


class EventFiles:
    """Keeps runs as ``FOLDER/STUDY/LABEL/events.out.tfevents.*``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, run: TrackedRun) -> Outcome:
        """Writes the event file of ``run`` unless it is there; removes what was there of it."""
        study = self.folder / run.study
        # TensorBoard reads the files of a folder by name: the time of the run stands first.
        name = f"events.out.tfevents.{int(run.started):010}.{run.run_id}.{run.digest}"
        there = list(study.glob(f"*/events.out.tfevents.*.{run.run_id}.*"))
        path = study / run.label / name
        if there == [path]:
            return "unchanged"
        events = list(_events(run))
        _write(path, events)
        for old in there:
            if old != path:
                old.unlink()
                if not any(old.parent.glob("events.out.tfevents.*")):
                    shutil.rmtree(old.parent)
        return "updated" if there else "added"


def _write(path: Path, events: list[event_pb2.Event]) -> None:
    """Writes under a name that TensorBoard does not read, and renames."""
    with replacing(path.with_name("unfinished")) as temporary, temporary.open("wb") as file:
        writer = RecordWriter(file)
        for event in events:
            writer.write(event.SerializeToString())
    os.replace(path.with_name("unfinished"), path)


def _events(run: TrackedRun) -> Iterator[event_pb2.Event]:
    """Yields the scalars of each step, as float32; before them hyperparameters and texts."""
    yield event_pb2.Event(wall_time=run.started, file_version="brain.Event:2")
    for summary in (*_hyperparameters(run), *_texts(run)):
        yield event_pb2.Event(wall_time=run.started, summary=summary)
    for point in run.points():
        event = event_pb2.Event(wall_time=point.time, step=point.step)
        for name, value in point.values.items():
            event.summary.value.add(tag=name, simple_value=value)
        yield event


def _texts(run: TrackedRun) -> Iterator[summary_pb2.Summary]:
    """Yields what the page of texts shows, as Markdown."""
    yield text_pb("run", _table({**run.tags, **_annotations(run)}))
    yield text_pb("parameters", _table(run.parameters))
    for path in run.files:
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".json":
            text = json.dumps(parse_json(text, path), indent=1)
        indented = "\n".join(f"    {line}" for line in text.splitlines())
        yield text_pb(f"files/{path.name}", indented)


def _annotations(run: TrackedRun) -> dict[str, str]:
    own = {f"tags.{name}": value for name, value in run.annotations.tags.items()}
    return {**own, "note": run.annotations.note} if run.annotations.note else own


def _table(values: Any) -> str:
    rows = [f"| {name} | {_cell(value)} |" for name, value in values.items()]
    return "\n".join(["| name | value |", "|-|-|", *rows])


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def _hyperparameters(run: TrackedRun) -> Iterator[summary_pb2.Summary]:
    """Yields the columns of the page, the run's values, and how the run ended."""
    numbers = [api_pb2.HParamInfo(name=name, type=api_pb2.DATA_TYPE_FLOAT64) for name in HPARAMS]
    texts = [api_pb2.HParamInfo(name=name, type=api_pb2.DATA_TYPE_STRING) for name in TEXTS]
    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=name)) for name in METRICS]
    experiment = api_pb2.Experiment(hparam_infos=[*texts, *numbers], metric_infos=metrics)
    data = plugin_data_pb2.HParamsPluginData
    yield _plugin(metadata.EXPERIMENT_TAG, data(experiment=experiment))

    start = plugin_data_pb2.SessionStartInfo(start_time_secs=run.started, group_name=run.label)
    for name in HPARAMS:
        if name in run.sizes:
            start.hparams[name].number_value = run.sizes[name]
    for name in TEXTS:
        start.hparams[name].string_value = run.sizes[name]
    yield _plugin(metadata.SESSION_START_INFO_TAG, data(session_start_info=start))

    succeeded = run.status == "completed"
    status = api_pb2.STATUS_SUCCESS if succeeded else api_pb2.STATUS_FAILURE
    end = plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=run.started + run.seconds)
    yield _plugin(metadata.SESSION_END_INFO_TAG, data(session_end_info=end))


def _plugin(tag: str, data: plugin_data_pb2.HParamsPluginData) -> summary_pb2.Summary:
    summary = summary_pb2.Summary()
    about = metadata.create_summary_metadata(data)
    summary.value.add(tag=tag, metadata=about, tensor=metadata.NULL_TENSOR)
    return summary
