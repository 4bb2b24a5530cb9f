"""A study's table: one row a run, units in the schema, nothing half-written ever in it."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from moelaws.files.layout import Results
from moelaws.files.parquet import write_parquet
from moelaws.grids.expand import Run
from moelaws.records.chain import changed_runs, link
from moelaws.records.paired import PairedLosses
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig
from moelaws.tables.aggregate import aggregate, origin, rates_at_the_edge
from moelaws.tables.parquet import Column, column_metadata, read_table, write_table
from moelaws.tables.schema import TRAINED_COLUMNS
from moelaws.training.evaluation import DocumentLosses

BALANCE = {
    "cv": 0.1, "entropy": 0.99, "kl": 0.01, "overflow": 0.0, "unused": 0.2,
    "capacity_factor": 1.25, "never_used": 0,
}  # fmt: skip


def record(results, config, loss, status="completed", balance=BALANCE):
    folder = results.run(config.run_id)
    folder.mkdir(parents=True)
    summary = {
        "run_id": config.run_id, "status": status, "loss": loss, "loss_se": 0.02,
        "bits_per_byte": 2.5, "train_loss": 3.9, "steps": config.steps, "tokens": config.tokens,
        "epochs": 0.1, "balance": balance, "wall_seconds": 3.0, "tokens_per_second": 1e4,
        "peak_memory_bytes": 10**8,
    }  # fmt: skip
    (folder / "summary.json").write_text(json.dumps(summary))
    (folder / "provenance.json").write_text(json.dumps({"code": "abc"}))


def write_losses(results, runs, tokens, nats):
    """Writes losses by document, (runs, documents), of the first ``runs``; returns the files."""
    paths = [results.run(run.run_id) / "documents.parquet" for run in runs[: len(nats)]]
    for path, own in zip(paths, nats, strict=True):
        DocumentLosses(np.arange(len(tokens)), tokens, own).write(path)
    return paths


@pytest.fixture
def sweep(run_data, tmp_path):
    """Two seeds of an MoE, a dense model and a run that diverged."""
    results = Results(tmp_path / "results")
    dense = {**run_data, "model": {**run_data["model"], "ffn": {"kind": "dense", "d_ffn": 64}}}
    configs = [
        RunConfig.model_validate(data)
        for data in (run_data, {**run_data, "seed": 1}, dense, {**run_data, "steps": 20})
    ]
    record(results, configs[0], 4.0)
    record(results, configs[1], 4.2)
    record(results, configs[2], 4.1, balance=None)
    record(results, configs[3], None, status="diverged", balance=None)
    return results, [Run(c.run_id, c, 1e9) for c in configs]


def test_a_stop_of_a_run_makes_it_no_slower(sweep):
    results, runs = sweep
    seconds = np.arange(1, 11) * 0.5
    seconds[6:] += 3600.0
    history = pa.table({"step": np.arange(1, 11), "seconds": seconds})
    write_parquet(results.run(runs[0].run_id) / "history.parquet", history)
    speeds = aggregate("sparsity", "demo", runs, results)["tokens_per_second"]
    assert speeds[0] == pytest.approx(4 * 64 / 0.5)
    (results.run(runs[1].run_id) / "history.parquet").write_text("no table")
    with pytest.raises(UserError, match="is no readable Parquet file"):
        aggregate("sparsity", "demo", runs, results)
    (results.run(runs[1].run_id) / "history.parquet").unlink()  # of a version without histories
    assert aggregate("sparsity", "demo", runs, results)["tokens_per_second"][1] == 1e4


def test_rows(sweep):
    results, runs = sweep
    frame = aggregate("sparsity", "demo", runs, results)
    assert frame["run_id"].tolist() == [run.run_id for run in runs]
    moe, dense, diverged = frame.iloc[0], frame.iloc[2], frame.iloc[3]
    # 2 layers: attention 4 d^2, router E d, experts 3 d d_expert each, norms; V d twice.
    expert = 3 * 32 * 32
    shared = 2 * (4 * 32**2 + 8 * 32 + 2 * 32) + 32 + 2 * 300 * 32
    assert moe["N_total"] == shared + 2 * 8 * expert
    assert moe["N_active"] == shared + 2 * 2 * expert
    assert moe["N_total_nonemb"] == moe["N_total"] - 2 * 300 * 32
    assert (moe["S"], moe["A"], moe["E"], moe["k"], moe["G"]) == (0.75, 0.25, 8, 2, 2.0)
    # A layer's attention 8 d^2 + 4 n d FLOPs, its experts 2 * 6 d d_expert, router 2 d E.
    assert moe["r"] == (12 * 32**2 + 2 * 32 * 8) / (8 * 32**2 + 4 * 64 * 32)
    assert dense["r"] == 6 * 32 * 64 / (8 * 32**2 + 4 * 64 * 32)
    assert moe["D"] == 10 * 4 * 64
    assert moe["n_seeds"] == 2
    assert moe["L_seed_sd"] == pytest.approx(np.std([4.0, 4.2], ddof=1))
    assert (dense["kind"], dense["S"], dense["A"]) == ("dense", 0.0, 1.0)
    assert dense["n_seeds"] == 1
    assert dense["tokens_per_second"] == 1e4
    assert np.isnan(dense["L_seed_sd"])
    assert diverged["status"] == "diverged"  # kept, without a loss
    assert np.isnan(diverged["L"])


def test_written_and_read_again(sweep):
    results, runs = sweep
    frame = aggregate("sparsity", "demo", runs, results)
    path = results.tier("demo").table("sparsity")
    write_table(frame, TRAINED_COLUMNS, path)
    first = path.read_bytes()
    back = read_table(path, TRAINED_COLUMNS)
    assert list(back.columns) == [c.name for c in TRAINED_COLUMNS]
    pd.testing.assert_frame_equal(back, frame, check_dtype=False)
    write_table(frame, TRAINED_COLUMNS, path)
    assert path.read_bytes() == first  # fits compare contents
    assert column_metadata(path)["L"] == ("nats/token", "validation loss")
    assert all(unit and text for unit, text in column_metadata(path).values())


def test_losses_of_one_budget_have_an_error_that_leaves_out_what_runs_share(sweep):
    results, runs = sweep
    assert aggregate("sparsity", "demo", runs, results)["L_paired_se"].isna().all()
    rng = np.random.default_rng(0)
    tokens, shared = rng.integers(50, 500, 40), 4 + 0.5 * rng.standard_normal(40)
    nats = (shared + 0.01 * rng.standard_normal((2, 40))) * tokens
    write_losses(results, runs, tokens, nats)
    frame = aggregate("sparsity", "demo", runs, results)
    paired = PairedLosses(("a", "b"), tokens, nats)
    error = float(paired.standard_error([1, -1])) / 2**0.5
    assert frame["L_paired_se"][:2].tolist() == pytest.approx([error, error])
    assert frame["L_paired_se"][2:].isna().all()  # of before, and diverged
    apart = [runs[0], dataclasses.replace(runs[1], C=2e9), *runs[2:]]
    assert aggregate("sparsity", "demo", apart, results)["L_paired_se"].isna().all()


def test_damaged_losses_by_document_leave_their_budget_unpaired(sweep):
    results, runs = sweep
    runs = runs[:2] + [dataclasses.replace(run, C=2e9) for run in runs[2:]]
    tokens = np.full(40, 100)
    nats = tokens * np.random.default_rng(0).normal(4, 0.5, (len(runs), 40))
    path = write_losses(results, runs, tokens, nats)[1]
    path.write_bytes(path.read_bytes()[:-9])
    lines = []
    frame = aggregate("sparsity", "demo", runs, results, lines.append)
    assert frame["L_paired_se"].notna().tolist() == [False, False, True, True]
    (line,) = lines
    assert line.startswith("the losses of 2 runs have no paired error:")
    assert str(path) in line


def test_a_table_is_stale_where_the_losses_by_document_behind_its_errors_changed(sweep):
    results, runs = sweep
    rng = np.random.default_rng(0)
    tokens = rng.integers(50, 500, 40)
    paths = write_losses(results, runs, tokens, tokens * rng.normal(4, 0.5, (2, 40)))
    table = results.tier("demo").table("sparsity")
    frame = aggregate("sparsity", "demo", runs, results)
    write_table(frame, TRAINED_COLUMNS, table, made_of=origin(runs, results))
    assert changed_runs(link(table), results) == []
    before = paths[1].read_bytes()
    # Sealed anew, as by hand: the file is whole, and the table no longer made of it.
    write_losses(results, runs[1:], tokens, tokens * rng.normal(4, 0.5, (1, 40)))
    assert changed_runs(link(table), results) == [runs[1].run_id]
    paths[1].unlink()
    assert changed_runs(link(table), results) == [runs[1].run_id]
    paths[1].write_bytes(before)
    assert changed_runs(link(table), results) == []
    results.summary(runs[3].run_id).unlink()
    assert changed_runs(link(table), results) == [runs[3].run_id]


def test_a_missing_or_broken_summary_is_named(sweep):
    results, runs = sweep
    path = results.summary(runs[0].run_id)
    path.write_text("")
    with pytest.raises(UserError, match=f"{path}.*not valid JSON"):
        aggregate("sparsity", "demo", runs, results)
    path.unlink()
    with pytest.raises(UserError, match=f"{path}.*no such file"):
        aggregate("sparsity", "demo", runs, results)


def test_a_best_rate_at_the_edge_is_told_of_each_optimizer(sweep):
    """The best rates of another optimizer are other ones."""
    results, runs = sweep
    row = aggregate("sparsity", "demo", runs, results).iloc[[0]]

    def told(*losses):
        rows = [row.assign(lr=2**i, L=loss) for i, loss in enumerate(losses)]
        rows += [row.assign(lr=rate, L=1 + rate, optimizer="muon") for rate in (0.1, 9)]
        return rates_at_the_edge(pd.concat(rows))

    assert told(4.0, 3.9, 4.1) == []
    assert told(3.8, 3.9) == []  # no search
    for losses in ((4.0, 3.9, 3.8), (3.8, 3.9, 4.0)):
        (line,) = told(*losses)
        assert line.startswith("C=1e+09: the best learning rate lies at the edge of those tried")
        assert "for 1 of 1 configurations" in line


TWO = (Column("a", "int", "a number"), Column("b", "float?", "a time", "s"))


def test_writing_and_reading_check_the_columns(tmp_path):
    path = tmp_path / "t.parquet"
    with pytest.raises(UserError, match="column 'a' has 1 missing values, the first in row 0"):
        write_table(pd.DataFrame({"a": [None, 1], "b": [1.0, 2.0]}), TWO, path)
    with pytest.raises(UserError, match="no such table"):
        read_table(path, TWO)
    write_table(pd.DataFrame({"a": [1, 2], "b": [0.5, None]}), TWO, path)
    with pytest.raises(UserError, match="column 'c' is missing"):
        read_table(path, (*TWO, Column("c", "int", "another")))
    with pytest.raises(UserError, match="column 'b' is double; it must be int"):
        read_table(path, (Column("b", "int", "a number"),))
    with pytest.raises(UserError, match="column 'b' has 1 missing values, the first in row 1"):
        read_table(path, (Column("b", "float", "a time", "s"),))
    with pytest.raises(UserError, match="column b: 'number' is no kind; there are string, float"):
        Column("b", "number", "a time", "s")
    path.write_bytes(path.read_bytes()[:-20])  # cut short
    with pytest.raises(UserError, match="this file is damaged"):
        read_table(path, TWO)
