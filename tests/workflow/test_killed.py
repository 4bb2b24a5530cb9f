"""Processes killed with real signals: the next call finishes, and no run is half-written."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def slow(fresh):
    """Four runs, long enough to be caught at work."""
    study = fresh.study()
    demo = study["grids"]["demo"]
    demo["settings"]["max_epochs"] = 100
    demo["sweeps"] = [{"axes": {"C": 4e9, "S": [0, 0.5], "d_model": [8, 12]}}]
    fresh.write_study(study)
    return fresh


def start(copy, *words):
    return subprocess.Popen(
        copy.command(*words), cwd=copy.root, env=copy.environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def trainers(copy):
    """Processes that are training in this copy: they hold a run's lock."""
    processes = []
    for lock in (copy.root / "results/runs").glob("*/lock"):
        try:
            pid = json.loads(lock.read_text())["pid"]
            processes.append(psutil.Process(pid))
        except (OSError, ValueError, psutil.NoSuchProcess):
            continue
    return processes


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(0.05)
    raise AssertionError("it did not come to pass")


def finished_well(copy):
    assert len(copy.summaries()) == 4
    for path in copy.summaries():
        assert json.loads(path.read_text())["status"] == "completed"
    assert trainers(copy) == []


def test_a_trainer_killed(slow):
    sweep = start(slow, "--keep-going", "tables")
    victim = wait_for(lambda: trainers(slow))[0]
    time.sleep(0.5)
    victim.send_signal(signal.SIGKILL)
    assert sweep.wait(timeout=120) != 0
    assert len(slow.summaries()) == 3
    assert not (slow.root / "results/demo/tables/sparsity.parquet").exists()
    slow.snakemake("tables")
    finished_well(slow)


@pytest.mark.slow
def test_snakemake_killed(slow):
    sweep = start(slow, "tables")
    wait_for(lambda: trainers(slow))
    os.kill(sweep.pid, signal.SIGKILL)  # its children live on and go on training
    sweep.wait()
    refused = slow.snakemake("tables", check=False)
    assert "--unlock" in refused.stdout + refused.stderr  # what Snakemake asks for
    slow.snakemake("--unlock")
    slow.snakemake("--rerun-incomplete", "tables")
    finished_well(slow)


def test_a_second_copy_waits_and_ends_well(slow):
    run = json.loads(slow.moelaws("grid", "sparsity", "--json").stdout)[0]["run_id"]
    slow.snakemake("--until", "prepare_corpus")
    summary = f"results/runs/{run}/summary.json"
    shown = slow.snakemake("-n", "-p", summary, "--quiet", "host").stdout
    command = next(x for x in shown.splitlines() if "moelaws train" in x).partition(":")[2]
    copies = [
        subprocess.Popen(
            ["bash", "-c", command.partition(">>")[0]],
            cwd=slow.root,
            env={**slow.environment, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    ends = [copy.communicate(timeout=120) for copy in copies]
    assert [copy.returncode for copy in copies] == [0, 0], ends
    assert sum("waiting for" in errors for _, errors in ends) == 1
    assert json.loads((slow.root / summary).read_text())["status"] == "completed"
