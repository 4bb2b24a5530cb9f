"""A run's identity: what changes it, what does not, and that old ids stay."""

import copy

import pytest

from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.run import RunConfig


def test_golden_id(run_data):
    # Runs on disk go by this id: a change here orphans every trained model.
    config = RunConfig.model_validate(run_data)
    assert config.canonical_json() == (
        '{"balance_group":4,"batch":4,"corpus":{"source":{"digest":"' + "0" * 64 + '"},'
        '"vocab_size":300},"model":{"context":64,"d_model":32,"ffn":{"d_expert":32,"kind":"moe",'
        '"n_experts":8,"top_k":2},"n_heads":2,"n_kv":2,"n_layers":2,"vocab_size":300},'
        '"optimizer":{"lr":0.003},"steps":10}'
    )
    assert config.run_id == "851235e800d2cb35"


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


def test_key_order_is_nothing(run_data):
    expected = RunConfig.model_validate(run_data)
    for keys in (reversed(run_data), sorted(run_data)):
        ordered = {key: run_data[key] for key in keys}
        assert RunConfig.model_validate(ordered).run_id == expected.run_id
    assert RunConfig.model_validate_json(expected.canonical_json()) == expected


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("model.ffn.top_k", 9, "k must be at most E"),
        ("model.ffn.top_k", 1, "set normalize_top_k: false"),
        ("model.d_model", 33, "head width must be"),
        ("model.n_kv", 3, "must divide n_heads"),
        ("steps", 0, "steps is 0; it must be at least 1"),
        ("steps", 1.5, "steps is 1.5; it must be a whole number"),
        ("optimizer.lr", "fast", "optimizer.lr is 'fast'; it must be a number"),
        ("optimizer.lr", float("nan"), "it must be a finite number"),
        ("optimizer.lr", 1e30, "optimizer.lr is 1e+30; it must be at most 1,000"),
        ("optimizer.beta1", 1, "optimizer.beta1 is 1; it must be less than 1"),
        ("optimizer", {"lr": 1, "kind": "muon", "moment": 0.9}, "did you mean momentum?"),
        ("optimizer", "adamw", "optimizer is 'adamw'; it must be"),
        ("optimizer", None, "optimizer is"),
        ("model.head_width", 15, "head_width = 15; it must be even"),
        (
            "model.ffn.n_expert",
            1,
            "key model.ffn.n_expert; did you mean n_experts? Allowed here: b",
        ),
        ("model.ffn.n_dense_layers", 1, "n_dense_layers = 1 with d_ffn = None"),
        ("model.ffn.route_by", "expert_choice", "which a decoder must not see"),
        ("model.ffn.bias_rate", 0.01, "bias_rate is set where balance is bias, and only there"),
        ("model.ffn.balance", "even", "balance is 'even'; it must be loss, bias or none"),
        ("model.ffn.capacity_factor", 0, "capacity_factor is 0; it must be greater than 0"),
        ("corpus.vocab_size", 400, "differs from corpus.vocab_size"),
        ("balance_group", 3, "must divide batch"),
        ("schedule", {"warmup": 0.1, "warmup_steps": 9}, "are both set; set one of them"),
    ],
)
def test_mistakes_are_named(run_data, path, value, message):
    *outer, last = path.split(".")
    target = run_data
    for key in outer:
        target = target[key]
    target[last] = value
    with pytest.raises(UserError) as caught:
        parse(RunConfig, run_data, "run.json")
    assert str(caught.value).startswith("run.json: ")
    assert message in str(caught.value)
