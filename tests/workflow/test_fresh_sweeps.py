"""Small sweeps by real Snakemake: divergence, two corpora, hostile captions, tags and notes."""

import json
import shutil
import sysconfig
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from moelaws.fitting.report import read_fit
from page_blocks import blocks, check_console
from repository import REPOSITORY
from sweep_copy import GRID

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
    listed = json.loads(fresh.moelaws("runs", "--where", "status == diverged", "--json").stdout)
    assert [record["run_id"] for record in listed] == [run]
    assert (fresh.root / f"results/runs/{run}/history.parquet").exists()
    assert "train" not in fresh.planned("tables")
    fresh.moelaws("runs", "--retry")
    assert fresh.planned("tables")["train"] == 1


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


CAPTIONS = (
    ".. include:: {secret}",
    ".. raw:: html\n   :file: {secret}",
    ".. raw:: html\n\n   <img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script><!-- ",
    "`a link <javascript:alert(3)>`_ and {{{{ snakemake.config }}}}",
)


def test_captions_are_text_in_the_report(moved):
    secret = moved.root / "secret.txt"
    secret.write_text("what only the user may read")
    study = moved.study()
    entries = [*study["figures"], *study["tables"]]
    for entry, caption in zip(entries, CAPTIONS, strict=False):
        entry["caption"] = caption.format(secret=secret)
    moved.write_study(study)
    moved.snakemake("--report", "report.html")
    report = (moved.root / "report.html").read_text()
    assert f".. include:: {secret}" in report
    assert secret.read_text() not in report
    assert "&lt; img src=x" in report
    assert "<img src=x" not in report
    assert "<script>alert(2)" not in report
    assert "javascript:alert(3)\\" not in report  # as the address of a link


def test_the_pages_commands_run(moved):
    runs = (summary.parent for summary in moved.summaries())
    for run, name in zip(runs, ("3fb1", "c02d"), strict=False):  # as the page calls two of them
        shutil.copytree(run, run.with_name(name))
    commands = blocks(REPOSITORY / "docs/tracking.md")
    assert len(commands) > 3
    for language, text in commands:
        assert language == "console"
        check_console(moved.root, text)
