"""Losses in sequences longer than those of training."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from moelaws.corpus.batches import validation
from moelaws.corpus.shards import PreparedCorpus
from moelaws.files.layout import Results
from moelaws.model.transformer import Transformer
from moelaws.probing.longer import losses_by_stretch
from moelaws.training import weights
from random_corpus import keep_weights, random_corpus, run_of

SEQUENCES, CONTEXT = 32, 16
FFNS = {
    "dense": {"ffn": {"kind": "dense", "d_ffn": 16}},
    "experts": {"ffn": {"kind": "moe", "n_experts": 4, "top_k": 2, "d_expert": 8}},
    "slices": {
        "ffn": {"kind": "dense", "d_ffn": 16},
        "slices": {"n_experts": 2, "n_heads": 1, "d_expert": 8},
    },
}


def kept(tmp_path, **model):
    corpus, _ = random_corpus(tmp_path)
    results = Results(tmp_path / "results")
    settings = {"init_std": 0.3, **model}
    config = run_of(corpus, settings, steps=1, batch=2, evaluation={"sequences": SEQUENCES})
    keep_weights(results, config, {None: 5})
    return results, config


@pytest.mark.parametrize("name", FFNS)
def test_once_the_length_is_the_ordinary_loss(tmp_path, name):
    results, config = kept(tmp_path, **FFNS[name])
    folder = results.weights(config.run_id)
    _, model = weights.load(folder)
    data = PreparedCorpus.open(results.corpus(config.corpus.corpus_id))
    tokens = torch.from_numpy(validation(data, SEQUENCES, CONTEXT).tokens)
    with torch.no_grad():
        ordinary = float(model.losses(tokens).cross_entropy)
    assert losses_by_stretch(folder, results, 1) == pytest.approx([ordinary], abs=1e-6)


@pytest.mark.parametrize("name", FFNS)
def test_stretches_are_those_of_a_model_built_for_the_longer_sequence(tmp_path, name):
    """A causal model reads the first stretch as if nothing followed it."""
    results, config = kept(tmp_path, **FFNS[name])
    folder = results.weights(config.run_id)
    first, second = losses_by_stretch(folder, results, 2)
    _, trained = weights.load(folder)
    longer = Transformer(config.model.model_copy(update={"context": 2 * CONTEXT}), 0)
    longer.load_state_dict(trained.state_dict())
    data = PreparedCorpus.open(results.corpus(config.corpus.corpus_id))
    tokens = torch.from_numpy(validation(data, SEQUENCES // 2, 2 * CONTEXT).tokens)
    with torch.no_grad():
        logits, _ = longer(tokens[:, :-1])
        alone = float(trained.losses(tokens[:, : CONTEXT + 1]).cross_entropy)
    loss = F.cross_entropy(logits, tokens[:, 1:].flatten(), reduction="none")
    expected = loss.view(len(tokens), 2, CONTEXT).mean((0, 2)).tolist()
    assert [first, second] == pytest.approx(expected, abs=1e-6)
    assert first == pytest.approx(alone, abs=1e-6)
    assert np.isfinite(second)
