"""Gradient accumulation: the same update whatever the micro-batch, halved where memory lacks."""

import os
import signal

import pytest
import torch

from calls import Calls
from killed import killed_at
from moelaws.files.atomic import read_json
from moelaws.training import job, loop
from moelaws.training.loop import Trainer

EXPERTS = {"kind": "moe", "n_experts": 4, "top_k": 2, "d_expert": 8, "load_balance": 0.5}
BIASED = {
    "kind": "moe", "n_experts": 4, "top_k": 2, "d_expert": 8, "gate": "sigmoid", "balance": "bias",
    "sequence_balance": 0.5, "capacity_factor": 1.0,
}  # fmt: skip
DENSE = {"kind": "dense", "d_ffn": 16}


def after(trainer, steps=3):
    for _ in range(steps):
        trainer.train_step()
    trainer.history.settle()
    tensors = [*trainer.model.trained().values(), *trainer.expert_load.windows]
    return [t.detach().clone() for t in tensors], trainer.history.rows


@pytest.mark.parametrize(
    "ffn",
    [EXPERTS, {**EXPERTS, "jitter": 0.3}, {**EXPERTS, "router_z": 0.1}, BIASED, DENSE],
    ids=["balance", "jitter", "z", "bias", "dense"],
)
@pytest.mark.parametrize("micro_batch", [2, 4, 6, 8])
def test_the_update_does_not_depend_on_the_micro_batch(configure, trainer_of, ffn, micro_batch):
    """Ten sequences in balance groups of two, cut evenly and unevenly."""
    config = configure(ffn, model={"init_std": 0.2}, batch=10, balance_group=2, steps=3)
    whole, rows = after(trainer_of(config))
    summed, same = after(trainer_of(config, micro_batch))
    for a, b in zip(whole, summed, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    for a, b in zip(rows, same, strict=True):
        assert a[:7] == pytest.approx(b[:7], rel=1e-4)


@pytest.mark.parametrize("micro_batch", [2, 8])
def test_the_gradient_is_of_all_three_losses_with_their_coefficients(
    configure, trainer_of, micro_batch
):
    ffn = {**EXPERTS, "load_balance": 0.7, "router_z": 0.3}
    config = configure(ffn, model={"init_std": 0.2}, batch=8, balance_group=2)
    ours = trainer_of(config, micro_batch)
    tokens = torch.from_numpy(ours.data.next())
    losses = ours.model.losses(tokens, 4)
    objective = losses.cross_entropy + 0.7 * losses.balance + 0.3 * losses.z
    expected = torch.autograd.grad(objective, list(ours.model.parameters()))
    measured, counts_LE = ours._gradients(tokens)
    for p, want in zip(ours.model.parameters(), expected, strict=True):
        torch.testing.assert_close(p.grad, want, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(measured, torch.stack(losses[:3]).detach())
    assert torch.equal(counts_LE, losses.counts_LE)


def test_a_backward_pass_that_fails_halfway_leaves_no_gradient(configure, trainer_of, monkeypatch):
    config = configure(EXPERTS, batch=8, balance_group=2)
    expected, rows = after(trainer_of(config, 2), 1)
    backward, calls = torch.autograd.backward, []

    def fails_once(loss):
        backward(loss)
        calls.append(loss)
        if len(calls) == 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(loop.torch.autograd, "backward", fails_once)
    sizes = []
    lacks = Calls(after_lack=lambda trainer: sizes.append(trainer.micro_batch))
    params, same = after(trainer_of(config, 4, [lacks]), 1)
    assert sizes == [2]
    assert rows[0][:7] == same[0][:7]
    assert all(torch.equal(a, b) for a, b in zip(params, expected, strict=True))


@pytest.fixture
def dies(train, monkeypatch):
    """Trains in another process, which is killed in the function of that name."""

    def make(config, owner, name):
        def kill(*words):
            os.kill(os.getpid(), signal.SIGKILL)

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, kill)
            assert killed_at(-1, lambda: train(config))

    return make


def test_one_death_in_the_first_step_changes_nothing_two_are_lack_of_memory(
    configure, results, train, dies, tmp_path
):
    config = configure(EXPERTS, batch=8, balance_group=2, steps=3)
    whole = train(config, out=tmp_path / "whole")
    for deaths, micro in ((1, 8), (2, 4), (3, 2)):
        for _ in range(deaths):
            dies(config, Trainer, "_gradients")
        lines = []
        summary = train(config, log=lines.append)
        tried = f"ended without a word in training, with {2 * micro} sequences at a time"
        assert any(tried in line for line in lines) == (deaths > 1)
        made_by = read_json(results.run(config.run_id) / "provenance.json")
        assert made_by["micro_batch"] == micro
        assert summary.loss == pytest.approx(whole.loss, rel=1e-5)
        assert (summary.loss == whole.loss) or deaths > 1
        assert not results.checkpoint(config.run_id).exists()
        results.summary(config.run_id).unlink()


def test_deaths_with_the_fewest_sequences_are_recorded_and_the_next_call_tries_again(
    configure, results, train, dies
):
    config = configure(EXPERTS, batch=2, balance_group=2, steps=3)
    for _ in range(2):
        dies(config, Trainer, "_gradients")
    summary = train(config)
    assert summary.status == "out_of_memory"
    assert "with 2 sequences at a time" in summary.message
    assert "2 processes in a row ended without a word" in summary.message
    assert train(config).status == "completed"


def test_deaths_in_the_evaluation_halve_its_batch(configure, results, train, dies, monkeypatch):
    config = configure(EXPERTS, steps=3)
    whole = train(config).loss
    results.summary(config.run_id).unlink()
    batches, measure = [], job.evaluate

    def evaluate(model, held_out, batch, *others):
        batches.append(batch)
        return measure(model, held_out, batch, *others)

    monkeypatch.setattr(job, "evaluate", evaluate)
    for deaths, batch in ((1, 256), (2, 128), (3, 64)):
        for _ in range(deaths):
            dies(config, job, "evaluate")
        assert train(config).loss == pytest.approx(whole, rel=1e-5)
        assert batches.pop() == batch
        results.summary(config.run_id).unlink()
