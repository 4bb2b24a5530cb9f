"""What a tracker holds, read back by the tracker's own code."""

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass
class Held:
    """A run as a tracker holds it: metrics are name -> [(step, value), ...]."""

    name: str
    metrics: dict
    params: dict
    tags: dict
    note: str
    succeeded: bool
    files: dict
    times: dict = field(default_factory=dict)  # step -> seconds since 1970


def read_mlflow(place):
    """(study, run) -> what MLflow's client finds of it."""
    from mlflow import MlflowClient

    client, held = MlflowClient(tracking_uri=f"sqlite:///{place}"), {}
    for experiment in client.search_experiments():
        for run in client.search_runs([experiment.experiment_id]):
            tags, identity = run.data.tags, run.info.run_id
            steps = {key: client.get_metric_history(identity, key) for key in run.data.metrics}
            for key, history in steps.items():  # the table of last values is another one
                last = max(history, key=lambda m: m.step).value
                assert run.data.metrics[key] == pytest.approx(last, nan_ok=True)
            folder = Path(client.download_artifacts(identity, ""))
            key = experiment.name, tags["moelaws.run_id"]
            assert key not in held, "it is there twice"
            held[key] = Held(
                run.info.run_name,
                {key: sorted((m.step, m.value) for m in rows) for key, rows in steps.items()},
                run.data.params,
                {k: v for k, v in tags.items() if not k.startswith("mlflow.")},
                tags.get("mlflow.note.content", ""),
                run.info.status == "FINISHED",
                {path.name: path.read_text() for path in folder.iterdir()},
                {m.step: m.timestamp / 1000 for m in steps.get("train/loss", [])},
            )
    return held


def read_tensorboard(place):
    """(study, run) -> what TensorBoard's own reader finds of it."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata
    from tensorboard.util.tensor_util import make_ndarray

    held = {}
    for folder in place.glob("*/*"):
        everything = EventAccumulator(str(folder), {"scalars": 0, "tensors": 0}).Reload()
        scalars = {tag: everything.Scalars(tag) for tag in everything.Tags()["scalars"]}
        texts = {}
        for tag in everything.Tags()["tensors"]:
            (event,) = everything.Tensors(tag)
            texts[tag] = make_ndarray(event.tensor_proto)
        tables = {}
        for tag in ("run", "parameters"):
            rows = texts.pop(tag).item().decode().splitlines()[2:]
            tables[tag] = dict(row.strip("| ").split(" | ", 1) for row in rows)
        files = {
            tag.removeprefix("files/"): "\n".join(
                line[4:] for line in text.item().decode().splitlines()
            )
            for tag, text in texts.items()
            if tag.startswith("files/")
        }
        plugin = everything.PluginTagToContent(metadata.PLUGIN_NAME)
        end = metadata.parse_session_end_info_plugin_data(plugin[metadata.SESSION_END_INFO_TAG])
        start = metadata.parse_session_start_info_plugin_data(
            plugin[metadata.SESSION_START_INFO_TAG]
        )
        assert start.hparams["d_model"].number_value == float(tables["parameters"]["d_model"])
        key = folder.parent.name, tables["run"]["run_id"]
        assert key not in held, "it is there twice"
        held[key] = Held(
            folder.name,
            {tag: [(e.step, e.value) for e in events] for tag, events in scalars.items()},
            tables["parameters"],
            tables["run"],
            tables["run"].get("note", ""),
            end.status == 1,
            files,
            {e.step: e.wall_time for e in scalars.get("train/loss", [])},
        )
    return held


def read_wandb(place):
    """(study, run) -> what the logs of offline runs hold.

    wandb reads its logs in a program of its own, which sends them to a server. So the frames (those
    of LevelDB's logs) are read here, and the records in them by wandb's own messages.
    """
    from wandb.proto.wandb_internal_pb2 import Record

    held = {}
    for path in place.glob("*/offline-run-*/run-*.wandb"):
        records = [Record.FromString(frame) for frame in frames(path.read_bytes())]
        (run,) = [r.run for r in records if r.HasField("run")]
        (end,) = [r.exit for r in records if r.HasField("exit")]
        metrics, times, summary = {}, {}, {}
        for record in records:
            row = {i.nested_key[0]: json.loads(i.value_json) for i in record.history.item}
            times[record.history.step.num] = row.pop("_timestamp", None)
            for name, value in row.items():
                if not name.startswith("_"):
                    metrics.setdefault(name, []).append((row["_step"], value))
            for each in record.summary.update:
                summary[each.key or each.nested_key[0]] = json.loads(each.value_json)
        for name, steps in metrics.items():
            assert summary[name] == pytest.approx(steps[-1][1], nan_ok=True)
        files = {p.name: p.read_text() for p in (path.parent / "files").iterdir()}
        listed = {f.path for record in records for f in record.files.files}
        assert listed == set(files), "wandb sync sends the files that are listed"
        config = {u.key: json.loads(u.value_json) for u in run.config.update}
        assert run.project == path.parts[-3]
        key = run.project, run.run_id
        assert key not in held, "it is there twice"
        params = {k: v for k, v in config.items() if k != "_wandb"}
        tags = {k.removeprefix("tags."): v for k, v in params.items()} | {"labels": set(run.tags)}
        held[key] = Held(
            run.display_name, metrics, params, tags, run.notes, end.exit_code == 0, files, times
        )
    return held


def frames(log):
    """The records of a transaction log: blocks of 32 KiB behind a head of 7 bytes."""
    assert log[:4] == b":W&B"
    place, record = 7, b""
    while place + 7 <= len(log):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, size, kind = struct.unpack_from("<IHB", log, place)
        record += log[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""


READERS = {"mlflow": read_mlflow, "tensorboard": read_tensorboard, "wandb": read_wandb}
