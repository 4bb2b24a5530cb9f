"""What can be exported to transformers, as what, and that each trained number goes there once."""

import json

import pytest
import torch
from safetensors import safe_open

from exported_models import DENSE, EXPERTS, MODELS, SIGMOID, built, model_of
from moelaws.accounting.parameters import count_parameters
from moelaws.exports.hf import weights
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
        ({"ffn": EXPERTS | {"n_shared": 1}, "qk_norm": True}, "n_shared is 1, and Qwen3Moe"),
        ({"ffn": DENSE, "n_heads": 3, "n_kv": 3, "head_width": 6}, "d_model is 16 with n_heads"),
        ({"ffn": EXPERTS | {"balance": "bias"}, "qk_norm": True}, "balance is bias, and Qwen3Moe"),
        ({"ffn": SIGMOID | {"capacity_factor": 1.5}}, "capacity_factor is 1.5, and none of them"),
    ],
)
def test_what_transformers_cannot_compute_is_refused_with_the_reason(changes, says):
    with pytest.raises(UserError, match=says):
        architecture_of(model_of(changes))


@pytest.mark.parametrize(("width", "grouped"), [(8, True), (7, False), (12, False)])
def test_widths_that_grouped_products_cannot_take_are_computed_expert_by_expert(width, grouped):
    model = model_of({"ffn": EXPERTS | {"d_expert": width}, "qk_norm": True})
    assert ("experts_implementation" not in config(model)) == grouped


def test_a_heads_even_entries_come_first():
    rows = torch.arange(8)
    assert weights.to_halves(rows, 8).tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert weights.to_halves(rows[:, None], 4).flatten().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


@pytest.mark.parametrize("name", [name for name in MODELS if "base's rules" not in name])
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
