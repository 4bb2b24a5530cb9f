"""`snakemake --config device=cuda` on a machine of two GPUs, which a program pretends to list."""

import json
import os
import re

import pytest

from moelaws.files.atomic import read_json
from moelaws.spec.project import load_study
from nvidia_smi import nvidia_smi
from repository import REPOSITORY
from sweep_copy import GRID

pytestmark = pytest.mark.slow

CALL = ("--cores", "6", "--config", "device=cuda")


@pytest.fixture
def sweep(fresh, tmp_path, monkeypatch):
    study = fresh.study()
    study["grids"]["demo"] = {
        **GRID, "sweeps": [{"axes": {"C": [1e9], "S": [0, 0.5], "d_model": [8, 12, 24]}}]
    }  # fmt: skip
    # Long enough that two jobs overlap on a busy machine
    study["grids"]["demo"]["settings"] = {**GRID["settings"], "max_epochs": 100}
    fresh.write_study(study)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("MOELAWS_PRETEND", "1")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    path = f"{fresh.root / 'src'}:{REPOSITORY / 'tests/pretender'}"
    environment = property(lambda copy: {**os.environ, "PYTHONPATH": path})
    monkeypatch.setattr(type(fresh), "environment", environment)
    return fresh


def test_all_gpus_work_without_another_option(sweep, tmp_path):
    nvidia_smi(tmp_path / "bin", [f"{i}, GPU-{i}, NVIDIA H100, 81559, 0, 0" for i in range(2)])
    plan = sweep.snakemake("-n", "--quiet", "host", *CALL, "batch_minutes=0", "--", "runs").stdout
    jobs = plan.count("rule train:")
    assert plan.count("threads: 3") == jobs > 1, "cores are shared out"
    assert not re.search(r"\bgpu=", plan)
    output = sweep.snakemake(*CALL, "runs_per_gpu=4", "batch_minutes=0.3", "--", "runs")
    said = output.stdout + output.stderr
    assert "trains on GPU 0 (NVIDIA H100), 1 (NVIDIA H100)\n" in said
    origins = [read_json(path.with_name("provenance.json")) for path in sweep.summaries()]
    assert len(origins) == 6
    assert {origin["cuda_visible_devices"] for origin in origins} == {"GPU-0", "GPU-1"}
    assert 0.5 in {origin["gpu_share"] for origin in origins} <= {None, 0.5}
    assert {origin["threads"] for origin in origins} <= {1, 3}  # of 6 cores for 2 GPUs
    logs = [log.read_text() for log in (sweep.root / "results/logs/batches").iterdir()]
    assert all(re.search(r"on GPU [01]: NVIDIA H100 \(GPU-[01]\)", log) for log in logs)


def test_where_there_is_no_gpu_a_start_is_refused_and_a_plan_is_not(sweep, tmp_path):
    nvidia_smi(tmp_path / "bin", [], "echo 'No devices were found'; exit 6")
    assert sweep.planned(*CALL, "batch_minutes=0", "--", "runs")["train"] > 1
    done = sweep.snakemake(*CALL, "--", "runs", check=False)
    assert done.returncode != 0
    assert "nvidia-smi cannot list the GPUs: No devices were found" in done.stdout + done.stderr
    assert sweep.summaries() == []


def test_a_cluster_is_asked_for_gpus_and_no_lock_is_taken(sweep):
    """One for each job, or as many as a job trains on side by side."""
    words = ("-np", "--quiet", "host", "--profile", "slurm", "--config", "device=cuda")
    (sweep.root / "profiles/slurm/site.yaml").write_text("max_minutes: 9\n")
    alone = sweep.snakemake(*words, "batch_minutes=0", "--", "runs").stdout
    assert alone.count(" gpu=1,") == alone.count("exec moelaws train") == 6
    node = ("gpus_per_job=8", "batch_minutes=1", "gpu_model=h100")
    together = sweep.snakemake(*words, *node, "--", "runs").stdout
    assert together.count("exec moelaws train") == 1
    assert together.count(" gpu=6,") == together.count("gpu_model=h100") == 1
    assert together.count("--workers 6 ") == together.count("nodes=1") == 1
    assert together.count("runtime=9,") == 1
    for plan in (alone, together):
        assert "--gpus" not in plan


