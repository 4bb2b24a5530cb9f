"""`snakemake --profile slurm` on a real Slurm: a small sweep, one of its jobs cut off."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from one_node import lacking, one_node

from moelaws.accounting.cost import CPU, estimate
from moelaws.spec.run import RunConfig
from repository import copy_repository

pytestmark = pytest.mark.slow

GRID = {
    "settings": {
        "context": 32, "vocab_size": 300, "n_layers": 1, "n_heads": 1, "top_k": 2, "d_expert": 16,
        "tied_embeddings": True, "batch": 4, "lr": 0.01, "evaluation_sequences": 32,
        "max_epochs": 1000,
    },
    "derive": {
        "n_experts": {"rule": "sparsity"},
        "steps": {"rule": "compute", "convention": "sparsity", "min_steps": 5},
    },
    "sweeps": [
        {"axes": {"C": [5e8, 1e9], "S": [0, 0.75], "d_model": 16}},
        # Long enough to be cut off, and larger, so that it asks for more.
        {"axes": {"C": 1.5e11, "S": 0.75, "d_model": 32}},
    ],
}  # fmt: skip
SITE = {
    "default-resources": {"slurm_partition": "urgent"},
    "slurm-init-seconds-before-status-checks": 3,
}


@dataclass
class Sweep:
    root: Path
    environment: dict[str, str]

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", "--profile", "slurm", *words, "--", "tables"]

    def snakemake(self, *words: str) -> str:
        done = subprocess.run(
            self.command(*words), cwd=self.root, env=self.environment,
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def slurm(self, *words: str) -> str:
        return subprocess.run(
            words, env=self.environment, capture_output=True, text=True, check=True, timeout=60
        ).stdout

    def jobs(self) -> list[dict[str, str]]:
        """The jobs that Slurm knows, by its own names of their properties."""
        lines = self.slurm("scontrol", "show", "job", "-o").splitlines()
        return [dict(re.findall(r"(\w+)=(\S*)", line)) for line in lines if "JobId" in line]

    def records(self, name: str) -> dict[str, dict]:
        """run_id -> the content of a file of its folder."""
        files = (self.root / "results/runs").glob(f"*/{name}")
        return {file.parent.name: json.loads(file.read_text()) for file in files}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A copy of the repository whose small sweep ran through Slurm, one job of it cancelled."""
    if why := lacking():
        pytest.skip(why)
    root = tmp_path_factory.mktemp("slurm")
    copy_repository(root)
    shutil.copytree(Path(sysconfig.get_path("stdlib")) / "asyncio", root / "text")
    (root / "config/config.yaml").write_text("corpus: [text/*.py]\n")
    study = {"study": "sparsity", "title": "Some small runs", "grids": {"demo": GRID}}
    shutil.rmtree(root / "config/studies")
    (root / "config/studies").mkdir()
    (root / "config/studies/sparsity.yaml").write_text(yaml.safe_dump(study))
    (root / "profiles/slurm/site.yaml").write_text(yaml.safe_dump(SITE))
    with one_node() as environment:
        environment = {**environment, "PYTHONPATH": str(root / "src")}
        sweep = Sweep(root, environment)
        sweep.plan = sweep.snakemake("-n", "--quiet", "host")
        with (root / "first.txt").open("w") as output:
            process = subprocess.Popen(
                sweep.command(), cwd=root, env=environment, stdout=output, stderr=output
            )
        try:
            sweep.cancelled = _cut_off_the_longest(sweep, process)
            assert process.wait(300) == 0, (root / "first.txt").read_text()
        finally:
            process.kill()
            process.wait()
        yield sweep


def _cut_off_the_longest(sweep: Sweep, process: subprocess.Popen) -> dict[str, str]:
    """Cancels the job of the run with the most FLOPs once it trains; returns it as it was."""
    deadline = time.monotonic() + 240
    while process.poll() is None and time.monotonic() < deadline:
        for run, config in sweep.records("config.json").items():
            if config["model"]["d_model"] == 32 and "/" in _log(sweep, run):
                (job,) = [job for job in sweep.jobs() if job["Comment"].endswith(run)]
                sweep.slurm("scancel", job["JobId"])
                return {**job, "run": run}
        time.sleep(0.5)
    raise AssertionError((sweep.root / "first.txt").read_text())


