"""Hidden states: those that the trained model itself passes through, at the same tokens always."""

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F

from command_line import printed
from moelaws.corpus.batches import validation
from moelaws.corpus.shards import PreparedCorpus
from moelaws.files.atomic import write_json
from moelaws.files.layout import Results
from moelaws.model.transformer import Transformer
from moelaws.probing import hidden
from moelaws.spec.errors import UserError
from moelaws.training import device, weights
from random_corpus import keep_weights, random_corpus, run_of

SEQUENCES, CONTEXT, LAYERS = 32, 16, 3


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """(results, configuration) of a run with kept weights, untrained, and its corpus."""
    root = tmp_path_factory.mktemp("probing")
    corpus, _ = random_corpus(root)
    results = Results(root / "results")
    ffn = {"kind": "moe", "n_experts": 4, "top_k": 2, "d_expert": 8, "mlp": "gelu"}
    model = {"n_layers": LAYERS, "n_kv": 2, "init_std": 0.3, "ffn": ffn}
    config = run_of(corpus, model, steps=1, batch=2, evaluation={"sequences": SEQUENCES})
    keep_weights(results, config, {None: 5})
    return results, config


def probe(tree, tmp_path, tokens=100):
    results, config = tree
    out = tmp_path / "states.parquet"
    corpus = results.corpus(config.corpus.corpus_id)
    hidden.probe(results.weights(config.run_id), corpus, out, tokens, seed=0)
    return pd.read_parquet(out)


def chosen_places(held_out, tokens):
    """Flat positions of the sampled tokens, by way of which tokens they are."""
    sample = hidden.choose(held_out, tokens, 0)
    flat = held_out.tokens[:, :-1]
    rows = [int(np.flatnonzero((flat == row).all(axis=1))[0]) for row in sample.tokens_BN]
    return np.array(rows)[sample.sequence_T] * CONTEXT + sample.position_T


def test_the_first_states_are_embeddings_and_the_last_give_the_models_own_logits(tree, tmp_path):
    results, config = tree
    frame = probe(tree, tmp_path)
    _, model = weights.load(results.weights(config.run_id))
    data = PreparedCorpus.open(results.corpus(config.corpus.corpus_id))
    held_out = validation(data, SEQUENCES, CONTEXT)
    first, last = (frame[frame["layer"] == layer] for layer in (0, LAYERS))
    embedded = model.embedding.detach().numpy()[first["token"]]
    assert np.array_equal(np.stack(first["state"].to_list()), embedded)
    states = torch.from_numpy(np.stack(last["state"].to_list()))
    with torch.no_grad():
        mine = F.linear(model.final_norm(states), model.unembedding)
        logits, _ = model(torch.from_numpy(held_out.tokens[:, :-1]))
    place = chosen_places(held_out, 100)
    assert mine.numpy() == pytest.approx(logits[place].numpy(), abs=1e-5)


def test_a_model_that_a_gpu_does_not_hold_is_probed_on_the_cpu(tree, tmp_path, monkeypatch):
    """The GPU is a stand-in, and the move to it finds too little memory."""
    states, moves, move = probe(tree, tmp_path), [], Transformer.to

    def to(model, name):
        moves.append(name)
        if name == "cuda":
            raise torch.OutOfMemoryError("CUDA out of memory")
        return move(model, name)

    monkeypatch.setattr(device, "choose_device", lambda name: "cuda")
    monkeypatch.setattr(Transformer, "to", to)
    pd.testing.assert_frame_equal(probe(tree, tmp_path), states)
    assert moves == ["cuda", "cpu"]


def test_each_layer_is_seen_at_the_same_distinct_places(tree, tmp_path):
    frame = probe(tree, tmp_path, tokens=SEQUENCES * CONTEXT)  # each held-out token once
    for layer, rows in frame.groupby("layer"):
        assert len(rows) == SEQUENCES * CONTEXT, layer
        assert not rows.duplicated(["sequence", "position"]).any()
    assert sorted(frame["layer"].unique()) == list(range(LAYERS + 1))


def test_another_corpus_is_refused(tree, tmp_path):
    results, config = tree
    other = config.model_copy(update={"corpus": config.corpus.model_copy(update={"seed": 9})})
    weights.make_folder(tmp_path / "weights")
    weights.save(tmp_path / "weights", other, Transformer(config.model, seed=5).state_dict())
    folder = results.corpus(config.corpus.corpus_id)
    with pytest.raises(UserError, match="not the corpus of run"):
        hidden.probe(tmp_path / "weights", folder, tmp_path / "x.parquet", 10)


def test_a_run_without_weights_leaves_an_empty_table(tree, tmp_path, monkeypatch):
    results, _ = tree
    monkeypatch.chdir(tmp_path)
    weights.finish(results.weights("0123456789abcdef"), "diverged")
    output = printed("probe", "0123456789abcdef", "--results", results.root)
    assert "0 states (run diverged)" in output
    assert len(pd.read_parquet("0123456789abcdef.parquet")) == 0


def test_states_of_one_run_by_hand_are_not_among_the_records(tree, tmp_path, monkeypatch):
    results, config = tree
    monkeypatch.chdir(tmp_path)
    write_json(results.kept(config.run_id), {"status": "completed"})
    results.hidden(config.run_id).parent.mkdir(exist_ok=True)
    results.hidden(config.run_id).write_text("of the workflow")
    printed("probe", config.run_id, "--results", results.root, "--tokens", "20")
    assert len(pd.read_parquet(f"{config.run_id}.parquet")) == 20 * (LAYERS + 1)
    assert results.hidden(config.run_id).read_text() == "of the workflow"
