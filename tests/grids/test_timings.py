"""Which records tell this machine's speed, and that the estimate of a grid rests on them."""

import json

import numpy as np
import pyarrow as pa
import pytest

from command_line import printed
from moelaws.accounting.cost import CPU, H100
from moelaws.files.atomic import write_json, write_text
from moelaws.files.layout import Results
from moelaws.files.parquet import write_parquet
from moelaws.grids.timings import timings
from moelaws.records.pace import seconds_a_step
from moelaws.records.provenance import collect
from moelaws.spec.base import parse
from moelaws.spec.run import RunConfig

CALL = ("grid", "sparsity", "--set", "corpus=text.txt")
HERE = {**collect(), "device": "cpu", "threads": 1, "resumed_from": []}


@pytest.fixture(autouse=True)
def text(project_folder):
    (project_folder / "text.txt").write_text("a text\n")


def record(run_id, seconds, stops=0.0, **made_by):
    """Writes what a run leaves whose steps took ``seconds`` together, but for ``stops``."""
    folder = Results().run(run_id)
    config = printed(*CALL, "--run", run_id)
    write_text(folder / "config.json", config)
    write_json(folder / "provenance.json", HERE | made_by)
    write_json(folder / "summary.json", {"status": "completed", "wall_seconds": seconds + stops})
    steps = json.loads(config)["steps"]
    step = np.append(np.arange(2, steps, 2), steps)  # as of a long run: not every one
    spent = seconds / steps * (step - 1) + stops * (step > 0.3 * steps)
    write_parquet(folder / "history.parquet", pa.table({"step": step, "seconds": spent}))


def training(row):
    """Returns the estimated seconds of a run's steps: without its start and its evaluation."""
    config = parse(RunConfig, json.loads(printed(*CALL, "--run", row["run_id"])), "a run")
    evaluated = config.evaluation.sequences / (3 * config.batch * config.steps)
    return (row["estimated_seconds"] - CPU.startup_seconds) / (1 + evaluated)


def test_the_estimate_follows_the_runs_that_this_machine_has_finished():
    before = json.loads(printed(*CALL, "--json"))
    assert "finished run" not in printed(*CALL)
    record(before[0]["run_id"], 5 * training(before[0]))
    assert "from 1 finished run of this machine in results/" in printed(*CALL)
    for row in before[1:8]:
        record(row["run_id"], 5 * training(row))
    after = json.loads(printed(*CALL, "--json"))
    for old, new in zip(before, after, strict=True):
        spent = old["estimated_seconds"] - CPU.startup_seconds
        assert new["estimated_seconds"] == pytest.approx(CPU.startup_seconds + 5 * spent)
    assert "from 8 finished runs of this machine in results/" in printed(*CALL)


def test_a_device_that_lags_behind_its_host_is_timed_by_its_waits():
    """The host starts a step in a millisecond and waits a second for each twenty."""
    row = json.loads(printed(*CALL, "--json"))[0]
    record(row["run_id"], 10.0)
    step = np.arange(1, row["steps"] + 1)
    spent = 1e-3 * (step - 1) + 1.0 * ((step - 1) // 20)
    path = Results().run(row["run_id"]) / "history.parquet"
    write_parquet(path, pa.table({"step": step, "seconds": spent}))
    assert seconds_a_step(Results(), row["run_id"]) == pytest.approx(0.051)


@pytest.mark.parametrize(
    "made_by",
    [
        {"host": "another"},
        {"device": "NVIDIA H100 80GB HBM3"},
        {"resumed_from": [{"host": "another"}]},
    ],
)
def test_runs_of_other_machines_and_interrupted_ones_tell_nothing(made_by):
    run_id = json.loads(printed(*CALL, "--json"))[0]["run_id"]
    record(run_id, 10.0, stops=7200.0)
    (timing,) = timings(Results(), CPU)
    assert timing.seconds == pytest.approx(10.0)  # its other steps, if it was stopped for hours
    record(run_id, 10.0, **made_by)
    assert timings(Results(), CPU) == []
    assert len(timings(Results(), H100)) == ("device" in made_by)
