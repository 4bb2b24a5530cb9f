"""A run that diverges is a result: the sweep goes on, the table keeps it, fits leave it out."""

import json

import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.slow


def test_a_diverged_run(fresh):
    study = fresh.study()
    study["grids"]["demo"]["sweeps"] = [
        {"axes": {"C": [2e8, 4e8], "S": 0, "d_model": [8, 12, 16, 24]}},
        {"axes": {"C": 4e8, "S": 0.5, "d_model": 8, "lr": 1000.0, "clip": 0}},
    ]
    fresh.write_study(study)
    fresh.snakemake("results/demo/fits/sparsity/chinchilla.json")
    table = pq.read_table(fresh.root / "results/demo/tables/sparsity.parquet").to_pandas()
    lost = table[table["status"] == "diverged"]
    assert len(table) == 9
    assert len(lost) == 1
    assert lost["L"].isna().all()
    fit = json.loads((fresh.root / "results/demo/fits/sparsity/chinchilla.json").read_text())
    assert fit["n"] == 8
    assert 1 in fit["left_out"].values()

    run = lost["run_id"].item()
    listed = json.loads(fresh.moelaws("runs", "--status", "diverged", "--json").stdout)
    assert [record["run_id"] for record in listed] == [run]
    assert (fresh.root / f"results/runs/{run}/history.parquet").exists()
    assert "train" not in fresh.planned("tables")
    fresh.moelaws("runs", "--retry")
    assert fresh.planned("tables")["train"] == 1
