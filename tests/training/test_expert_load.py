"""The experts' load: published numbers, and its record by layer and window."""

import math

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.training.expert_load import WINDOWS, balance, metrics
from random_corpus import EXPERTS


def test_load_metrics_of_the_sectional_papers_definitions():
    """Loads (10, 20, 30, 40) at capacity factor 1.25."""
    load = balance(np.array([[10, 20, 30, 40]]))
    assert load.cv == pytest.approx(0.447213595499958)
    assert load.entropy == pytest.approx(0.9232196723355078)
    assert load.kl == pytest.approx(0.10644013528622318)
    assert load.overflow == pytest.approx(0.0875)
    assert load.unused == pytest.approx(0.27)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=40).filter(any), st.floats(1, 4))
def test_what_overflows_is_what_free_capacity_lacks(counts, factor):
    """Assignments beyond capacity + those within it = all; KL + entropy = ln E."""
    load = metrics(np.array([counts]), factor)
    within = (1 - load["unused"][0]) * factor
    assert within + load["overflow"][0] == pytest.approx(1)
    uniform = math.log(len(counts))
    assert load["entropy"][0] * uniform + load["kl"][0] == pytest.approx(uniform)
    assert load["never_used"][0] == counts.count(0)


def test_the_record_counts_every_assignment_of_every_layer(configure, train, results):
    """Also those that a capacity of half of them drops."""
    changes = {"n_dense_layers": 1, "d_ffn": 8, "capacity_factor": 0.5}
    config = configure({**EXPERTS, **changes}, model={"n_layers": 3}, steps=30)
    summary = train(config)
    rows = pq.read_table(results.run(config.run_id) / "load.parquet").to_pylist()
    assert {row["layer"] for row in rows} == {1, 2}  # layer 0 is dense
    for layer in (1, 2):
        trained = [r for r in rows if r["layer"] == layer and not r["validation"]]
        assert len(trained) == WINDOWS
        assert sum(sum(r["assignments"]) for r in trained) == config.tokens * 2
    held_out = [r for r in rows if r["validation"]]
    assert [sum(r["assignments"]) for r in held_out] == [64 * 16 * 2] * 2
    assert summary.balance.cv == pytest.approx(np.mean([r["cv"] for r in held_out]))
    assert summary.balance.never_used == sum(r["never_used"] for r in held_out)
    assert all(0.5 <= r["dropped"] < 1 for r in rows)
    assert summary.balance.dropped == pytest.approx(np.mean([r["dropped"] for r in held_out]))
