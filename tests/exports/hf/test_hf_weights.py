"""What can be exported to transformers, as what, and that each trained number goes there once."""

import json

import pytest
import torch
from safetensors import safe_open

from exported_models import DENSE, EXPERTS, FIRST_DENSE, MODELS, SIGMOID, built, model_of
from moelaws.accounting.parameters import count_parameters
from moelaws.exports.hf import weights
from moelaws.exports.hf.architecture import architecture_of, config
from moelaws.model.attention import rotary, rotate
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
        ({"ffn": EXPERTS | {"n_shared": 1}, "qk_norm": True}, "n_shared is 1, and Qwen3Moe"),
        ({"ffn": DENSE, "n_heads": 3, "n_kv": 3, "head_width": 6}, "d_model is 16 with n_heads"),
        ({"ffn": EXPERTS | {"balance": "bias"}, "qk_norm": True}, "balance is bias, and Qwen3Moe"),
        ({"ffn": SIGMOID | {"capacity_factor": 1.5}}, "capacity_factor is 1.5, and none of them"),
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


N, H, W = 12, 3, 10


def rotated_by_halves(x_NHW, theta):
    """RoPE as transformers has it: entries j and j + W / 2 of a head turn by one angle."""
    frequency = theta ** (-torch.arange(0, W, 2, dtype=torch.float64) / W)
    angle = (torch.arange(N)[:, None] * frequency)[:, None, :]
    first, second = x_NHW.double().chunk(2, dim=-1)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def test_scores_are_the_same_in_the_order_of_halves():
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, N, H, W, generator=generator)
    mine_q, mine_k = (rotate(x[None], rotary(N, W, 500.0))[0].double() for x in (q, k))
    halved_q, halved_k = (
        # Rows are heads times width: the order is that of a projection's outputs.
        weights.to_halves(x.reshape(N, H * W).T, W).T.reshape(N, H, W)
        for x in (q, k)
    )
    theirs_q, theirs_k = (rotated_by_halves(x, 500.0) for x in (halved_q, halved_k))
    mine = torch.einsum("nhw,mhw->hnm", mine_q, mine_k)
    theirs = torch.einsum("nhw,mhw->hnm", theirs_q, theirs_k)
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-5)
    unordered = torch.einsum("nhw,mhw->hnm", *(rotated_by_halves(x, 500.0) for x in (q, k)))
    assert (mine - unordered).abs().max() > 0.1  # the order matters


def test_a_heads_even_entries_come_first():
    rows = torch.arange(8)
    assert weights.to_halves(rows, 8).tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert weights.to_halves(rows[:, None], 4).flatten().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


@pytest.mark.parametrize("name", MODELS)
def test_every_number_is_written_once(name):
    model = model_of(MODELS[name][1])
    state = {key: torch.empty_like(value) for key, value in built(model).state_dict().items()}
    begin = 0
    for tensor in state.values():  # each number is another one
        tensor.copy_(torch.arange(begin, begin + tensor.numel()).view(tensor.shape))
        begin += tensor.numel()
    tensors = weights.convert(model, architecture_of(model), state)
    if not model.n_biases:  # the export may have some, which are 0
        tensors = {key: t for key, t in tensors.items() if "e_score_correction_bias" not in key}
    numbers = [t.flatten() for t in tensors.values()]
    assert begin == count_parameters(model).total + model.n_biases
    assert torch.equal(torch.cat(numbers).sort().values, torch.arange(begin, dtype=torch.float32))


def test_large_models_are_split_into_files_with_an_index(tmp_path):
    model = model_of(MODELS["experts, QK-norm"][1])
    state = built(model).state_dict()
    tensors = weights.convert(model, architecture_of(model), state)
    weights.write(tmp_path / "", tensors, largest=5000)
    index = json.loads((tmp_path / weights.INDEX).read_text())
    files = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert sorted(set(index["weight_map"].values())) == files
    assert files[0] == f"model-00001-of-{len(files):05}.safetensors"
    assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in state.values())
    for file in files:
        with safe_open(tmp_path / file, "pt") as shard:
            names = list(shard.keys())
            assert all(index["weight_map"][name] == file for name in names)
            assert all(torch.equal(shard.get_tensor(name), tensors[name]) for name in names)
            # The embedding alone is larger than the limit.
            assert len(names) == 1 or sum(tensors[name].nbytes for name in names) <= 5000
