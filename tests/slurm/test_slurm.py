"""`snakemake --profile slurm` on a real Slurm: a job trains a batch, and one job is cut off."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from one_node import lacking, one_node

from moelaws.accounting.cost import CPU, estimate
from moelaws.records.batches import Orders
from moelaws.spec.run import RunConfig
from moelaws.workflow.jobs import Jobs
from nvidia_smi import nvidia_smi
from repository import REPOSITORY
from sweep_copy import Copy

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
}  # fmt: skip
SHORT = {"axes": {"C": [5e8, 1e9], "S": [0, 0.75], "d_model": 16}}
# Long enough to be cut off, and larger, so that they ask for more.
LONG = {"axes": {"C": 1.8e11, "S": 0.75, "d_model": 32, "seed": [0, 1]}}
ALONE = {"axes": {"C": 5e8, "S": 0, "d_model": 24}}
SITE = {
    "default-resources": {"slurm_partition": "urgent"},
    "slurm-init-seconds-before-status-checks": 3,
}


class Sweep(Copy):
    """A copy of the repository whose jobs go to the Slurm of its ``environment``."""

    environment: dict[str, str] = {}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", "--profile", "slurm", *words, "--", "tables"]

    def slurm(self, *words: str) -> str:
        return subprocess.run(
            words, env=self.environment, capture_output=True, text=True, check=True, timeout=60
        ).stdout

    def jobs(self) -> list[dict[str, str]]:
        """The jobs that Slurm knows, by its own names of their properties."""
        lines = self.slurm("scontrol", "show", "job", "-o").splitlines()
        return [dict(re.findall(r"(\w+)=(\S*)", line)) for line in lines if "JobId" in line]

    def trains(self, run: str) -> bool:
        """Whether its log has a step; the trainer writes one each few seconds."""
        file = self.root / "results/runs" / run / "log"
        return file.exists() and "step " in file.read_text()

    def records(self, name: str) -> dict[str, dict]:
        """run_id -> the content of a file of its folder."""
        files = (self.root / "results/runs").glob(f"*/{name}")
        return {file.parent.name: json.loads(file.read_text()) for file in files if file.is_file()}


def write_study(root: Path, name: str, *sweeps: dict, **settings: object) -> None:
    grid = {**GRID, "settings": GRID["settings"] | settings, "sweeps": sweeps}
    study = {"study": name, "title": "Some runs", "grids": {"demo": grid}}
    (root / f"config/studies/{name}.yaml").write_text(yaml.safe_dump(study))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A copy of the repository whose small sweep ran through Slurm.

    The job of one of its two longest runs was cancelled while it trained.
    """
    if why := lacking():
        pytest.skip(why)
    root = tmp_path_factory.mktemp("slurm")
    sweep = Sweep.of_repository(root)
    sweep.edit("config/config.yaml", "studies: .*", "studies: [alone, sparsity]")
    write_study(root, "sparsity", SHORT, LONG)
    write_study(root, "alone", ALONE)
    (root / "profiles/slurm/site.yaml").write_text(yaml.safe_dump(SITE))
    with one_node() as environment:
        sweep.environment = {**environment, "PYTHONPATH": str(root / "src")}
        with (root / "first.txt").open("w") as output:
            process = subprocess.Popen(
                sweep.command(), cwd=root, env=sweep.environment, stdout=output, stderr=output
            )
        try:
            sweep.cancelled = _cut_off_the_longest(sweep, process)
            assert process.wait(600) == 0, (root / "first.txt").read_text()
        finally:
            process.kill()
            process.wait()
        yield sweep


def _cut_off_the_longest(sweep: Sweep, process: subprocess.Popen) -> dict[str, str]:
    """Cancels the job of a long run once it trains; returns it, and notes what was done."""
    deadline = time.monotonic() + 240
    while process.poll() is None and time.monotonic() < deadline:
        for run in filter(sweep.trains, _long(sweep)):
            (job,) = [job for job in sweep.jobs() if job["Comment"].endswith(_batch_of(sweep, run))]
            sweep.slurm("scancel", job["JobId"])
            sweep.victim, sweep.done = run, sweep.records("summary.json").keys()
            return job
        time.sleep(0.5)
    raise AssertionError((sweep.root / "first.txt").read_text())


def _batches(sweep: Sweep) -> dict[str, list[str]]:
    """digest -> the runs of a batch."""
    files = (sweep.root / "results/batches").glob("*.runs.json")
    orders = {file.name.partition(".")[0]: Orders.read(file).runs for file in files}
    return {batch: [order.config.run_id for order in runs] for batch, runs in orders.items()}


def _batch_of(sweep: Sweep, run: str) -> str:
    (batch,) = [batch for batch, runs in _batches(sweep).items() if run in runs]
    return batch


def _long(sweep: Sweep) -> list[str]:
    configs = sweep.records("config.json")
    return sorted(run for run, config in configs.items() if config["model"]["d_model"] == 32)


