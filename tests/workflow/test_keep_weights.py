"""Weights of the runs that a study marks, and their scores, without training others again."""

import json
import shutil

import pandas as pd
import pytest

from moelaws.spec.project import load_study
from moelaws.training.weights import load
from repository import REPOSITORY

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


def test_other_tasks_score_the_runs_anew_and_train_none(fresh):
    study, whole = fresh.study(), load_study("sparsity", REPOSITORY)
    study["grids"]["demo"]["sweeps"] = [
        {"axes": {"C": [2e8, 4e8], "S": [0, 0.5], "d_model": [8, 12]}}
    ]
    study["keep_weights"] = {"rows": "d_model >= 8", "steps": [0.5]}
    entry = whole.derived_table("downstream").model_dump(by_alias=True, exclude_defaults=True)
    study["derived"].append(json.loads(json.dumps(entry)))
    fresh.write_study(study)
    table = "results/demo/derived/sparsity/downstream.parquet"
    fresh.snakemake(table)
    before = trained(fresh)
    frame = pd.read_parquet(fresh.root / table)
    assert set(frame["run_id"]) == set(before)
    for run_id in before:
        scores = pd.read_parquet(fresh.root / f"results/scores/{run_id}.parquet")
        assert scores["step"].nunique() == 2
    assert "Nothing to be done" in fresh.snakemake(table).stderr
    line = {"task": "mine", "id": "1", "context": "import", "choices": [" os", " ]"], "group": "g"}
    (fresh.root / "mine.jsonl").write_text(json.dumps(line) + "\n")
    done = fresh.snakemake(table, "--config", "tasks=mine.jsonl")
    assert "rule train" not in done.stderr + done.stdout
    assert set(pd.read_parquet(fresh.root / table)["skill"]) == {"mine", "g"}
    assert trained(fresh) == before
    told = fresh.snakemake(table, "--config", "tasks=none.jsonl", check=False)
    assert "tasks: 'none.jsonl' is no file" in told.stderr
    assert "Traceback" not in told.stderr
