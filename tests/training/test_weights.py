"""Weights that are kept, at the end and on the way: the trained model, however often cut off."""

import pytest
import torch
from safetensors.torch import load_file

from moelaws.corpus.batches import validation
from moelaws.corpus.shards import PreparedCorpus
from moelaws.files import seal
from moelaws.files.atomic import read_json
from moelaws.files.layout import WEIGHTS
from moelaws.records.paired import paired_losses
from moelaws.records.runs import read_record, retry
from moelaws.records.tensors import are_kept, file_of, write_tensors
from moelaws.spec.errors import UserError
from moelaws.training import job, weights
from moelaws.training.evaluation import evaluate
from moelaws.training.loop import Trainer
from random_corpus import EXPERTS


def test_kept_weights_measure_what_the_run_measured(configure, train, results, corpus):
    config = configure({**EXPERTS, "balance": "bias"}, model={"tied_embeddings": True})
    summary = train(config, keep_weights=True)
    kept_config, model = weights.load(results.weights(config.run_id))
    assert len(model.biases()) == 2
    assert all(bias_E.any() for bias_E in model.biases().values())
    assert kept_config == config
    held_out = validation(PreparedCorpus.open(corpus[1]), 64, 16)
    assert evaluate(model, held_out, 16).loss == pytest.approx(summary.loss, rel=1e-6)


def test_a_run_done_without_them_is_trained_again_once(configure, train, results):
    config = configure(steps=3)
    first = train(config)
    assert not are_kept(results.weights(config.run_id), config.run_id)
    lines = []
    again = train(config, keep_weights=True, log=lines.append)
    assert any("weights were not kept" in line for line in lines)
    assert are_kept(results.weights(config.run_id), config.run_id)
    assert again.loss == first.loss
    lines.clear()
    assert train(config, keep_weights=True, log=lines.append) == again
    assert lines == []
    again = train(config, keep_weights=True, keep_steps=(2,), log=lines.append)
    assert any("weights were not kept" in line for line in lines)
    assert again.loss == first.loss
    assert train(config, keep_weights=True) == again  # who asks for fewer is content


def test_a_diverged_run_says_why_it_has_none(configure, train, results):
    config = configure(steps=400, optimizer={"lr": 30.0, "clip": 0})
    train(config, keep_weights=True, keep_steps=(2,))
    folder = results.weights(config.run_id)
    assert read_json(results.kept(config.run_id)) == {"status": "diverged"}
    assert not list(folder.glob("*.safetensors"))
    with pytest.raises(UserError, match="does not exist"):
        weights.load(folder)
    # Also where the run was marked only after it had ended.
    weights.forget(folder)
    train(config, keep_weights=True)
    assert read_json(results.kept(config.run_id)) == {"status": "diverged"}


def test_lack_of_memory_while_training_again_leaves_the_result(
    configure, train, results, monkeypatch
):
    config = configure(steps=3)
    first = train(config)

    def fails(*words):
        raise MemoryError("no room")

    monkeypatch.setattr(job, "Transformer", fails)
    assert train(config, keep_weights=True) == first
    assert read_json(results.summary(config.run_id))["status"] == "completed"
    assert read_json(results.kept(config.run_id)) == {"status": "out_of_memory"}
    assert results.lacked_memory(config.run_id).exists()  # the next call tries again


def test_weights_go_with_the_record_that_they_belong_to(configure, train, results):
    config = configure(steps=2)
    train(config, keep_weights=True)
    folder = results.weights(config.run_id)
    (folder / ".model.000000000000-1-0-0123abcd.tmp.safetensors").touch()  # a killed trainer's
    retry(results, read_record(results, config.run_id))
    assert not folder.exists()
    train(config, keep_weights=True)
    results.summary(config.run_id).unlink()
    train(config)
    assert not are_kept(folder, config.run_id)


