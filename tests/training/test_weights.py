"""Weights that are kept: the model that was trained, and nothing that only looks like it."""

import pytest
import torch

from moelaws.corpus.batches import validation
from moelaws.corpus.shards import PreparedCorpus
from moelaws.spec.errors import UserError
from moelaws.training import weights
from moelaws.training.evaluation import evaluate
from moelaws.training.run import train


def quiet(line):
    """Takes the lines that a run says."""


def test_kept_weights_measure_what_the_run_measured(configure, results, corpus):
    config = configure(model={"tied_embeddings": True})
    summary = train(config, results, corpus[1], keep_weights=True, say=quiet)
    found, model = weights.load(results.weights(config.run_id))
    assert found == config
    held_out = validation(PreparedCorpus.open(corpus[1]), 64, 16)
    assert evaluate(model, held_out, 16).loss == pytest.approx(summary.loss, rel=1e-6)


def test_a_run_done_without_them_is_trained_again_once(configure, results, corpus):
    config = configure(steps=3)
    first = train(config, results, corpus[1], say=quiet)
    assert not weights.kept(results.weights(config.run_id))
    said = []
    again = train(config, results, corpus[1], keep_weights=True, say=said.append)
    assert any("weights were not kept" in line for line in said)
    assert weights.kept(results.weights(config.run_id))
    assert again.loss == first.loss
    said.clear()
    assert train(config, results, corpus[1], keep_weights=True, say=said.append) == again
    assert said == []


def test_a_diverged_run_says_why_it_has_none(configure, results, corpus):
    config = configure(steps=400, optimizer={"lr": 30.0, "clip": 0})
    train(config, results, corpus[1], keep_weights=True, say=quiet)
    folder = results.weights(config.run_id)
    assert "diverged" in (folder / weights.NONE).read_text()
    with pytest.raises(UserError, match="no such file"):
        weights.load(folder)


def test_a_damaged_file_is_refused(configure, results, corpus, tmp_path):
    config = configure(steps=1)
    train(config, results, corpus[1], keep_weights=True, say=quiet, out=tmp_path)
    path = tmp_path / "weights" / weights.FILE
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(UserError, match="not the weights of a run"):
        weights.load(path.parent)
    torch.save({"w": torch.ones(2)}, path)
    with pytest.raises(UserError, match="not the weights of a run"):
        weights.load(path.parent)
