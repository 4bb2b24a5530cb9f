"""`moelaws train` of several runs: real processes, which are killed and stopped by real signals."""

import json
import signal

import psutil
import pytest

from moelaws.files.atomic import read_json
from moelaws.records.batches import Order, Orders, failures
from nvidia_smi import nvidia_smi
from waiting import wait_for

# The command line where two trainings side by side do not fit into the memory.
TIGHT = """
import os
from moelaws.cli import main
from moelaws.training import job
build = job.build_trainer
def build_if_there_is_room(*words):
    if float(os.environ["MOELAWS_GPU_SHARE"]) < 1:
        raise MemoryError("neighbours have it")
    return build(*words)
job.build_trainer = build_if_there_is_room
main()
"""


@pytest.fixture
def batch(configure, started, tmp_path):
    """Starts a batch of runs that differ in their seed; returns its process and their ids."""

    def start(*words, steps=3, runs=4, **how):
        orders = [
            Order(config=configure(steps=steps, seed=seed, max_epochs=1000)) for seed in range(runs)
        ]
        file = tmp_path / "batch.runs.json"
        Orders(runs=tuple(orders)).write(file)
        process = started(file, "--marker", tmp_path / "done", *words, **how)
        return process, [order.config.run_id for order in orders]

    return start


def statuses(results, runs):
    paths = [results.summary(run) for run in runs]
    return [read_json(path)["status"] if path.exists() else None for path in paths]


def trainer_of(results, run):
    """The process that trains a run; None where there is none."""
    try:
        return psutil.Process(json.loads((results.run(run) / "lock").read_text())["pid"])
    except (OSError, ValueError, psutil.NoSuchProcess):
        return None


def test_a_run_that_is_killed_stops_no_other_and_is_named(batch, results, tmp_path):
    process, runs = batch(steps=150)
    log = results.run(runs[3]) / "log"
    log.mkdir(parents=True)  # so that this run cannot write one
    victim = wait_for(lambda: trainer_of(results, runs[0]))
    victim.kill()
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 1
    assert (
        f"run {runs[0]} failed: it was ended by SIGKILL (9), usually for lack of memory" in errors
    )
    assert f"moelaws: {log}: cannot be written: Is a directory" in errors
    assert "Traceback" not in errors
    assert statuses(results, runs) == [None, "completed", "completed", None]
    assert not (tmp_path / "done").exists()
    assert [failures(results, run) for run in runs] == [0, 0, 0, 1]  # by themselves
    log.rmdir()
    process, _ = batch(steps=150)
    out, _ = process.communicate(timeout=300)
    assert "4 runs have a summary, 2 had one before" in out
    assert f"{runs[0]} completed: loss" in out
    assert statuses(results, runs) == ["completed"] * 4
    assert [failures(results, run) for run in runs] == [0] * 4
    assert "back end torch on cpu" in (results.run(runs[0]) / "log").read_text()


def test_a_stop_saves_what_trains_and_begins_nothing_more(batch, results):
    process, runs = batch("--workers", "2", steps=100_000, runs=3)
    wait_for(lambda: all(results.history_so_far(run).exists() for run in runs[:2]))
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGTERM
    assert "stopped; call again to continue from the checkpoints" in errors
    for run in runs[:2]:
        assert results.checkpoint(run).is_dir()
        assert "checkpoint written" in (results.run(run) / "log").read_text()
    assert not results.run(runs[2]).exists()


@pytest.mark.slow
def test_no_process_outlives_the_command(batch, results):
    process, runs = batch("--workers", "2", steps=100_000, runs=2)
    trainers = [wait_for(lambda run=run: trainer_of(results, run)) for run in runs]
    process.kill()
    process.wait()
    assert wait_for(lambda: not any(trainer.is_running() for trainer in trainers))


@pytest.mark.slow
def test_a_run_that_lacks_memory_beside_others_is_tried_again_alone(
    batch, results, tmp_path, monkeypatch
):
    """Two GPUs, which a program pretends to list; training computes on the CPU."""
    nvidia_smi(tmp_path / "bin", [f"{i}, GPU-{i}, NVIDIA H100, 81559, 0, 0" for i in range(2)])
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    words = ("--workers", "2", "--runs-per-gpu", "2", "--gpus", "1")
    process, runs = batch(*words, runs=2, program=("-c", TIGHT))
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert errors.count("trying again without others beside it") == 2
    assert "CUDA MPS does not run" in errors
    assert statuses(results, runs) == ["completed"] * 2
    for run in runs:
        made_by = read_json(results.run(run) / "provenance.json")
        assert (made_by["cuda_visible_devices"], made_by["gpu_share"]) == ("GPU-1", 1.0)
