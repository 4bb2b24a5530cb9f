"""A user's own study, one that advice writes, and a machine without Slurm, by real Snakemake."""

import json
import os
import re
import shlex
import shutil

import pytest
import yaml

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
