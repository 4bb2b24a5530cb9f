"""``moelaws watch``: a sweep in every state, told from files alone."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
import yaml

from command_line import printed
from moelaws.files.atomic import write_json
from moelaws.files.layout import Results
from moelaws.grids.sweep import expand_study, planned
from moelaws.records import watching
from moelaws.spec.project import load_project, load_study
from moelaws.training.columns import write_columns
from moelaws.training.history import COLUMNS
from own_study import write_study
from repository import copy_repository

SUMMARY = {"wall_seconds": 10.0, "tokens_per_second": 500.0, "loss": 3.0}
watch = partial(printed, "watch", "--set", "studies=sparsity")


def end(results, run, steps, status="completed"):
    unmeasured = dict.fromkeys(("loss_se", "bits_per_byte", "train_loss", "balance"))
    counts = {"tokens": 1, "epochs": 1.0, "peak_memory_bytes": 1}
    about = {"run_id": run, "status": status, "steps": steps, **unmeasured, **counts}
    write_json(results.summary(run), {**about, **SUMMARY})


def begin(results, run, steps, lock_age):
    """A run that another host's trainer brought to its half, and touched so many seconds ago."""
    about = {name: np.arange(1.0, steps // 2 + 1) for name in COLUMNS}
    about["loss"] = np.linspace(8.0, 4.0, steps // 2)
    write_json(results.run(run) / "config.json", {})
    (results.run(run) / "log").write_text("resumed\nthe network went away\n")
    write_columns(results.history_so_far(run), COLUMNS, about, {"device": "H100 [red]"})
    lock = results.run(run) / "lock"
    owner = {"token": "t", "host": "node7", "pid": 1, "process": ["elsewhere", "1"], "job": "42"}
    lock.write_text(json.dumps(owner))
    os.utime(lock, (time.time() - lock_age,) * 2)


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """The runs of a copy of the repository (id -> steps), of which none has begun."""
    copy_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    runs = json.loads(printed("grid", "sparsity", "--json"))
    return {run["run_id"]: run["steps"] for run in runs}


def test_every_state_of_a_run_is_told(sweep, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert "snakemake --cores all --config tier=demo" in watch("--once")
    results, (done, lost, working, dead, *waiting) = Results(), sweep
    end(results, done, sweep[done])
    end(results, lost, sweep[lost], "diverged")
    begin(results, working, sweep[working], lock_age=30)
    begin(results, dead, sweep[dead], lock_age=300)
    now = json.loads(watch("--once", "--json"))
    assert now["counts"] == {
        "done": 1, "running": 1, "failed": 1, "interrupted": 1, "waiting": len(waiting),
    }  # fmt: skip
    assert 0 < now["flops_left"] < now["flops"]
    runs = {run["run_id"]: run for run in now["runs"]}
    assert runs[working]["steps_done"] == sweep[working] // 2
    assert runs[working]["loss"] == pytest.approx(4.0)
    assert runs[working]["tokens_per_second"] == pytest.approx(1.0)
    assert runs[working]["seconds_left"] == pytest.approx(sweep[working] - sweep[working] // 2)
    shown = watch("--once")
    assert "H100 [red] node7 job 42" in shown  # a name that looks like markup
    assert "the network went away" in shown
    assert "its loss diverged" in shown
    assert "moelaws runs --retry" in shown


def test_a_finished_sweep_ends_the_watch(sweep):
    results = Results()
    for run, steps in sweep.items():
        end(results, run, steps)
    everything = f"{len(sweep)} of {len(sweep)} runs done, 100% of the FLOPs"
    assert everything in watch()  # it ends by itself


@pytest.mark.usefixtures("sweep")
@pytest.mark.parametrize("study", ["sparsity", "own/study.yaml"])
def test_the_call_that_goes_on_has_the_same_settings(tmp_path, study):
    write_study(tmp_path / "own")
    words = [f"studies={study}", "seed=7", "corpus=[config/*.yaml]"]
    shown = printed("watch", "--once", *(word for each in words for word in ("--set", each)))
    call = shlex.split(" ".join(shown.split()).partition("what is left: ")[2])
    overrides = dict(word.split("=", 1) for word in call[call.index("--config") + 1 :])
    overrides = {key: yaml.safe_load(value) for key, value in overrides.items()}
    asked = {"studies": [study], "seed": 7, "corpus": ["config/*.yaml"]}
    assert load_project(overrides=overrides) == load_project(overrides=asked)


@pytest.mark.usefixtures("sweep")
def test_the_time_left_is_that_of_the_grid_until_a_run_has_ended():
    """The smallest run gives few FLOPs a second, for most of its time is overhead."""
    project = load_project(overrides={"tier": "workstation", "studies": "sparsity"})
    sweep = expand_study(load_study("sparsity"), project)
    runs = planned([sweep], project)
    total = sum(run.estimated_seconds for run in runs.values())
    first = min(runs, key=lambda run: runs[run].flops)
    steps, seconds = runs[first].steps // 2, runs[first].estimated_seconds / 2
    courses = dict.fromkeys(runs, watching.Course("waiting"))
    courses[first] = watching.Course("running", step=steps, seconds=seconds)
    left = watching.Snapshot(runs, courses).seconds_left
    assert left == pytest.approx(total - seconds, rel=0.01)
    done = watching.Course("done", step=2 * steps, seconds=4 * seconds)  # twice the estimate
    second = max(runs, key=lambda run: runs[run].flops)
    slower = courses | {first: done, second: watching.Course("running")}
    left = watching.Snapshot(runs, slower).seconds_left
    assert left == pytest.approx(2 * (total - 2 * seconds), rel=0.01)


@pytest.mark.slow
def test_ctrl_c_ends_it(sweep):
    words = [sys.executable, "-m", "moelaws", "watch", "--every", "0.1"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "0 of" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert "Traceback" not in process.communicate(timeout=60)[1]
    assert process.returncode == 130
