"""A study on two corpora, from their preparation to a fit for each, by real Snakemake."""

import shutil
import sysconfig
from pathlib import Path

import pandas as pd
import pytest

from moelaws.fitting.report import read_fit
from sweep_copy import GRID


@pytest.mark.slow
def test_two_corpora_are_prepared_trained_and_fitted_side_by_side(fresh):
    shutil.copytree(Path(sysconfig.get_path("stdlib")) / "email", fresh.root / "second")
    study = fresh.study()
    grid = {**GRID, "sweeps": [{"name": "main", "axes": {
        "S": 0.5, "steps": [10, 20, 40, 80], "d_model": 8}}]}  # fmt: skip
    grid["derive"] = {**GRID["derive"], "steps": {"rule": "given", "min_steps": 5}}
    study |= {key: [] for key in ("derived", "figures", "tables", "claims", "contests")}
    study |= {
        "grids": {"demo": grid},
        "corpora": {"first": ["text/*.py"], "second": "second/*.py"},
        "fits": [{"name": "line", "law": "generalization.scaling", "mapping": {"x": "D"},
                  "units": {"x": "1"}, "split_by": "corpus", "bootstrap": 5}],
    }  # fmt: skip
    fresh.write_study(study)
    target = "results/demo/fits/sparsity/line.json"
    fresh.snakemake(target)
    table = pd.read_parquet(fresh.root / "results/demo/tables/sparsity.parquet")
    assert table.groupby("corpus")["status"].count().to_dict() == {"first": 4, "second": 4}
    assert len(list((fresh.root / "results/corpora").glob("*/meta.json"))) == 2
    report = read_fit(fresh.root / target)
    assert [part.where for part in report.parts] == [{"corpus": "first"}, {"corpus": "second"}]
    assert fresh.planned(target) == {}
    # On one of them alone nothing is trained again: a run's identity is its own text.
    made = {path: path.stat().st_mtime_ns for path in fresh.summaries()}
    fresh.write_study({**study, "corpora": {"second": "second/*.py"}})
    fresh.snakemake(target)
    assert {path: path.stat().st_mtime_ns for path in fresh.summaries()} == made
    assert [part.where for part in read_fit(fresh.root / target).parts] == [{"corpus": "second"}]