def _log(sweep: Sweep, run: str) -> str:
    """Lines on steps; the trainer writes one each few seconds."""
    file = sweep.root / "results/runs" / run / "log"
    return "".join(re.findall(r"step \d+/\d+", file.read_text())) if file.exists() else ""


def test_every_run_completed_in_a_job_of_its_own(sweep):
    summaries, provenance = sweep.records("summary.json"), sweep.records("provenance.json")
    assert [s["status"] for s in summaries.values()] == ["completed"] * 5
    done = {job["JobId"]: job for job in sweep.jobs() if job["JobState"] == "COMPLETED"}
    by = {run: provenance[run]["job"] for run in summaries}
    assert sorted(by.values()) == sorted(done)
    assert all(done[job]["Comment"].endswith(run) for run, job in by.items())


def test_only_training_went_to_the_nodes(sweep):
    assert (sweep.root / "results/demo/tables/sparsity.parquet").is_file()
    assert len(list((sweep.root / "results/corpora").glob("*/meta.json"))) == 1
    assert {job["Comment"].partition("_wildcards")[0] for job in sweep.jobs()} == {"rule_train"}


def test_the_site_file_says_where(sweep):
    assert {job["Partition"] for job in sweep.jobs()} == {"urgent"}


def test_jobs_ask_for_what_their_run_is_estimated_to_need(sweep):
    planned = _planned(sweep.plan)
    for run, data in sweep.records("config.json").items():
        need = estimate(RunConfig.model_validate(data), CPU)
        first = min(
            (job for job in sweep.jobs() if job["Comment"].endswith(run)),
            key=lambda job: int(job["JobId"]),
        )
        assert (_megabytes(first), _minutes(first)) == planned[run]
        assert _megabytes(first) * 1e6 > need.host_bytes
        assert _minutes(first) * 60 > need.seconds
        assert "gpu" not in first["TRES"]
    largest = sweep.cancelled["run"]
    assert planned[largest] > max(planned[run] for run in planned if run != largest)


def test_a_run_cut_off_goes_on_in_another_job_with_twice_of_both(sweep):
    run, before = sweep.cancelled["run"], sweep.cancelled
    last = sweep.records("provenance.json")[run]["job"]
    assert last != before["JobId"]
    states = {job["JobId"]: job for job in sweep.jobs()}
    assert states[before["JobId"]]["JobState"] == "CANCELLED"
    assert _megabytes(states[last]) == 2 * _megabytes(before)
    assert _minutes(states[last]) == 2 * _minutes(before)
    log = (sweep.root / "results/runs" / run / "log").read_text()
    resumed = re.search(r"resumed at step (\d+)/", log)
    assert resumed
    assert int(resumed[1]) > 0


def test_a_second_call_has_nothing_to_do(sweep):
    jobs = len(sweep.jobs())
    assert "Nothing to be done" in sweep.snakemake()
    assert len(sweep.jobs()) == jobs


def test_a_gpu_is_asked_for_where_the_device_is_one(sweep):
    assert "gpu=1" not in sweep.plan
    plan = sweep.snakemake("-n", "--quiet", "host", "--config", "device=cuda", "seed=1")
    assert plan.count("gpu=1") == plan.count("rule train:") == 5


def _planned(plan: str) -> dict[str, tuple[int, int]]:
    """run_id -> megabytes and minutes, as a dry run shows them."""
    rows = re.findall(r"run=(\w{16})\n +resources: .*?mem_mb=(\d+),.*?runtime=(\d+)", plan)
    return {run: (int(megabytes), int(minutes)) for run, megabytes, minutes in rows}


def _megabytes(job: dict[str, str]) -> int:
    number, unit = re.search(r"mem=(\d+)([MG])", job["TRES"] + job.get("ReqTRES", "")).groups()
    return int(number) * {"M": 1, "G": 1024}[unit]


def _minutes(job: dict[str, str]) -> int:
    hours, minutes, _ = job["TimeLimit"].rpartition("-")[2].split(":")
    return int(hours) * 60 + int(minutes)
