"""Which runs can be exported to transformers, and as what; why the others cannot."""

import pytest

from exported_models import DENSE, EXPERTS, FIRST_DENSE, MODELS, SIGMOID, model_of
from moelaws.exports.hf.architecture import architecture_of, config
from moelaws.spec.errors import UserError


@pytest.mark.parametrize("name", MODELS)
def test_the_architecture_is_that_of_the_models_parts(name):
    expected, changes = MODELS[name]
    assert architecture_of(model_of(changes)).name == expected
    assert config(model_of(changes))["architectures"] == [expected]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"ffn": EXPERTS | {"mlp": "gelu"}, "qk_norm": True}, "mlp is gelu.*has mlp: swiglu"),
        ({"ffn": DENSE | {"mlp": "gelu"}}, "mlp is gelu"),
        ({"ffn": EXPERTS | {"n_shared": 1}, "qk_norm": True}, "n_shared is 1, and Qwen3Moe"),
        ({"ffn": EXPERTS | {"normalize_top_k": False}}, "normalize_top_k is false, and Ernie"),
        ({"ffn": DENSE, "n_heads": 3, "n_kv": 3, "head_width": 6}, "d_model is 16 with n_heads"),
        ({"ffn": EXPERTS | {"mlp": "gelu", "n_shared": 1}, "qk_norm": True}, "gelu.*; n_shared"),
        ({"ffn": EXPERTS | {"balance": "bias"}, "qk_norm": True}, "balance is bias, and Qwen3Moe"),
        ({"ffn": EXPERTS | {"route_scale": 2}}, "route_scale is 2.0, and only"),
        ({"ffn": SIGMOID | {"capacity_factor": 1.5}}, "capacity_factor is 1.5, and none of them"),
        ({"ffn": SIGMOID | {"n_experts": 1, "top_k": 1}}, "n_experts is 1, and Glm4Moe"),
    ],
)
def test_what_transformers_cannot_compute_is_refused_with_the_reason(changes, says):
    with pytest.raises(UserError, match=says):
        architecture_of(model_of(changes))


def test_the_settings_that_change_logits_are_written():
    ffn = EXPERTS | FIRST_DENSE | {"n_dense_layers": 2, "normalize_top_k": False}
    model = model_of({"ffn": ffn, "qk_norm": True, "head_width": 6, "rope_theta": 700.0})
    written = config(model)
    assert written["head_dim"] == 6
    assert written["num_key_value_heads"] == 2
    assert written["rope_parameters"]["rope_theta"] == written["rope_theta"] == 700.0
    assert written["mlp_only_layers"] == [0, 1]
    assert written["intermediate_size"] == 20
    assert written["norm_topk_prob"] is False
    assert written["tie_word_embeddings"] is False
    assert written["eos_token_id"] == model.vocab_size - 1


@pytest.mark.parametrize(("width", "grouped"), [(8, True), (7, False), (12, False)])
def test_widths_that_grouped_products_cannot_take_are_computed_expert_by_expert(width, grouped):
    model = model_of({"ffn": EXPERTS | {"d_expert": width}, "qk_norm": True})
    assert ("experts_implementation" not in config(model)) == grouped
