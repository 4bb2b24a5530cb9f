"""The Multi-Process Service of a trainer: it begins and ends with it, however the trainer ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from moelaws.cli.gpu import worker_environments
from moelaws.gpus.listing import Gpu
from moelaws.gpus.mps import CONTROL, service
from waiting import wait_for

# Stands in for NVIDIA's program: a daemon is a process of its own, and "quit" ends that of the
# folder that the variable names. Each call is a line of the record.
STAND_IN = """#!/bin/sh
pipes=$CUDA_MPS_PIPE_DIRECTORY
echo "$1 $pipes $CUDA_MPS_LOG_DIRECTORY ${CUDA_VISIBLE_DEVICES-all}" >> %s
if [ "$1" = -d ]; then
    [ -z "$FAILS" ] || exit 1
    touch "$pipes/control"
    sleep 300 & echo $! > "$pipes/pid"
else
    read -r word
    [ "$word" = quit ] && kill "$(cat "$pipes/pid")" && rm "$pipes/control"
fi
"""
HOLDS = """
import time
from moelaws.gpus.mps import service
with service() as (variables, _):
    print(next(iter(variables.values())), flush=True)
    {then}
"""


@pytest.fixture
def record(tmp_path, monkeypatch):
    """The lines of the calls of the program on the PATH."""
    program = tmp_path / "bin" / CONTROL
    program.parent.mkdir()
    program.write_text(STAND_IN % (tmp_path / "calls"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path / "of-nobody"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    return lambda: [line.split(" ") for line in (tmp_path / "calls").read_text().splitlines()]


def test_it_runs_in_a_private_folder_while_the_block_does(record):
    with service() as (variables, said):
        assert said == "was started for them"
        folder = Path(variables["CUDA_MPS_PIPE_DIRECTORY"])
        assert folder.stat().st_mode & 0o777 == 0o700
        daemon = psutil.Process(int((folder / "pid").read_text()))
        assert daemon.is_running()
    wait_for(lambda: not daemon.is_running() or daemon.status() == psutil.STATUS_ZOMBIE)
    assert not folder.exists()
    assert record() == [[word, str(folder), str(folder), "all"] for word in ("-d", "")]


@pytest.mark.parametrize(
    ("then", "end"),
    [
        ("time.sleep(60)", signal.SIGTERM),
        ("time.sleep(60)", signal.SIGINT),
        ("time.sleep(60)", signal.SIGKILL),
        ("raise RuntimeError('a run failed')", None),
    ],
)
def test_it_ends_however_its_process_does(record, then, end):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS.format(then=then)], stdout=subprocess.PIPE, text=True
    )
    folder = Path(process.stdout.readline().strip())
    if end:
        daemon = psutil.Process(int((folder / "pid").read_text()))
        process.send_signal(end)
        assert psutil.wait_procs([daemon], timeout=60)[1] == []
    process.communicate(timeout=60)
    assert wait_for(lambda: not folder.exists())
    assert [call[0] for call in record()] == ["-d", ""]


def test_one_that_somebody_else_started_is_used_and_left_alone(record, tmp_path):
    (tmp_path / "of-nobody").mkdir()
    (tmp_path / "of-nobody" / "control").touch()
    with service() as (variables, said):
        assert (variables, said) == ({}, "runs")
    assert not (tmp_path / "calls").exists()


def test_where_it_does_not_start_the_runs_go_on_without(record, tmp_path, monkeypatch):
    monkeypatch.setenv("FAILS", "yes")
    with service() as (variables, said):
        assert variables == {}
        assert said.startswith("does not run, so they lose time")
    assert [call[0] for call in record()] == ["-d"]
    assert not list(tmp_path.glob("moelaws-mps-*"))
    (tmp_path / "bin" / CONTROL).unlink()
    with service() as (variables, said):
        assert (variables, said.split(",")[0]) == ({}, "does not run")


def test_only_workers_that_share_a_gpu_have_one(record, tmp_path):
    gpu = Gpu(0, "GPU-0", "H100", 8e10, 0.0, 0.0)
    with worker_environments((gpu, gpu), 2, 1) as workers:
        assert workers == [{"CUDA_VISIBLE_DEVICES": "GPU-0"}] * 2
    assert not (tmp_path / "calls").exists()
    with worker_environments((gpu,), 2, 2) as workers:
        (folder,) = {worker["CUDA_MPS_PIPE_DIRECTORY"] for worker in workers}
        assert Path(folder, "control").exists()
    assert [call[0] for call in record()] == ["-d", ""]


@pytest.mark.parametrize(("visible", "seen"), [("GPU-1,GPU-3", "GPU-1,GPU-3"), ("2,3", "all")])
def test_gpus_that_go_by_number_are_not_counted_anew(record, monkeypatch, visible, seen):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with service():
        pass
    assert record()[0][3] == seen
