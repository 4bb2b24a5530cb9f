"""The tensors of a run by the names of transformers, and the safetensors files that hold them.

Shapes: D model width, H heads, W head width, E experts, F expert width.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from huggingface_hub import split_state_dict_into_shards_factory
from torch import Tensor

from moelaws.exports.hf.architecture import Architecture
from moelaws.model.parameterization import multipliers
from moelaws.records.tensors import write_tensors
from moelaws.spec.model import Model

SHARD = 5 * 10**9  # bytes in a file, at most, unless a single tensor has more
CONTIGUOUS = torch.contiguous_format
INDEX = "model.safetensors.index.json"


def to_halves(rows: Tensor, width: int) -> Tensor:
    """Reorders the rows of each head of ``width`` W: the even ones 0, 2, 4, ... come first.

    ``rows`` is (H W, D), or (W,) for the gain of a norm. In moelaws RoPE turns the entries 2 j and
    2 j + 1 of a head by one angle, in transformers the entries j and j + W / 2. Queries and keys
    are reordered alike, so that their products stay the same.
    """
    heads = rows.reshape(-1, width // 2, 2, *rows.shape[1:])
    return heads.transpose(1, 2).reshape(rows.shape)


def convert(
    model: Model, architecture: Architecture, weights: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Returns the fp32 ``weights`` by transformers' names; they are views unless reordered.

    Each expert has tensors of its own, as in published checkpoints; transformers stacks them when
    it loads them.
    """
    weights = folded(model, weights)
    tensors = {"model.embed_tokens.weight": weights["embedding"]}
    for i in range(model.n_layers):
        prefix = f"layers.{i}."
        layer = {
            name.removeprefix(prefix): tensor
            for name, tensor in weights.items()
            if name.startswith(prefix)
        }
        for name, tensor in _layer(model, architecture, layer):
            tensors[f"model.layers.{i}.{name}.weight"] = tensor
        if architecture.router_bias and "moe.router.weight" in layer:
            bias_E = layer.get("moe.router.bias", torch.zeros(len(layer["moe.router.weight"])))
            tensors[f"model.layers.{i}.{architecture.router_bias}"] = bias_E.view(
                architecture.bias_shape
            )
    tensors["model.norm.weight"] = weights["final_norm.gain"]
    if not model.tied_embeddings:
        tensors["lm_head.weight"] = weights["unembedding"]
    return tensors


def folded(model: Model, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Returns weights of the same function without the multipliers of its parameterization."""
    if model.base is None:
        return weights
    by, plain = multipliers(model), dict(weights)
    queries = model.n_heads * model.width_of_head
    for name, weight in weights.items():
        factor = by.routed if "routed_experts" in name else 1.0
        if name == "final_norm.gain":
            factor *= by.logits
        elif name.endswith(("w_down", "w_out", "b_out")):
            factor *= by.residual
        elif name.endswith("q_norm.gain"):
            factor = by.scores
        elif name.endswith("w_qkv") and not model.qk_norm:
            of_queries, others = torch.split_with_sizes(weight, [queries, len(weight) - queries])
            plain[name] = torch.cat((of_queries * by.scores, others))
            continue
        else:
            factor = 1.0
        plain[name] = weight * factor
    return plain


def _layer(
    model: Model, architecture: Architecture, layer: Mapping[str, Tensor]
) -> Iterator[tuple[str, Tensor]]:
    yield "input_layernorm", layer["attention_norm.gain"]
    width = model.width_of_head
    heads = [model.n_heads * width, model.n_kv * width, model.n_kv * width]
    q, k, v = torch.split_with_sizes(layer["attention.w_qkv"], heads)
    turned = {"q_proj": q, "k_proj": k}
    if model.qk_norm:
        turned |= {name: layer[f"attention.{name}.gain"] for name in ("q_norm", "k_norm")}
    for name, tensor in turned.items():
        rows = tensor if architecture.turns_neighbours else to_halves(tensor, width)
        yield f"self_attn.{name}", rows
    yield "self_attn.v_proj", v
    yield "self_attn.o_proj", layer["attention.w_out"]
    yield "post_attention_layernorm", layer["ffn_norm.gain"]
    if "dense_ffn.w_down" in layer:
        yield from _swiglu("mlp", layer["dense_ffn.w_gate_up"], layer["dense_ffn.w_down"])
        return
    yield "mlp.gate", layer["moe.router.weight"]
    # Stacked experts have (E, D, 2 F) and (E, F, D); a linear layer has (outputs, inputs).
    gate_up, down = layer["moe.routed_experts.w_gate_up"], layer["moe.routed_experts.w_down"]
    for e, (w_gate_up, w_down) in enumerate(zip(gate_up, down, strict=True)):
        yield from _swiglu(f"mlp.experts.{e}", w_gate_up.T, w_down.T)
    if architecture.has_shared or "moe.shared_experts.w_down" in layer:
        D = model.d_model
        gate_up = layer.get("moe.shared_experts.w_gate_up", torch.empty(0, D))
        down = layer.get("moe.shared_experts.w_down", torch.empty(D, 0))
        yield from _swiglu("mlp.shared_experts", gate_up, down)


def _swiglu(prefix: str, gate_up: Tensor, down: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yields the three matrices of an MLP from (2 F, D), which has the gate first, and (D, F)."""
    gate, up = gate_up.chunk(2)
    yield f"{prefix}.gate_proj", gate
    yield f"{prefix}.up_proj", up
    yield f"{prefix}.down_proj", down


def write(folder: Path, tensors: Mapping[str, Tensor], largest: int = SHARD) -> None:
    """Writes ``tensors`` to ``folder``: one file, or shards of ``largest`` bytes with an index.

    Only one shard at a time is copied in memory.
    """
    split = split_state_dict_into_shards_factory(
        dict(tensors),
        get_storage_size=lambda tensor: tensor.nbytes,
        filename_pattern="model{suffix}.safetensors",
        max_shard_size=largest,
    )
    for file, names in split.filename_to_tensors.items():
        # Copies, because safetensors refuses two tensors of a file that share memory.
        copies = {name: tensors[name].clone(memory_format=CONTIGUOUS) for name in names}
        write_tensors(folder / file, copies, {"format": "pt"})
    if split.is_sharded:
        index = {"metadata": split.metadata, "weight_map": split.tensor_to_filename}
        (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n")