def test_kept_runs_are_scored_and_probed_on_gpus(sweep, tmp_path):
    nvidia_smi(tmp_path / "bin", [f"{i}, GPU-{i}, NVIDIA H100, 81559, 0, 0" for i in range(2)])
    study, whole = sweep.study(), load_study("sparsity", REPOSITORY)
    study["keep_weights"] = "d_model >= 12"
    study["grids"]["demo"]["settings"]["evaluation_sequences"] = 128
    entry = whole.derived_table("downstream").model_dump(by_alias=True, exclude_defaults=True)
    study["derived"].append(json.loads(json.dumps(entry | {"hidden": True})))
    sweep.write_study(study)
    table = "results/demo/derived/sparsity/downstream.parquet"
    cluster = ("--profile", "slurm", "--config", "device=cuda", "gpu_model=h100", "--", table)
    plan = sweep.snakemake("-np", "--quiet", "host", *cluster).stdout
    for verb in ("train", "bench", "probe"):
        (job,) = (text for text in plan.split("rule ") if f"moelaws {verb} " in text)
        assert re.search(r"\bgpu=1, .*\bgpu_model=h100", job), verb
        assert "--device cuda --marker" in re.sub("--workers.*--spans", "", job) or verb == "train"
    sweep.snakemake(*CALL, "--", table)
    for kind in ("scores", "hidden"):
        logs = list((sweep.root / f"results/logs/{kind}").iterdir())
        assert logs
        assert all(re.match(r"on GPU [01]: NVIDIA H100 \(", log.read_text()) for log in logs)


def test_a_run_on_several_nodes_asks_for_equally_many_gpus_on_each(sweep):
    study = sweep.study()
    grid = study["grids"]["demo"]
    grid["settings"] = grid["settings"] | {"balance_group": 1}
    grid["sweeps"] = [{"axes": {"C": [2e8], "S": 0.5, "d_model": [12]}}]
    sweep.write_study(study)
    words = ("-n", "--quiet", "host", "--profile", "slurm")
    keys = ("--config", "device=cuda", "devices_per_run=4", "gpus_per_node=2", "--", "runs")
    plan = sweep.snakemake(*words, *keys).stdout
    (asked,) = re.findall(r"resources: (.*\bdevices=4.*)", plan)
    assert {"gpu=0", "gres=gpu:2", "nodes=2", "spans=2"} <= set(asked.split(", "))
    plan = sweep.snakemake(*words, *keys[:-2], "gpu_model=h100", *keys[-2:]).stdout
    assert "gres=gpu:h100:2" in plan
    plan = sweep.snakemake(*words, *keys[:-3], "gpus_per_node=4", *keys[-2:]).stdout
    assert re.search(r"\bgpu=4\b", plan)
    assert "gres" not in plan


def test_a_run_on_several_gpus_has_them_to_itself(sweep, tmp_path):
    nvidia_smi(tmp_path / "bin", [f"{i}, GPU-{i}, NVIDIA H100, 81559, 0, 0" for i in range(3)])
    study = sweep.study()
    grid = study["grids"]["demo"]
    grid["settings"] = grid["settings"] | {"balance_group": 1}
    grid["sweeps"] = [{"axes": {"C": [2e8], "S": [0, 0.5], "d_model": [12]}}]
    sweep.write_study(study)
    sweep.snakemake(*CALL, "devices_per_run=2", "runs_per_gpu=4", "--", "runs")
    origins = [read_json(path.with_name("provenance.json")) for path in sweep.summaries()]
    assert [origin["devices"] for origin in origins] == [2, 2]
    assert {origin["gpu_share"] for origin in origins} == {None}
    assert {len(origin["cuda_visible_devices"].split(",")) for origin in origins} == {2}
    assert {origin["threads"] for origin in origins} == {2}  # of 4 of 6 cores for its 2 of 3 GPUs
    again = sweep.snakemake("-n", *CALL, "batch_minutes=0", "--", "runs")
    assert "Nothing to be done" in again.stdout + again.stderr
    done = sweep.snakemake(*CALL, "devices_per_run=4", "gpus=0,1", "--", "runs", check=False)
    assert done.returncode == 0, "what is done needs no GPU"
