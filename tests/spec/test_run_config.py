"""The identities of runs and corpora: what changes them, what does not, and golden ids."""

import copy

import pytest

from moelaws.spec.base import parse
from moelaws.spec.corpus import Corpus, Dataset
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_project
from moelaws.spec.run import RunConfig
from nested import changed
from repository import REPOSITORY


def test_golden_id(run_data):
    # Runs on disk go by this id: a change here orphans every trained model.
    assert RunConfig.model_validate(run_data).run_id == "851235e800d2cb35"


def test_spelled_out_defaults_and_strings_are_the_same_run(run_data):
    plain = RunConfig.model_validate(run_data)
    spelled = copy.deepcopy(run_data)
    spelled["optimizer"] = {"beta2": 0.95, "lr": "3e-3"}
    spelled["model"]["ffn"]["n_shared"] = "0"
    spelled["schedule"] = {"kind": "cosine", "warmup": 0.02}
    assert RunConfig.model_validate(spelled).run_id == plain.run_id


def test_every_field_that_decides_the_result_decides_the_id(run_data):
    base = RunConfig.model_validate(run_data).run_id
    changes = [
        {"seed": 1}, {"steps": 11}, {"precision": "bf16"}, {"optimizer": {"lr": 4e-3}},
        {"schedule": {"warmup": 0.1}}, {"evaluation": {"sequences": 7}},
        {"balance_group": 2}, {"max_epochs": 2}, {"schedule": {"warmup_steps": 1}},
    ]  # fmt: skip
    ids = {RunConfig.model_validate({**run_data, **change}).run_id for change in changes}
    assert len(ids | {base}) == len(changes) + 1


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("model.ffn.top_k", 9, "k must be at most E"),
        ("model.ffn.top_k", 1, "set normalize_top_k: false"),
        ("model.d_model", 33, "head width must be"),
        ("model.n_kv", 3, "must divide n_heads"),
        ("optimizer.lr", "fast", "optimizer.lr is 'fast'; it must be a number"),
        ("optimizer.lr", float("nan"), "it must be a finite number"),
        ("optimizer", {"lr": 1, "kind": "muon", "moment": 0.9}, "did you mean momentum?"),
        ("model.ffn.n_expert", 1, "model.ffn: unknown key n_expert; did you mean n_experts? All"),
        ("model.ffn.route_by", "expert_choice", "which a decoder must not see"),
        ("model.ffn.capacity_factor", 0, "capacity_factor is 0; it must be greater than 0"),
        ("corpus.vocab_size", 400, "differs from corpus.vocab_size"),
        ("balance_group", 3, "must divide batch"),
        ("schedule", {"warmup": 0.1, "warmup_steps": 9}, "are both set; set one of them"),
    ],
)
def test_mistakes_are_named(run_data, path, value, message):
    with pytest.raises(UserError) as caught:
        parse(RunConfig, changed(run_data, path, value), "run.json")
    assert str(caught.value).startswith("run.json: ")
    assert message in str(caught.value)


COMMIT = "0123456789" * 4
HUB = {"kind": "hub", "name": "owner/stories", "commit": COMMIT}


def corpus(source, **more):
    return parse(Corpus, {"source": source, "vocab_size": 300, **more}, "corpus")


def test_golden_ids():
    """Corpora on disk go by these."""
    assert corpus({"digest": "0" * 64}).corpus_id == "2a695396ab33ffd6"
    assert corpus({"digest": "0" * 64}, tokenizer="1" * 64).corpus_id == "cb3e44b28e3bf398"
    assert corpus({**HUB, "bytes": "1e9"}).corpus_id == "c74327591f4af55e"
    assert corpus({"kind": "folder", "digest": "0" * 64}).corpus_id == "49b5e18675545b21"


def test_all_that_decides_the_text_decides_the_id():
    changes = [
        {}, {"name": "owner/tales"}, {"commit": "a" * 40}, {"subset": "small"}, {"split": "test"},
        {"column": "story"}, {"bytes": 10}, {"document_starts": "^ = "},
    ]  # fmt: skip
    ids = {corpus({**HUB, **change}).corpus_id for change in changes}
    assert len(ids) == len(changes)
    assert corpus({**HUB, "split": "train", "column": "text"}).corpus_id in ids


def test_a_data_set_in_config():
    data = {"dataset": "owner/stories", "commit": COMMIT, "bytes": "1e9", "subset": None}
    corpus = load_project(REPOSITORY, {"corpus": data}).corpus
    assert corpus == Dataset(dataset="owner/stories", commit=COMMIT, bytes=10**9)


@pytest.mark.parametrize(
    ("corpus", "says"),
    [
        ({"commit": COMMIT}, "corpus.dataset is missing"),
        ({"dataset": "a/b", "commit": "main"}, "commit is 'main'; it must be the 40 hexadecimal"),
        ({"dataset": "a/b", "split": "train[:10%]"}, "to use less of it, set bytes"),
    ],
)
def test_mistakes_in_config(corpus, says):
    with pytest.raises(UserError) as caught:
        load_project(REPOSITORY, {"corpus": corpus})
    assert str(caught.value).startswith("command line: ")
    assert says in str(caught.value)
