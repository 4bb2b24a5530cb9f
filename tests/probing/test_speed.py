"""Speeds measured side by side: what a row says, what counts as memory, and the turns."""

import itertools

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

from moelaws.accounting.parameters import count_parameters
from moelaws.probing import speed
from moelaws.probing.speed import COLUMNS, SteppedTrainer, measure
from moelaws.spec.base import parse
from moelaws.spec.run import RunConfig

FFNS = {
    "dense": {"kind": "dense", "d_ffn": 16},
    "moe": {"kind": "moe", "n_experts": 4, "top_k": 2, "d_expert": 8, "n_shared": 1},
    "gelu": {"kind": "moe", "n_experts": 4, "top_k": 2, "d_expert": 8, "mlp": "gelu"},
}


def config(ffn="moe", batch=4, context=16, **keys):
    data = {
        "model": {
            "n_layers": 2, "d_model": 16, "n_heads": 2, "n_kv": 2, "context": context,
            "vocab_size": 257, "ffn": FFNS[ffn],
        },
        "corpus": {"source": {"digest": "none"}, "vocab_size": 257},
        "steps": 3, "batch": batch, "balance_group": batch // 2, "optimizer": {"lr": 1e-3},
        **keys,
    }  # fmt: skip
    return parse(RunConfig, data, "test")


@pytest.mark.parametrize("ffn", FFNS)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_state_is_sixteen_bytes_a_parameter(ffn, precision):
    """Parameters, gradients and both moments are fp32, whatever the products are computed in."""
    (row,) = measure([config(ffn, precision=precision)], "cpu", repeats=1)
    assert row["state_bytes"] == 16 * count_parameters(config(ffn).model).total


def test_a_row_for_each_configuration_in_its_order():
    configs = [config("dense"), config("moe"), config("moe"), config("gelu")]
    rows = measure(configs, "cpu", repeats=4)
    assert [row["run_id"] for row in rows] == [c.run_id for c in configs]
    for row in rows:
        assert set(row) == set(COLUMNS)
        assert row["rounds"] == 4
        assert row["threads"] == torch.get_num_threads()
        assert row["step_seconds_low"] <= row["step_seconds"] <= row["step_seconds_high"]
        assert row["time_ratio_low"] <= row["time_ratio"] <= row["time_ratio_high"]
        assert row["tokens_per_second"] == pytest.approx(4 * 16 / row["step_seconds"])
        assert row["evaluation_seconds"] > 0
    assert rows[0]["time_ratio_low"] == rows[0]["time_ratio_high"] == 1


def test_times_of_one_round_are_compared_by_the_token(monkeypatch):
    """A machine that is half as fast in each next round leaves the ratios as they are."""
    calls = itertools.count()

    def seconds(call, device):
        call()
        trainer, turn = call.__self__, next(calls) // 6  # two configurations, three calls of each
        tokens = trainer.config.batch * trainer.config.model.context
        return tokens * (3 if trainer.model.layers[0].moe else 1) * 2.0**turn

    monkeypatch.setattr(speed, "_seconds", seconds)
    first, second = measure([config("dense", batch=2), config("moe", batch=8)], "cpu", repeats=5)
    assert (second["time_ratio_low"], second["time_ratio"], second["time_ratio_high"]) == (3, 3, 3)
    assert second["step_seconds"] == 12 * first["step_seconds"]
    assert first["step_seconds_high"] == 4 * first["step_seconds_low"]


def test_activations_grow_with_the_batch_and_a_storage_saved_twice_counts_once():
    small, large = measure([config(batch=4), config(batch=8)], "cpu", repeats=1)
    assert 1.9 < large["activation_bytes"] / small["activation_bytes"] < 2.1
    trainer = SteppedTrainer(config("dense"), "cpu")
    before = trainer.memory()["activation_bytes"]
    assert trainer.memory()["activation_bytes"] == before  # nothing is left of the last time
    assert all(p.grad is None for p in trainer.model.parameters())


def test_the_file_has_units_and_says_what_it_was_made_of(tmp_path):
    rows = measure([config("dense"), config("moe")], "cpu", repeats=1)
    path = tmp_path / "speed/toy.parquet"
    speed.write_rows(path, rows, {"code": "c", "files": {}})
    frame, schema = pd.read_parquet(path), pq.read_schema(path)
    assert list(frame["run_id"]) == [row["run_id"] for row in rows]
    for name, (unit, *_) in COLUMNS.items():
        assert schema.field(name).metadata[b"unit"].decode() == unit
    assert frame["gpu_step_bytes"].isna().all()
    assert frame["state_bytes"].dtype == np.int64


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpus_step_holds_gradients_and_activations():
    (row,) = measure([config("dense")], "cuda", repeats=2)
    assert row["gpu_step_bytes"] >= row["state_bytes"] / 4 + row["activation_bytes"]
    assert row["device"] != "cpu"
