"""A user's own study, one that advice writes, one whose configurations are timed side by side, and
a machine without Slurm, by real Snakemake."""

import json
import os
import re
import shlex
import shutil

import pandas as pd
import pytest
import yaml

from moelaws.files.parquet import read_origin
from own_study import write_study
from sweep_copy import Copy

pytestmark = pytest.mark.slow


@pytest.fixture
def copy(tmp_path):
    return Copy.of_repository(tmp_path / "copy")


def test_a_study_may_lie_anywhere_and_its_path_be_spelled_in_any_way(copy, tmp_path):
    folder = tmp_path / 'our étude 🎲, it\'s "c": #1'
    write_study(folder, "package", "derived", "fits", "figures", "claims")
    (folder / "study.yaml").rename(folder / "étude.yaml")
    near = os.path.relpath(folder / "étude.yaml", copy.root)
    quoted = near.replace("'", "''")
    copy.snakemake("--config", f"studies=['{quoted}']")
    assert "Data" in (copy.root / "results/demo/report.html").read_text()
    copy.edit("config/config.yaml", "studies: .*", f"studies: ['{quoted}']")
    assert copy.planned() == {}
    far = str(folder / "étude.yaml").replace("'", "''")
    assert copy.planned("--config", f"studies=['{far}']") == {}
    done = copy.moelaws("archive", "--to", "a.zip")
    assert done.returncode == 0, done.stderr
    unpacked = Copy(tmp_path / "unpacked")
    shutil.unpack_archive(copy.root / "a.zip", unpacked.root)
    shutil.copytree(copy.root / "text", unpacked.root / "text")
    (line,) = re.findall(
        "snakemake --cores all -n (.*)", (unpacked.root / "README.txt").read_text()
    )
    assert "étude" in line
    assert "train" not in unpacked.planned(*shlex.split(line))


def test_the_sweep_that_advice_writes_is_planned_simulated_and_fitted(copy):
    """Its fits are those that its runs determine, so that none fails after the trainings."""
    words = ["advise", "--compute", "1e22", "--write-study", "settle"]
    done = copy.moelaws(*words)
    assert done.returncode == 0, done.stderr
    assert "settle.yaml: `moelaws plan settle.yaml --tier gpu` tells more" in done.stdout
    study = yaml.safe_load((copy.root / "settle.yaml").read_text())
    fits = {entry["name"] for entry in study["fits"]}
    assert {"chinchilla", "wang_loss"} <= fits
    assert "comprehensive" not in fits  # all runs have 2 active and no shared experts
    assert "# Not fitted is comprehensive: the " in (copy.root / "settle.yaml").read_text()
    planned = copy.moelaws("plan", "settle.yaml", "--tier", "gpu", "--all")
    assert planned.returncode == 0, planned.stderr
    assert "cannot be fitted" not in planned.stdout
    runs = json.loads(copy.moelaws(*words[:3], "--json").stdout)["sweeps"][0]["runs"]
    assert f"at {runs} runs, noise" in planned.stdout
    copy.snakemake("--config", "studies=settle.yaml", "tier=gpu", "source=simulated")
    reports = copy.root / "results/gpu/simulated/fits/settle"
    assert {path.stem for path in reports.glob("*.json")} == fits
    again = copy.moelaws(*words)
    assert (again.returncode, "settle.yaml is there already" in again.stderr) == (2, True)


@pytest.mark.skipif(shutil.which("sbatch") is not None, reason="there is a Slurm here")
def test_a_machine_without_slurm_is_told(copy):
    done = copy.snakemake("--profile", "slurm", "--", "runs", check=False)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert re.match("moelaws: sbatch.* of Slurm cannot be found here; ", last)
    assert "Traceback" not in done.stderr
    assert not list(copy.root.glob(".snakemake/locks/*"))
    assert not (copy.root / "results/runs").exists()


SPEED = "results/demo/speed/dense.parquet"
TIMES = "results/demo/derived/dense/times.parquet"
CODE = """
from moelaws.analysis.derive import table
from moelaws.tables.column import Column


@table(
    Column("d_model", "int", "1", "width"),
    Column("step_seconds", "float", "s", "time of a step"),
)
def derive(inputs):
    return inputs.table.merge(inputs.speed(), on="run_id")
"""


def test_a_row_for_each_architecture_and_a_table_made_of_them(tmp_path):
    """`speed: true`: they are timed once, and a table reads that."""
    timed = Copy.of_repository(tmp_path)
    write_study(tmp_path / "ours", "package", "derived")
    (tmp_path / "ours/dense/derived/times.py").write_text(CODE)
    path = tmp_path / "ours/study.yaml"
    study = yaml.safe_load(path.read_text())
    axes = {"steps": [5, 10], "d_model": [8, 16], "d_ffn": 16}
    study["grids"]["demo"]["sweeps"] = [{"axes": axes}]
    study["derived"] = [{"name": "times", "code": "derived.times:derive", "speed": True}]
    path.write_text(yaml.safe_dump(study))
    timed.edit("config/config.yaml", r"studies: .*", "studies: [ours/study.yaml]")
    timed.snakemake(TIMES)
    assert len(timed.summaries()) == 4
    speeds, times = (pd.read_parquet(timed.root / name) for name in (SPEED, TIMES))
    assert list(times["d_model"]) == [8, 16]
    assert sorted(times["step_seconds"]) == sorted(speeds["step_seconds"])
    assert set(speeds["threads"]) == {1}  # as a training has
    assert SPEED in read_origin(timed.root / TIMES)["files"]
    assert timed.planned(TIMES) == {}
