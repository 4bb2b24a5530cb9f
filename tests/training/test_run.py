"""A run from configuration to record: refused early, diverging as a result."""

import math

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import torch.nn.functional as F

from moelaws.corpus.batches import validation
from moelaws.corpus.shards import PreparedCorpus
from moelaws.files.atomic import read_json
from moelaws.model.transformer import Transformer
from moelaws.spec.errors import UserError
from moelaws.training import weights

DENSE = {"kind": "dense", "d_ffn": 16}


def history_of(results, config):
    return pq.read_table(results.run(config.run_id) / "history.parquet").to_pydict()


def test_the_record_of_a_completed_run(configure, train, results, corpus):
    config = configure(steps=60)
    summary = train(config)
    assert summary.status == "completed"
    assert summary.steps == 60
    assert summary.tokens == 60 * 4 * 16 == config.tokens
    assert summary.loss < math.log(280) - 0.3  # it has learned something
    assert 0 < summary.loss_se < 0.2
    windows = (len(PreparedCorpus.open(corpus[1]).train) - 1) // 16
    assert summary.epochs == pytest.approx(60 * 4 / windows)
    assert summary.balance.capacity_factor == 1.25
    assert summary.peak_memory_bytes > 10**7

    folder = results.run(config.run_id)
    assert {p.name for p in folder.iterdir()} == {
        "config.json", "documents.parquet", "history.parquet", "load.parquet", "provenance.json",
        "summary.json",
    }  # fmt: skip
    assert not results.checkpoint(config.run_id).exists()
    assert (folder / "config.json").read_text().strip() == config.canonical_json()
    provenance = read_json(folder / "provenance.json")
    assert (provenance["backend"], provenance["threads"]) == ("torch", 1)
    assert set(provenance["corpus_files"]) >= {"train.bin", "validation.bin"}
    assert provenance["resumed_from"] == []
    history = history_of(results, config)
    assert history["step"] == list(range(1, 61))
    assert history["tokens"][-1] == config.tokens
    assert history["lr"][-1] == pytest.approx(0.1 * 1e-2)
    assert history["seconds"] == sorted(history["seconds"])


@pytest.mark.parametrize(
    "model",
    [{}, {"ffn": DENSE, "slices": {"n_experts": 2, "n_heads": 1, "d_expert": 8}}],
    ids=["experts", "slices"],
)
def test_the_loss_beyond_the_context_is_that_of_a_model_with_a_longer_one(
    configure, train, results, corpus, model
):
    asked = {"sequences": 32, "longer": 4}
    config = configure(steps=10, model=model, evaluation=asked)
    alone = configure(steps=10, model=model, evaluation={"sequences": 32})
    assert config.run_id != alone.run_id
    summary = train(config, keep_weights=True)
    assert summary.loss == train(alone).loss
    _, trained = weights.load(results.weights(config.run_id))
    longer = Transformer(config.model.model_copy(update={"context": 64}), 0)
    longer.load_state_dict(trained.state_dict())
    tokens = torch.from_numpy(validation(PreparedCorpus.open(corpus[1]), 8, 64).tokens)
    with torch.no_grad():
        logits, _ = longer(tokens[:, :-1])
    loss = F.cross_entropy(logits, tokens[:, 1:].flatten(), reduction="none").view(8, 64)
    assert summary.loss_beyond == pytest.approx(float(loss[:, 16:].mean()), rel=1e-6)
    assert train(alone).loss_beyond is None


def test_a_run_on_shuffled_text_is_evaluated_on_the_text_as_it_is(
    configure, train, results, corpus
):
    config = configure(steps=10, shuffle="tokens")
    summary = train(config, keep_weights=True)
    assert summary.train_loss != train(configure(steps=10)).train_loss
    _, model = weights.load(results.weights(config.run_id))
    tokens = torch.from_numpy(validation(PreparedCorpus.open(corpus[1]), 64, 16).tokens)
    with torch.no_grad():
        logits, _ = model(tokens[:, :-1])
    loss = F.cross_entropy(logits, tokens[:, 1:].flatten())
    assert summary.loss == pytest.approx(float(loss), rel=1e-6)


def test_the_losses_of_the_documents_add_up_to_the_loss_and_its_error(configure, train, results):
    config = configure(steps=20)
    summary = train(config)
    table = pq.read_table(results.run(config.run_id) / "documents.parquet")
    document, tokens, nats = (np.array(table[name]) for name in ("document", "tokens", "nats"))
    assert (np.diff(document) > 0).all()
    assert tokens.sum() == 64 * 16  # all that was evaluated
    assert nats.sum() / tokens.sum() == pytest.approx(summary.loss, rel=1e-12)
    residuals = nats - tokens * summary.loss
    n = len(document)
    error = math.sqrt(n / (n - 1) * (residuals**2).sum()) / tokens.sum()
    assert error == pytest.approx(summary.loss_se, rel=1e-9)
    assert table.schema.field("nats").metadata[b"unit"] == b"nats"


def test_a_diverging_run_is_a_result(configure, train, results):
    config = configure(steps=400, optimizer={"lr": 30.0, "clip": 0})
    summary = train(config)
    assert summary.status == "diverged"
    assert summary.loss is None
    assert summary.steps < 400
    history = history_of(results, config)
    assert history["step"][-1] == summary.steps == len(history["loss"])
    assert not (results.run(summary.run_id) / "documents.parquet").exists()


def test_lack_of_memory_is_told_and_tried_again(configure, train):
    experts = {"kind": "moe", "n_experts": 10**6, "top_k": 2, "d_expert": 10**6}
    config = configure(experts)
    for _ in range(2):
        lines = []
        summary = train(config, log=lines.append)
        assert summary.status == "out_of_memory"
        assert "on cpu" in summary.message
        assert any("back end" in line for line in lines)  # it was tried, not remembered


def test_refusals_come_before_training(configure, train, corpus, tmp_path, monkeypatch):
    config = configure()
    with pytest.raises(UserError, match="device cuda cannot be used"):
        train(config, device="cuda")
    with pytest.raises(UserError, match="max_epochs is 1"):
        train(configure(steps=10**6))
    with pytest.raises(UserError, match="no prepared corpus"):
        train(config, corpus=tmp_path / "nothing")
    with pytest.raises(UserError, match="back end 'warp' is unknown"):
        train(config, corpus=tmp_path / "nothing", backend="warp")
    other = configure(corpus={**corpus[0].model_dump(), "seed": 9})
    with pytest.raises(UserError, match=f"holds corpus {corpus[0].corpus_id}"):
        train(other)
    with pytest.raises(UserError, match="must be a multiple of 2"):
        train(config, micro_batch=3)
    done = train(configure(steps=2), out=tmp_path / "done").run_id
    with pytest.raises(UserError, match=f"holds run {done}, not {config.run_id}"):
        train(config, out=tmp_path / "done")
    for threads in ("many", "99999"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        with pytest.raises(UserError, match=f"OMP_NUM_THREADS is '{threads}'"):
            train(config)


def test_a_users_own_files_in_the_given_folder_are_left_alone(configure, train, tmp_path):
    """Folders of common names stand in many places that --out may name."""
    mine = [tmp_path / name / "mine.bin" for name in ("weights", "checkpoint")]
    for path in mine:
        path.parent.mkdir()
        path.write_text("precious")
    train(configure(steps=2), out=tmp_path)
    assert [path.read_text() for path in mine] == ["precious"] * 2
