"""Final weights of the runs that a study marks, without training the others again."""

import shutil

import pytest

from moelaws.records.files import read_json
from moelaws.training.weights import load

pytestmark = pytest.mark.slow


def trained(copy):
    """run -> when its summary was written."""
    return {p.parent.name: p.stat().st_mtime_ns for p in copy.summaries()}


def test_marking_runs_trains_those_alone_and_unmarking_nothing(fresh):
    study = fresh.study()
    study["grids"]["demo"]["sweeps"] = [{"axes": {"C": 2e8, "S": [0, 0.5], "d_model": [8, 12]}}]
    fresh.write_study(study)
    fresh.snakemake("runs")
    before = trained(fresh)
    study["keep_weights"] = "S == 0.5 and d_model >= 12"
    fresh.write_study(study)
    fresh.snakemake("runs")
    (folder,) = (fresh.root / "results/weights").iterdir()
    config, _ = load(folder)
    assert config.run_id == folder.name
    assert config.model.d_model == 12
    assert [run for run, started in trained(fresh).items() if started != before[run]] == [
        folder.name
    ]
    nothing = "Nothing to be done"
    assert nothing in fresh.snakemake("runs").stderr
    del study["keep_weights"]
    fresh.write_study(study)
    assert nothing in fresh.snakemake("runs").stderr
    # Weights that were deleted are made again.
    study["keep_weights"] = "S == 0.5 and d_model >= 12"
    fresh.write_study(study)
    shutil.rmtree(folder)
    fresh.snakemake("runs")
    assert load(folder)[0] == config


def test_a_column_that_training_measures_cannot_choose(fresh):
    study = fresh.study()
    study["keep_weights"] = "L < 4"
    fresh.write_study(study)
    done = fresh.snakemake("runs", check=False)
    assert done.returncode != 0
    assert "keep_weights" in done.stderr + done.stdout
    assert "no column 'L'" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_a_diverged_run_says_that_it_has_no_weights(fresh):
    study = fresh.study()
    demo = study["grids"]["demo"]
    demo["settings"] |= {"lr": 1000.0, "clip": 0}
    demo["sweeps"] = [{"axes": {"C": 4e8, "S": 0, "d_model": 8}}]
    fresh.write_study(study)
    fresh.snakemake("runs")
    (summary,) = fresh.summaries()
    study["keep_weights"] = "D > 0"  # only now
    fresh.write_study(study)
    fresh.snakemake("runs")
    assert summary.exists()
    fresh.snakemake("runs")
    (path,) = (fresh.root / "results/weights").glob("*/status.json")
    assert read_json(path) == {"status": "diverged"}
