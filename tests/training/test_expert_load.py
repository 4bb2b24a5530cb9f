"""The experts' load: published numbers, and its record by layer and window."""

import math

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from moelaws.training.expert_load import COLUMNS, WINDOWS, ExpertLoad, balance, metrics
from random_corpus import EXPERTS


def test_load_metrics_of_the_sectional_papers_definitions():
    """Loads (10, 20, 30, 40) at capacity factor 1.25."""
    load = balance(np.array([[10, 20, 30, 40]]))
    assert load.cv == pytest.approx(0.447213595499958)
    assert load.entropy == pytest.approx(0.9232196723355078)
    assert load.kl == pytest.approx(0.10644013528622318)
    assert load.overflow == pytest.approx(0.0875)
    assert load.unused == pytest.approx(0.27)


def test_load_metrics_at_the_extremes_average_over_layers():
    load = balance(np.array([[8, 8, 8, 8], [32, 0, 0, 0]]))
    assert load.cv == pytest.approx((0 + math.sqrt(3)) / 2)
    assert load.entropy == pytest.approx(0.5)
    assert load.kl == pytest.approx(math.log(4) / 2)
    assert load.never_used == 3
    assert balance(np.array([[5]])).entropy == 1


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=40).filter(any), st.floats(1, 4))
def test_what_overflows_is_what_free_capacity_lacks(counts, factor):
    """Assignments beyond capacity + those within it = all; KL + entropy = ln E."""
    load = metrics(np.array([counts]), factor)
    within = (1 - load["unused"][0]) * factor
    assert within + load["overflow"][0] == pytest.approx(1)
    uniform = math.log(len(counts))
    assert load["entropy"][0] * uniform + load["kl"][0] == pytest.approx(uniform)
    assert load["never_used"][0] == counts.count(0)


@pytest.mark.parametrize("steps", [7, WINDOWS, 33, 100])
def test_windows_cover_every_step_once(steps):
    load = ExpertLoad(steps, 0)
    for step in range(1, steps + 1):
        load.add(step, torch.full((2, 3), step))
    assert len(load.ends) == min(steps, WINDOWS)
    assert load.ends[-1] == steps
    assert (sum(load.windows) == steps * (steps + 1) // 2).all()


def test_the_record_counts_every_assignment_of_every_layer(configure, train, results):
    dense_first = {"n_dense_layers": 1, "d_ffn": 8}
    config = configure({**EXPERTS, **dense_first}, model={"n_layers": 3}, steps=30)
    summary = train(config)
    table = pq.read_table(results.run(config.run_id) / "load.parquet")
    for name, (unit, about) in COLUMNS.items():
        if name == "dropped":  # the run has no capacity
            assert name not in table.column_names
            continue
        assert table.schema.field(name).metadata == {
            b"unit": unit.encode(), b"description": about.encode(),
        }  # fmt: skip
    rows = table.to_pylist()
    assert {row["layer"] for row in rows} == {1, 2}  # layer 0 is dense
    for layer in (1, 2):
        trained = [r for r in rows if r["layer"] == layer and not r["validation"]]
        assert len(trained) == WINDOWS
        assert sum(sum(r["assignments"]) for r in trained) == config.tokens * 2
    held_out = [r for r in rows if r["validation"]]
    assert [sum(r["assignments"]) for r in held_out] == [64 * 16 * 2] * 2
    assert summary.balance.cv == pytest.approx(np.mean([r["cv"] for r in held_out]))
    assert summary.balance.never_used == sum(r["never_used"] for r in held_out)


def test_the_record_says_what_a_capacity_dropped(configure, train, results):
    """With half the assignments as capacity at least half are dropped, of the load as it was."""
    config = configure({**EXPERTS, "capacity_factor": 0.5}, steps=20)
    summary = train(config)
    rows = pq.read_table(results.run(config.run_id) / "load.parquet").to_pylist()
    assert all(0.5 <= row["dropped"] < 1 for row in rows)
    assert sum(sum(r["assignments"]) for r in rows if not r["validation"]) == config.tokens * 2 * 2
    held_out = [row["dropped"] for row in rows if row["validation"]]
    assert summary.balance.dropped == pytest.approx(np.mean(held_out))


def test_a_bias_evens_the_load_that_nothing_else_evens(configure, trainer_of):
    """In the end a step's load varies less by half; the router begins with large weights."""

    def variation(**balance):
        config = configure(
            {**EXPERTS, "n_experts": 8, "router_z": 0, **balance}, {"init_std": 0.2},
            steps=60, batch=16, balance_group=16, max_epochs=100,
        )  # fmt: skip
        trainer = trainer_of(config)
        assert trainer.run()
        return metrics(trainer.expert_load.windows[-1].numpy(), 1.0)["cv"].mean()

    for gate in ("softmax", "sigmoid"):
        evened = variation(gate=gate, balance="bias", bias_rate=0.01)
        assert evened < 0.5 * variation(gate=gate, balance="none")


def test_without_balance_no_loss_of_it_is_trained(configure, trainer_of):
    def weights(**balance):
        trainer = trainer_of(configure({**EXPERTS, **balance}, steps=5))
        assert trainer.run()
        return torch.cat([p.flatten() for p in trainer.model.parameters()])

    nothing = weights(balance="none")
    assert torch.equal(nothing, weights(balance="loss", load_balance=0))
    assert not torch.equal(nothing, weights(balance="loss"))
