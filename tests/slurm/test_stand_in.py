"""The executor for Slurm with our additions, among programs that answer as a cluster's do."""

import asyncio
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.iocontainers import ResourceList
from snakemake_executor_plugin_slurm import Executor, ExecutorSettings

from moelaws.workflow import slurm

# `sbatch` notes its words. A file `away` is a controller that does not answer, `no` its refusal.
PROGRAMS = {
    "sbatch": """echo "$@" >> calls
[ -e away ] && { echo "sbatch: error: Unable to contact slurm controller" >&2; exit 1; }
[ -e no ] && { echo "sbatch: error: QOSMaxSubmitJobPerUserLimit" >&2; exit 1; }
echo 7""",
    "squeue": "[ -e away ] && exit 1; cat queue",
    "sinfo": "[ -e away ] && exit 1; cat partitions",
    "scontrol": 'echo "MinJobAge = 2 ExitCode=0:9"',
    "sacct": "[ -e database ]",
}


class Job(SimpleNamespace):
    __hash__ = object.__hash__


class Cluster:
    """What the executor tells Snakemake, and the one job that it sends."""

    def __init__(self):
        self.said, self.ends, self.waits = [], [], []
        self.settings = ExecutorSettings(status_command="squeue")
        slurm.check(self.settings)
        scheduler = SimpleNamespace(
            submit_callback=lambda job: self.ends.append("submitted"),
            finish_callback=lambda job: self.ends.append("done"),
            error_callback=lambda job: self.ends.append("failed"),
        )
        workflow = SimpleNamespace(
            dag=None, scheduler=scheduler, executor_settings=self.settings,
            main_snakefile="Snakefile",
            remote_execution_settings=SimpleNamespace(
                max_status_checks_per_second=10, jobname="{jobid}", jobscript=None,
                seconds_between_status_checks=10,
            ),
            storage_settings=SimpleNamespace(shared_fs_usage=()), workdir_init=".",
            executor_plugin=SimpleNamespace(
                common_settings=SimpleNamespace(init_seconds_before_status_checks=10**6)
            ),
        )  # fmt: skip
        logger = SimpleNamespace(**dict.fromkeys(("debug", "info", "error"), lambda *_, **__: None))
        logger.warning = self.said.append
        words = {"format_job_exec": lambda self, job: "true"}
        self.executor = type("Executor", (slurm.Patient, Executor), words)(workflow, logger)
        self.executor.stopped = SimpleNamespace(wait=self.wait, is_set=lambda: False)
        self.job = Job(
            name="train", rule=SimpleNamespace(name="train"), output=["marker"], log=["job.log"],
            resources=ResourceList(fromdict={"runtime": 34, "mem_mb": 9000}),
            attempt=1, restart_times=2, jobid=1, threads=1, wildcards_dict={},
            is_group=lambda: False, register=lambda **_: None, log_info=lambda: None,
            log_error=lambda msg, **more: self.said.append(msg),
        )  # fmt: skip

    def wait(self, seconds):
        """Takes no time; the controller is back after the third."""
        self.waits.append(seconds)
        if len(self.waits) == 3:
            Path("away").unlink()
        return False

    def send(self):
        self.executor.run_job_pre(self.job)
        self.executor.run_job(self.job)

    def look(self):
        """Returns the jobs that go on after a look at the queue."""

        async def left():
            jobs = list(self.executor.active_jobs)
            return [info.external_jobid async for info in self.executor.check_active_jobs(jobs)]

        return asyncio.run(left())

    def wait_for(self, *ends):
        deadline = time.monotonic() + 20
        while self.ends != [*ends] and time.monotonic() < deadline:
            time.sleep(0.02)
        assert self.ends == [*ends]

    def calls(self):
        return Path("calls").read_text().splitlines()


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    for name, text in PROGRAMS.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    Path("partitions").write_text("normal*|15:00|8000\nlong|2-00:00:00|4000\nlong|infinite|16000\n")
    Path("queue").touch()
    return Cluster()


@pytest.mark.parametrize(
    ("partition", "asked"),
    [
        ("", ("15", "8000")),
        ("long", ("34", "9000")),
        ("normal,long", ("34", "9000")),
        ("other", ("34", "9000")),
    ],
)
def test_no_job_asks_for_more_than_its_partition_has(cluster, partition, asked):
    cluster.job.resources.slurm_partition = partition
    cluster.send()
    (call,) = cluster.calls()
    assert f" -t {asked[0]} --mem {asked[1]} " in call


def test_a_controller_that_is_away_is_waited_for(cluster):
    cluster.send()
    Path("away").touch()
    assert cluster.look() == ["7"], "the executor alone would drop the job"
    cluster.send()
    cluster.wait_for("submitted", "submitted")
    assert cluster.waits == [slurm.AGAIN] * 3
    assert len([said for said in cluster.said if "controller does not answer" in said]) == 1


def test_a_refused_job_is_tried_again_after_a_while_and_at_last_fails_at_once(cluster):
    Path("no").touch()
    for attempt in (1, 2, 3):
        cluster.job.attempt = attempt
        cluster.send()
    assert cluster.ends == ["failed"] * 3
    assert cluster.waits == [slurm.AGAIN] * 2
    assert "QOSMaxSubmitJobPerUserLimit" in cluster.said[-1]


@pytest.mark.parametrize("state", ["", "7|FAILED|TimeLimit", "7|PREEMPTED|None"])
def test_a_job_whose_marker_is_there_is_done_whatever_slurm_says(cluster, state):
    Path("marker").touch()
    os.utime("marker", (1, 1))  # of an earlier job
    cluster.send()
    Path("marker").touch()
    Path("queue").write_text(state)
    assert cluster.look() == []
    assert cluster.ends == ["submitted", "done"]


@pytest.mark.parametrize("state", ["", "7|PREEMPTED|None"])
def test_a_job_that_slurm_has_forgotten_without_a_marker_has_failed(cluster, monkeypatch, state):
    Path("marker").touch()  # of an earlier job
    cluster.send()
    Path("queue").write_text(state)
    assert cluster.look() == ["7"]
    monkeypatch.setattr(slurm, "GONE", 0)
    assert cluster.look() == []
    assert cluster.ends == ["submitted", "failed"]


def test_a_job_that_can_never_start_is_told_once_with_the_reason(cluster):
    cluster.send()
    Path("queue").write_text("7|PENDING|Priority")
    cluster.look()
    assert not any("cannot start" in said for said in cluster.said)
    Path("queue").write_text("7|PENDING|PartitionTimeLimit")
    assert cluster.look() == cluster.look() == ["7"]
    (said,) = [said for said in cluster.said if "cannot start" in said]
    assert "Slurm job 7 (train) cannot start: PartitionTimeLimit" in said
    assert "max_minutes" in said


def test_of_a_killed_job_slurms_own_line_and_the_signal_are_shown(cluster):
    Path("job.log").write_text("6 runs have a summary")
    cluster.send()
    assert not Path("job.log").exists()
    (info,) = cluster.executor.active_jobs
    info.aux["slurm_logfile"].write_text(
        "slurmstepd-node1: error: Exceeded job memory limit\n"
        "srun: error: node1: task 0: Exited with exit code 1\n"
    )
    Path("queue").write_text("7|OUT_OF_MEMORY|OutOfMemory")
    assert cluster.look() == []
    said = (
        "ended by SIGKILL (9), usually for lack of memory. Slurm wrote: Exceeded job memory limit."
    )
    assert said in cluster.said[-1]
