"""Runs as event files for TensorBoard: a folder for each study, and in it one for each run."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.record_writer import RecordWriter

from moelaws.exports.material import TrackedRun, into_folder, replacing_run
from moelaws.spec.from_toml import table_beside

EXPERIMENT = api_pb2.Experiment(**table_beside(__file__))


def _put(folder: Path, run: TrackedRun) -> None:
    """Writes ``FOLDER/STUDY/LABEL`` in place of any earlier export of the run."""
    name = f"events.out.tfevents.{int(run.started)}.{run.run_id}"
    others = f"events.out.tfevents.*.{run.run_id}"
    place = folder / run.place.study / run.label
    with replacing_run(place, others) as work, (work / name).open("wb") as file:
        events = RecordWriter(file)
        for event in _events(run):
            events.write(event.SerializeToString())


def _events(run: TrackedRun) -> Iterator[event_pb2.Event]:
    """Yields hyperparameters and texts, and then the scalars of each step, as float32."""
    yield event_pb2.Event(wall_time=run.started, file_version="brain.Event:2")
    for summary in (*_hyperparameters(run), *_texts(run)):
        yield event_pb2.Event(wall_time=run.started, summary=summary)
    for point in run.points:
        event = event_pb2.Event(wall_time=point.time, step=point.step)
        for name, value in point.values.items():
            event.summary.value.add(tag=name, simple_value=value)
        yield event


def _texts(run: TrackedRun) -> Iterator[summary_pb2.Summary]:
    """Yields what the page of texts shows, as Markdown."""
    own = {f"tags.{name}": value for name, value in run.annotations.tags.items()}
    note = {"note": run.annotations.note} if run.annotations.note else {}
    yield text_pb("run", _table({**run.tags, **own, **note}))
    yield text_pb("parameters", _table(run.parameters))
    for path in run.files:
        text = path.read_text(encoding="utf-8", errors="replace")
        indented = "\n".join(f"    {line}" for line in text.splitlines())
        yield text_pb(f"files/{path.name}", indented)


def _table(values: Any) -> str:
    cells = {name: " ".join(str(value).split()) for name, value in values.items()}
    rows = ["| {} | {} |".format(name, cell.replace("|", "\\|")) for name, cell in cells.items()]
    return "\n".join(["| name | value |", "|-|-|", *rows])


def _hyperparameters(run: TrackedRun) -> Iterator[summary_pb2.Summary]:
    """Yields the columns of the page, the run's values, and how the run ended."""
    yield _plugin(metadata.EXPERIMENT_TAG, experiment=EXPERIMENT)
    names = [info.name for info in EXPERIMENT.hparam_infos if info.name in run.parameters]
    yield hparams_pb({name: run.parameters[name] for name in names}, run.label, run.started)
    status = api_pb2.STATUS_SUCCESS if run.status == "completed" else api_pb2.STATUS_FAILURE
    end = plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=run.started + run.seconds)
    yield _plugin(metadata.SESSION_END_INFO_TAG, session_end_info=end)


def _plugin(tag: str, **content: Any) -> summary_pb2.Summary:
    summary = summary_pb2.Summary()
    about = metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(**content))
    summary.value.add(tag=tag, metadata=about, tensor=metadata.NULL_TENSOR)
    return summary


writer = partial(into_folder, _put)
