"""Processes killed with real signals: the next call finishes, and no run is half-written."""

import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
import yaml

from sweep_copy import Copy
from waiting import wait_for

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


def finished_well(copy):
    assert len(copy.summaries()) == 4
    for path in copy.summaries():
        assert json.loads(path.read_text())["status"] == "completed"
    assert trainers(copy) == []


def test_jobs_that_end_after_snakemake_was_killed_are_done(slow):
    """Snakemake never learned that they ended, and still the same line makes the whole tier."""
    study = slow.study()
    study |= {kind: [] for kind in ("fits", "contests", "derived", "tables", "claims")}
    study["figures"] = [entry for entry in study["figures"] if entry["name"] == "F7"]
    slow.write_study(study)
    sweep = start(slow)
    wait_for(lambda: trainers(slow))
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.wait()
    orders = list((slow.root / "results/batches").glob("*.runs.json"))
    wait_for(lambda: all(p.with_name(p.name.replace(".runs", "")).exists() for p in orders))
    finished_well(slow)
    records = {path: path.stat().st_mtime_ns for path in slow.summaries()}
    refused = slow.snakemake(check=False)
    assert "--unlock" in refused.stdout + refused.stderr  # what Snakemake asks for
    slow.snakemake("--unlock")
    assert "train" not in slow.planned()
    slow.snakemake()
    assert (slow.root / "results/demo/report.html").exists()
    assert {path: path.stat().st_mtime_ns for path in slow.summaries()} == records
    assert slow.planned() == {}


def test_a_kill_excludes_no_run_of_a_round(slow):
    """Nor is a round charged for a run that fails twice."""
    words = ("next", "sparsity", "--target", "C=1e12", "--budget", "100%", "--rounds", "1")
    words += ("--cores", "1", "--workers", "4", "--law", "chinchilla", "--json")
    grid = json.loads(slow.moelaws("grid", "sparsity", "--json").stdout)
    broken, *others = (run["run_id"] for run in grid)
    (slow.root / f"results/runs/{broken}/history.parquet/in").mkdir(parents=True)
    program = Path(sys.executable).parent / "moelaws"
    loop = subprocess.Popen(
        [program, *words], cwd=slow.root, env=slow.environment, stdout=subprocess.PIPE
    )
    wait_for(lambda: trainers(slow))
    for process in psutil.Process(loop.pid).children(recursive=True):
        if any("results/batches/" in word for word in process.cmdline()):
            process.kill()
    state = json.loads(loop.communicate(timeout=300)[0])["state"]
    rounds = yaml.safe_load((slow.root / "config/studies/sparsity.rounds.yaml").read_text())
    assert rounds["failed"] == [broken]
    assert {path.parent.name for path in slow.summaries()} == set(others)
    costs = {one["run"]: one["cost"] for one in rounds["rounds"][0]["runs"]}
    assert f"{sum(costs[run] for run in others):.3g} FLOPs were spent" in state


def test_a_second_call_on_the_same_results_is_refused_and_the_first_ends_well(
    slow, tmp_path_factory
):
    """Its plan is of before, so it would remove what the first has made meanwhile."""
    clone = Copy(tmp_path_factory.mktemp("clone") / "copy")
    left_out = shutil.ignore_patterns("results", ".snakemake")
    shutil.copytree(slow.root, clone.root, symlinks=True, ignore=left_out)
    (clone.root / "results").symlink_to(slow.root / "results")
    sweep = start(slow, "tables")
    stopped = wait_for(lambda: trainers(slow))
    for trainer in stopped:  # so that the first call is at work for as long as this takes
        trainer.suspend()
    assert "train" in clone.planned("tables")  # a dry run may look on
    for second, words in ((clone, ["tables"]), (slow, ["tables", "--nolock"])):
        refused = second.snakemake(*words, check=False)
        assert refused.returncode != 0
        assert (
            f"process {sweep.pid}) is at work on results/demo; when it has ended" in refused.stderr
        )
    for trainer in stopped:
        trainer.resume()
    assert sweep.wait(timeout=120) == 0
    finished_well(slow)
    assert "train" not in clone.planned("tables")
    clone.snakemake("tables")


def test_ctrl_c_on_a_terminal_saves_what_trains(slow):
    call, terminal = pty.fork()
    if call == 0:
        os.chdir(slow.root)
        words = slow.command("tables")
        os.execve(words[0], words, slow.environment)
    shown = []

    def read():
        with contextlib.suppress(OSError):
            while text := os.read(terminal, 4096):
                shown.append(text)

    threading.Thread(target=read, daemon=True).start()
    wait_for(lambda: trainers(slow))
    time.sleep(1.0)
    os.write(terminal, b"\x03")
    (_, status) = wait_for(lambda: (end := os.waitpid(call, os.WNOHANG))[0] and end)
    assert os.waitstatus_to_exitcode(status) == 130
    said = b"".join(shown).decode().partition("interrupted (SIGINT); the call ends")[2]
    assert said.split("\n", 1)[1].strip() == ""
    assert trainers(slow) == []
    assert list((slow.root / "results/checkpoints").rglob("*")) or slow.summaries()
    os.close(terminal)
    slow.snakemake("tables")
    finished_well(slow)


def test_ctrl_c_while_snakemake_plans(slow):
    slow.edit("workflow/rules/corpora.smk", "^", "os.kill(os.getpid(), signal.SIGINT)\n")
    ended = slow.snakemake("tables", check=False)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (130, "moelaws: interrupted")
    assert "Error" not in ended.stderr