def test_a_damaged_file_is_refused(configure, train, tmp_path):
    config = configure(steps=1)
    train(config, keep_weights=True, out=tmp_path)
    path = tmp_path / "weights" / WEIGHTS
    content = path.read_bytes()
    for damaged in (content[:-7], content[:-7] + b"\0" * 7):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match="damaged: it is not what moelaws wrote"):
            weights.load(path.parent)
        with pytest.raises(UserError, match="damaged"):
            train(config, keep_weights=True, out=tmp_path)  # nothing is trained again unasked
    torch.save({"w": torch.ones(2)}, path)
    with pytest.raises(UserError, match="does not hold the weights of a run"):
        weights.load(path.parent)
    path.write_bytes(content.replace(b'"final_norm.gain"', b'"final_norm.gone"'))
    seal.apply(path)
    with pytest.raises(UserError, match=r"does not hold the weights of a run: .*final_norm.gain"):
        weights.load(path.parent)


def test_files_of_another_run_are_refused(configure, train, results):
    """Runs that differ in their seeds alone: each is found with the other's files."""
    configs = [configure(steps=2, seed=seed) for seed in (1, 2)]
    for config in configs:
        train(config, keep_weights=True, keep_steps=(1,))
    two = [config.run_id for config in configs]
    assert len(paired_losses(results, two).nats) == 2
    kept = [[results.weights(run) / file_of(step) for run in two] for step in (None, 1)]
    for one, other in (*kept, [results.run(run) / "documents.parquet" for run in two]):
        aside = one.rename(one.with_suffix(".aside"))
        other.rename(one)
        aside.rename(other)
    for run, other in (two, two[::-1]):
        for step in (None, 1):
            with pytest.raises(UserError, match=f"it is weights/{other}/{file_of(step)}"):
                weights.load(results.weights(run), step)
    with pytest.raises(UserError, match="it is runs/"):
        paired_losses(results, two)


def test_only_finite_floating_point_numbers_of_the_model_are_weights(configure, train, tmp_path):
    config = configure(steps=1)
    train(config, keep_weights=True, out=tmp_path)
    path = tmp_path / "weights" / WEIGHTS
    about = {seal.KEY: seal.BLANK, "run_id": config.run_id, "config": config.canonical_json()}
    whole = load_file(path)
    name = next(iter(whole))
    wider = configure(steps=1, model={"d_model": 2**19})
    of_wider = {"run_id": wider.run_id, "config": wider.canonical_json()}
    for changed, header, told in (
        ({name: torch.full_like(whole[name], torch.nan)}, {}, f"{name} has values that are no"),
        ({name: whole[name].int()}, {}, f"{name} has values that are no finite"),
        ({name: torch.ones(1)}, {}, "numbers, and the model of its header"),
        ({}, {"run_id": "0" * 16}, "it names run 0000000000000000, and has the configuration"),
        ({}, of_wider, "numbers, and the model of its header"),
    ):
        write_tensors(path, whole | changed, about | header)
        with pytest.raises(UserError, match=told):
            weights.load(path.parent)
    write_tensors(path, whole, about)
    assert weights.load(path.parent)[0] == config


def test_those_on_the_way_are_the_model_that_training_had_then_also_of_a_run_cut_off(
    configure, train, results, stopped
):
    config, keep = configure(steps=8), {"keep_weights": True, "keep_steps": (2, 6)}
    folder, states, step = results.weights(config.run_id), {}, Trainer.train_step

    def recorded(self):
        step(self)
        states[self.step] = {k: v.clone() for k, v in self.model.state_dict().items()}

    def assert_kept():
        assert read_json(results.kept(config.run_id)) == {"status": "completed", "steps": [2, 6]}
        for at, file in ((2, 2), (6, 6), (8, None)):
            kept = weights.load(folder, file)[1].state_dict()
            assert all(torch.equal(kept[name], value) for name, value in states[at].items()), at

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "train_step", recorded)
        train(config, **keep)
    assert_kept()
    weights.forget(folder)
    results.summary(config.run_id).unlink()
    stopped(config, 4, **keep)
    assert [path.name for path in folder.glob("*.safetensors")] == ["step_2.safetensors"]
    lines = []
    train(config, **keep, log=lines.append)
    assert any("resumed at step 4" in line for line in lines)
    assert_kept()


def test_a_checkpoint_past_weights_that_are_gone_is_refused(configure, train, results, stopped):
    config = configure(steps=8)
    stopped(config, 4, keep_weights=True, keep_steps=(2,))
    lines = []
    train(config, keep_weights=True, keep_steps=(2, 3), log=lines.append)
    assert any("the weights after step 3 were not kept" in line for line in lines)
    assert are_kept(results.weights(config.run_id), config.run_id, (2, 3))
