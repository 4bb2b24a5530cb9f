"""Runs in MLflow, TensorBoard and W&B, read back by each tool's own code.

    for tool in mlflow tensorboard wandb; do
      pip install --no-deps --target OVERLAY/$tool -r envs/$tool.txt
      PYTHONPATH=OVERLAY/$tool pytest tests/exports/test_trackers.py -n 0 -k $tool
    done

With MOELAWS_EXPORTS=required a test that would be skipped for lack of a package fails.
"""

import json
import math
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from datetime import datetime

import numpy as np
import pytest
from export_records import copy_run, id_of, replace_column
from tracker_readers import READERS

from command_line import printed
from moelaws.exports.material import Place, TrackedRun
from moelaws.files.atomic import read_json, write_json
from moelaws.files.parquet import read_parquet
from moelaws.records.runs import annotate, read_record
from optional_package import need

LARGEST = sys.float_info.max


class Tracker:
    """A tracker below ``folder``, as a user calls it."""

    def __init__(self, name, folder, results):
        self.name, self.results = name, results
        self.place = folder / ("runs.db" if name == "mlflow" else "tracked")
        to = f"sqlite:///{self.place}" if name == "mlflow" else str(self.place)
        self.words = ["export", name, "--to", to, "--results", str(results.root)]

    def export(self, *words):
        """Exports in this process; returns (runs that are there, left out), sorted."""
        answer = json.loads(printed(*self.words, "--json", *words))
        return tuple(sorted(r["run_id"] for r in answer[key]) for key in ("runs", "left_out"))

    def held(self):
        return READERS[self.name](self.place)

    def stored(self, value):
        """A float64 as the tool stores it."""
        if self.name == "tensorboard":
            return float(np.float32(value))
        if self.name == "mlflow" and math.isinf(value):
            return math.copysign(LARGEST, value)
        return value


@pytest.fixture(params=list(READERS))
def tracker(request, results, tmp_path, monkeypatch):
    need(request.param, __file__)
    monkeypatch.chdir(tmp_path)  # where there is no project: all runs are of the study `moelaws`
    return Tracker(request.param, tmp_path, results)


def test_all_that_was_measured_is_there_exactly(tracker):
    """Test_material.py compares these points with the records."""
    tracker.export()
    held, results = tracker.held(), tracker.results
    runs = [id_of(results, "moe"), id_of(results, "dense"), "diverged"]
    assert sorted(held) == sorted(("moelaws", run) for run in runs)
    for run in runs:
        expected, metrics = defaultdict(list), held["moelaws", run].metrics
        for point in TrackedRun.of(read_record(results, run), results, Place()).points:
            for name, value in point.values.items():
                expected[name].append((point.step, tracker.stored(value)))
        assert metrics.keys() == expected.keys()
        for name, steps in expected.items():
            assert [step for step, _ in metrics[name]] == [step for step, _ in steps]
            np.testing.assert_array_equal([v for _, v in metrics[name]], [v for _, v in steps])


def test_a_run_has_its_sizes_its_tags_its_files_and_its_end(tracker):
    run = id_of(tracker.results, "moe")
    annotate(tracker.results, run, {"baseline": "yes"}, "The node was rebooted.")
    tracker.export()
    held = tracker.held()["moelaws", run]
    file = tracker.results.run(run) / "provenance.json"
    provenance = read_json(file)
    assert held.name.startswith("d16 E4 ")
    assert held.name.endswith(f" s0 · {run[:8]}")
    assert float(held.params["N_total"]) > float(held.params["N_active"]) > 1000
    assert float(held.params["config.optimizer.beta2"]) == 0.95  # a default, in no config.json
    assert held.params["kind"] == "moe"
    ours = "moelaws." if tracker.name == "mlflow" else ""
    assert held.tags[f"{ours}code"] == provenance["code"]
    assert held.tags[f"{ours}status"] == "completed"
    assert "baseline" in " ".join(held.tags)
    assert held.note == "The node was rebooted."
    assert json.loads(held.files[file.name]) == json.loads(file.read_text())
    assert {"config.json", "summary.json", "log"} <= set(held.files)
    began = datetime.fromisoformat(provenance["started"]).timestamp()
    seconds = read_parquet(tracker.results.run(run) / "history.parquet")["seconds"].to_pylist()
    assert held.times[30] == pytest.approx(began + seconds[-1], abs=0.01)
    assert (held.succeeded, tracker.held()["moelaws", "diverged"].succeeded) == (True, False)


