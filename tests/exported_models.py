"""Models of all shapes that can be exported to transformers, with random weights."""

import torch

from moelaws.model.transformer import Transformer
from moelaws.spec.base import parse
from moelaws.spec.model import Model
from random_corpus import VOCABULARY

SHAPE = {
    "n_layers": 3, "d_model": 16, "n_heads": 4, "n_kv": 2, "context": 64,
    "vocab_size": VOCABULARY, "init_std": 0.3,
}  # fmt: skip
DENSE = {"kind": "dense", "d_ffn": 24}
EXPERTS = {"kind": "moe", "n_experts": 4, "top_k": 2, "d_expert": 8}
FIRST_DENSE = {"n_dense_layers": 1, "d_ffn": 20}
ALONE = {"top_k": 1, "normalize_top_k": False}
SIGMOID = EXPERTS | {"gate": "sigmoid", "balance": "bias", "route_scale": 2.5}
SHARED = {"n_shared": 2, "n_dense_layers": 2, "d_ffn": 20}

# Name -> (the class of transformers, what differs from SHAPE).
MODELS = {
    "dense": ("LlamaForCausalLM", {"ffn": DENSE}),
    "dense, tied, theta": (
        "LlamaForCausalLM",
        {"ffn": DENSE, "n_kv": 4, "tied_embeddings": True, "rope_theta": 500.0},
    ),
    "dense, QK-norm": ("Qwen3ForCausalLM", {"ffn": DENSE, "qk_norm": True}),
    "dense, QK-norm, own head width": (
        "Qwen3ForCausalLM",
        {"ffn": DENSE, "qk_norm": True, "head_width": 10, "n_heads": 3, "n_kv": 1},
    ),
    "experts, QK-norm": ("Qwen3MoeForCausalLM", {"ffn": EXPERTS, "qk_norm": True}),
    "experts, QK-norm, one a token": (
        "Qwen3MoeForCausalLM",
        {
            "ffn": EXPERTS | ALONE,
            "qk_norm": True,
            "tied_embeddings": True,
            "head_width": 6,
            "n_heads": 3,
            "n_kv": 1,
        },
    ),
    "experts, QK-norm, first layer dense, odd width": (
        "Qwen3MoeForCausalLM",
        {
            "ffn": EXPERTS | FIRST_DENSE | {"normalize_top_k": False, "d_expert": 7},
            "qk_norm": True,
        },
    ),
    "a single expert, QK-norm": (
        "Qwen3MoeForCausalLM",
        {"ffn": EXPERTS | {"n_experts": 1, "top_k": 1}, "qk_norm": True},
    ),
    "experts": ("Ernie4_5_MoeForCausalLM", {"ffn": EXPERTS}),
    "experts, shared ones, first layers dense": (
        "Ernie4_5_MoeForCausalLM",
        {
            "ffn": EXPERTS | SHARED,
            "head_width": 6,
            "tied_embeddings": True,
            "n_heads": 3,
            "n_kv": 1,
        },
    ),
    "experts chosen with a bias": (
        "Ernie4_5_MoeForCausalLM",
        {"ffn": EXPERTS | {"balance": "bias"}},
    ),
    "sigmoids": ("Glm4MoeForCausalLM", {"ffn": SIGMOID, "tied_embeddings": True, "head_width": 6}),
    "sigmoids, QK-norm, shared ones, gates as they are": (
        "Glm4MoeForCausalLM",
        {"ffn": SIGMOID | SHARED | {"normalize_top_k": False}, "qk_norm": True, "n_kv": 1},
    ),
    "sigmoids without a bias, one a token, odd width": (
        "Glm4MoeForCausalLM",
        {"ffn": EXPERTS | ALONE | FIRST_DENSE | {"gate": "sigmoid", "d_expert": 7}},
    ),
}


def model_of(changes):
    """The Model of SHAPE with ``changes``."""
    return parse(Model, SHAPE | changes, "test")


def built(model):
    """A transformer of random weights, its gains away from 1 and its biases away from 0."""
    made = Transformer(model, seed=1)
    generator = torch.Generator().manual_seed(7)
    for parameter in made.parameters():
        if parameter.ndim == 1:
            torch.nn.init.uniform_(parameter, 0.5, 1.5, generator=generator)
    for bias in made.biases().values():
        bias.uniform_(-0.3, 0.3, generator=generator)
    return made.eval()