def test_a_job_trains_a_batch_and_each_run_has_its_own_record(sweep):
    summaries, provenance = sweep.records("summary.json"), sweep.records("provenance.json")
    assert [s["status"] for s in summaries.values()] == ["completed"] * 7
    comments = {job["JobId"]: job["Comment"] for job in sweep.jobs()}
    for run in summaries:
        assert comments[provenance[run]["job"]] == f"rule_train_wildcards_{_batch_of(sweep, run)}"
    batches = _batches(sweep)
    assert len(batches) < 7
    assert len(sweep.jobs()) == len(batches) + 1  # one was cut off
    assert {job["Partition"] for job in sweep.jobs()} == {"urgent"}  # as the site file says


def test_jobs_ask_for_what_their_runs_are_estimated_to_need(sweep):
    configs = sweep.records("config.json")
    for batch, runs in _batches(sweep).items():
        job = next(job for job in sweep.jobs() if job["Comment"].endswith(batch))
        needs = [estimate(RunConfig.model_validate(configs[run]), CPU) for run in runs]
        assert _megabytes(job) * 1e6 > max(need.host_bytes for need in needs)
        assert _minutes(job) * 60 > 600 + sum(need.seconds for need in needs)
        assert "TresPerJob" not in job
        assert job["NumCPUs"] == "1"


def test_a_run_cut_off_goes_on_in_another_job_with_twice_of_both(sweep):
    before, states = sweep.cancelled, {job["JobId"]: job for job in sweep.jobs()}
    assert states[before["JobId"]]["JobState"] == "CANCELLED"
    last = states[sweep.records("provenance.json")[sweep.victim]["job"]]
    assert last["JobId"] != before["JobId"]
    assert _megabytes(last) == 2 * _megabytes(before)
    assert _minutes(last) == 2 * _minutes(before)
    log = (sweep.root / "results/runs" / sweep.victim / "log").read_text()
    resumed = re.search(r"resumed at step (\d+)/", log)
    assert resumed
    assert int(resumed[1]) > 0


def test_runs_share_a_jobs_gpu_and_one_that_fails_leaves_the_others_alone(sweep, tmp_path):
    """The program that lists the GPU is a test's, and training computes on the CPU."""
    nvidia_smi(tmp_path / "bin", ["0, GPU-0, NVIDIA H100, 81559, 0, 0"])
    write_study(sweep.root, "alone", {"axes": {"C": 5e8, "S": [0, 0.5, 0.75, 0.875], "d_model": 8}})
    sweep.environment |= {
        "PATH": f"{tmp_path / 'bin'}:{sweep.environment['PATH']}",
        "PYTHONPATH": f"{sweep.root / 'src'}:{REPOSITORY / 'tests/pretender'}",
        "MOELAWS_PRETEND": "1",
    }
    call = ("--config", "device=cuda", "studies=alone", "runs_per_gpu=2", "batch_minutes=30")
    runs = [run.run_id for run in Jobs.load({"studies": "alone"}, sweep.root).runs.values()]
    obstacle = sweep.root / "results/runs" / runs[0] / "config.json"
    obstacle.mkdir(parents=True)
    done = sweep.snakemake("--retries", "0", *call, check=False)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert f"run {runs[0]} failed: it ended with exit code 2; its log" in said
    assert "config.json: cannot be written: Is a directory" in said
    origins = [sweep.records("provenance.json")[run] for run in runs[1:]]
    (first,) = {origin["job"] for origin in origins}
    (asked,) = [job for job in sweep.jobs() if job["JobId"] == first]
    assert asked["TresPerJob"] == "gres:gpu:1"
    assert asked["NumCPUs"] == "2"
    # Only that run is left.
    obstacle.rmdir()
    assert "jobs to do: 3 (train 1, aggregate 1, tables 1)" in sweep.snakemake(*call).stderr
    last = sweep.records("provenance.json")
    assert last[runs[0]]["job"] != first
    assert {last[run]["job"] for run in runs[1:]} == {first}


def test_two_processes_of_a_job_train_a_run_together(sweep):
    write_study(sweep.root, "alone", ALONE, balance_group=1)
    sweep.snakemake("--config", "studies=alone", "devices_per_run=2", "seed=7")
    origins = sweep.records("provenance.json")
    (run,) = [run for run, origin in origins.items() if origin["devices"] == 2]
    assert sweep.records("summary.json")[run]["status"] == "completed"
    (job,) = [job for job in sweep.jobs() if job["JobId"] == origins[run]["job"]]
    assert (job["NumNodes"], job["NumCPUs"]) == ("1", "2")


def _megabytes(job: dict[str, str]) -> int:
    number, unit = re.search(r"mem=(\d+)([MG])", job["TRES"] + job.get("ReqTRES", "")).groups()
    return int(number) * {"M": 1, "G": 1024}[unit]


def _minutes(job: dict[str, str]) -> int:
    hours, minutes, _ = job["TimeLimit"].rpartition("-")[2].split(":")
    return int(hours) * 60 + int(minutes)