def test_a_run_that_was_annotated_or_trained_again_replaces_the_former(tracker):
    run, again = id_of(tracker.results, "moe"), "diverged"
    annotate(tracker.results, run, {"baseline": "yes", "who": "Ann"}, "old")
    tracker.export()
    annotate(tracker.results, run, {"baseline": "", "who": "Bob"}, "new")
    folder = tracker.results.run(again)
    replace_column(folder / "history.parquet", "loss", [3.0 + step / 64 for step in range(30)])
    summary = read_json(folder / "summary.json")
    write_json(folder / "summary.json", {**summary, "status": "completed", "loss": 2.5})
    tracker.export()
    held = tracker.held()
    assert len(held) == 3
    annotated, retrained = held["moelaws", run], held["moelaws", again]
    assert annotated.tags["tags.who" if tracker.name == "tensorboard" else "who"] == "Bob"
    assert "baseline" not in " ".join(annotated.tags)
    assert annotated.note == "new"
    assert len(annotated.metrics["train/loss"]) == 30
    assert retrained.metrics["train/loss"][-1] == (30, 3.0 + 29 / 64)
    assert retrained.metrics["final/L"] == [(30, 2.5)]
    assert retrained.succeeded


def test_two_exports_at_once_have_each_run_once(tracker):
    command = [sys.executable, "-m", "moelaws", *tracker.words, "--json"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answer = [json.loads(process.communicate()[0]) for process in both]
    assert [len(one["runs"]) for one in answer] == [3, 3]
    assert len(tracker.held()) == 3


INTERRUPTED = """
import os, sys
from moelaws.cli import main

number, file = int(sys.argv.pop(1)), sys.argv.pop(1)

def interrupt(event, words):
    if event == "open" and str(words[0]).endswith(file):
        os.kill(os.getpid(), number)

sys.addaudithook(interrupt)
main()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=lambda s: s.name)
def test_what_was_interrupted_is_completed_by_the_next_export(tracker, number):
    """The signal comes where the exporter reads what a run in the middle has printed."""
    for copy in range(40):
        copy_run(tracker.results, id_of(tracker.results, "moe"), f"copy{copy:02}")
    words = [str(int(number)), "copy20/log", *tracker.words]
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *words], capture_output=True, text=True
    )
    assert ended.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL), ended.stderr
    assert len(tracker.export()[0]) == 43
    held = tracker.held()
    assert len(held) == 43
    assert {len(run.metrics["train/loss"]) for run in held.values()} == {30}
    if tracker.name != "mlflow":  # nothing half-written is left
        hidden = [p for p in tracker.place.rglob(".*") if not p.name.startswith(".nfs")]
        assert hidden == []


def test_mlflow_leaves_alone_what_it_holds_already(results, tmp_path, monkeypatch):
    """For it keeps what is deleted."""
    need("mlflow", __file__)
    monkeypatch.chdir(tmp_path)
    tracker = Tracker("mlflow", tmp_path, results)
    tracker.export()
    annotate(results, id_of(results, "dense"), {"baseline": "yes"})
    tracker.export()
    with sqlite3.connect(tracker.place) as database:
        stages = database.execute("SELECT lifecycle_stage FROM runs").fetchall()
    assert sorted(stages) == [("active",)] * 3 + [("deleted",)]


def test_no_host_is_asked(tracker):
    if not shutil.which("strace"):
        pytest.skip("there is no strace on the PATH, which tells the connections of a program")
    log = tracker.place.with_name("connections")
    strace = ["strace", "-f", "-qq", "-e", "trace=connect,sendto", "-o", log]
    done = subprocess.run([*strace, sys.executable, "-m", "moelaws", *tracker.words])
    assert done.returncode == 0
    lines = [line for line in log.read_text().splitlines() if "AF_INET" in line]
    assert [line for line in lines if "127.0.0.1" not in line] == []
