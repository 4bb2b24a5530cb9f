"""An export as transformers reads it: the same logits, the same tokens, and not a word of warning.

    pip install --no-deps --target OVERLAY -r envs/hf.txt
    PYTHONPATH=OVERLAY pytest tests/exports/hf

With MOELAWS_EXPORTS=required a test that would be skipped for lack of transformers fails.
"""

import json
import os
import re
from pathlib import Path

import pytest
import torch

from exported_models import DENSE, EXPERTS, MODELS, SHARED, SIGMOID, built, model_of
from moelaws.corpus.batches import validation
from moelaws.corpus.shards import PreparedCorpus
from moelaws.corpus.tokenizer import Tokenizer
from moelaws.exports.hf import weights
from moelaws.exports.hf.architecture import architecture_of, config
from moelaws.exports.hf.folder import export
from moelaws.files.atomic import read_json
from moelaws.training.weights import load
from optional_package import need

TOLERANCE = 1e-5  # of the largest logit
TEXTS = [Path(os.__file__).read_text("utf-8"), "naïve 漢字 🙂\r\n\t  é", "<|endoftext|>", ""]
# Parts of a run that transformers has in each of the architectures.
RUNS = {
    "experts with QK-norm": {},
    "shared experts": {"ffn": EXPERTS | SHARED, "qk_norm": False},
    "dense": {"ffn": DENSE, "qk_norm": False, "tied_embeddings": True},
    "sigmoids with a bias": {"ffn": SIGMOID},
}


@pytest.fixture(scope="session")
def transformers():
    os.environ["HF_HUB_OFFLINE"] = "1"  # it is read when the library is loaded
    need("transformers", __file__)
    import transformers

    transformers.utils.logging.enable_propagation()  # to where warnings are caught
    transformers.utils.logging.disable_progress_bar()
    return transformers


@pytest.fixture
def load_export(transformers, caplog):
    """Loads the model of a folder; every tensor has its place, and there is no warning."""

    def load_(folder, **options):
        theirs, info = transformers.AutoModelForCausalLM.from_pretrained(
            folder, output_loading_info=True, **options
        )
        assert {key: problems for key, problems in info.items() if problems} == {}
        assert [record.message for record in caplog.records] == []
        return theirs.eval()

    return load_


def write_model(folder, model, ours):
    (folder / "config.json").write_text(json.dumps(config(model)))
    tensors = weights.convert(model, architecture_of(model), ours.state_dict())
    weights.write(folder, tensors)


def assert_same_logits(ours, theirs, tokens_BN):
    with torch.no_grad():
        logits, _ = ours(tokens_BN)
        logits_BNV = logits.view(*tokens_BN.shape, -1)
        difference = (theirs(tokens_BN).logits - logits_BNV).abs().max()
    assert difference <= TOLERANCE * logits_BNV.abs().max()


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", MODELS)
def test_logits_are_the_models_own(load_export, tmp_path, name, attention):
    architecture, changes = MODELS[name]
    model = model_of(changes)
    ours = built(model)
    write_model(tmp_path, model, ours)
    theirs = load_export(tmp_path, attn_implementation=attention)
    assert type(theirs).__name__ == architecture
    assert theirs.dtype == torch.float32
    tokens = torch.randint(
        0, model.vocab_size, (3, model.context), generator=torch.Generator().manual_seed(2)
    )
    assert_same_logits(ours, theirs, tokens)


@pytest.mark.parametrize("name", MODELS)
def test_generation_with_a_cache_writes_the_models_own_tokens(load_export, tmp_path, name):
    model = model_of(MODELS[name][1])
    ours = built(model)
    write_model(tmp_path, model, ours)
    tokens = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    written = load_export(tmp_path).generate(
        tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=12, do_sample=False,
        eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    with torch.no_grad():
        for _ in range(12):
            logits, _ = ours(tokens)
            tokens = torch.cat((tokens, logits[-1:].argmax(-1, keepdim=True)), dim=1)
    assert torch.equal(written, tokens)


@pytest.fixture(scope="module", params=RUNS, ids=str)
def exported(request, corpus, trained, tmp_path_factory):
    """(configuration, folder) of a trained run that was exported."""
    run = trained(**RUNS[request.param])
    folder = tmp_path_factory.mktemp("exported") / "run"
    export(corpus[1], run.run_id, folder)
    return run, folder


def test_a_trained_run_gives_its_logits_and_its_loss(load_export, corpus, exported):
    run, folder = exported
    theirs = load_export(folder)
    _, ours = load(corpus[1].weights(run.run_id))
    data = PreparedCorpus.open(corpus[1].corpus(run.corpus.corpus_id))
    held_out = validation(data, run.evaluation.sequences, run.model.context)
    tokens = torch.from_numpy(held_out.tokens)
    assert_same_logits(ours, theirs, tokens[:, :-1])
    with torch.no_grad():
        loss = theirs(tokens, labels=tokens).loss  # each position predicts the next one
    recorded = read_json(corpus[1].summary(run.run_id))["loss"]
    assert loss.item() == pytest.approx(recorded, rel=1e-5)
    assert f"{recorded:.5g}" in (folder / "README.md").read_text("utf-8")


def test_its_tokenizer_reads_every_text_as_training_did(transformers, corpus, exported, caplog):
    run, folder = exported
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    mine = Tokenizer.load(corpus[1].corpus(run.corpus.corpus_id) / "tokenizer.json")
    assert isinstance(theirs, transformers.PreTrainedTokenizerFast)
    assert [record.message for record in caplog.records] == []
    assert len(theirs) == run.model.vocab_size
    assert theirs.eos_token_id == theirs.bos_token_id == run.model.vocab_size - 1
    for text in TEXTS:
        tokens = mine.encode(text)
        assert theirs(text).input_ids == theirs.encode(text) == tokens
        assert theirs.decode(tokens) == text
    assert theirs("<|endoftext|>", split_special_tokens=False).input_ids == [theirs.eos_token_id]
    longer = [record.message for record in caplog.records]
    assert all(re.search("longer than the specified maximum", message) for message in longer)


def test_generation_ends_with_the_document(load_export, exported):
    run, folder = exported
    settings = load_export(folder).generation_config
    assert settings.eos_token_id == settings.pad_token_id == run.model.vocab_size - 1
