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


def of(architecture, ffn, **changes):
    return f"{architecture}ForCausalLM", {"ffn": ffn, **changes}


TIED, NORMED, HEADS = {"tied_embeddings": True}, {"qk_norm": True}, {"n_heads": 3, "n_kv": 1}
BASE = {
    "d_model": 12, "n_layers": 1, "n_heads": 2, "n_kv": 1, "n_experts": 2, "top_k": 1, "d_expert": 3
}  # fmt: skip
SCALED = {"parameterization": "completep", "base": BASE}
# Name -> (the class of transformers, what differs from SHAPE).
MODELS = {
    "dense": of("Llama", DENSE),
    "dense, tied, theta": of("Llama", DENSE, n_kv=4, rope_theta=500.0, **TIED),
    "dense, QK-norm": of("Qwen3", DENSE, **NORMED),
    "dense, QK-norm, own head width": of("Qwen3", DENSE, head_width=10, **NORMED, **HEADS),
    "experts, QK-norm": of("Qwen3Moe", EXPERTS, **NORMED),
    "experts, QK-norm, one a token": of(
        "Qwen3Moe", EXPERTS | ALONE, head_width=6, **NORMED, **TIED, **HEADS
    ),
    "experts, QK-norm, first layer dense, odd width": of(
        "Qwen3Moe", EXPERTS | FIRST_DENSE | {"normalize_top_k": False, "d_expert": 7}, **NORMED
    ),
    "a single expert, QK-norm": of("Qwen3Moe", EXPERTS | {"n_experts": 1, "top_k": 1}, **NORMED),
    "experts": of("Ernie4_5_Moe", EXPERTS),
    "experts, shared ones, first layers dense": of(
        "Ernie4_5_Moe", EXPERTS | SHARED, head_width=6, **TIED, **HEADS
    ),
    "experts chosen with a bias": of("Ernie4_5_Moe", EXPERTS | {"balance": "bias"}),
    "sigmoids": of("Glm4Moe", SIGMOID, head_width=6, **TIED),
    "sigmoids, QK-norm, shared ones, gates as they are": of(
        "Glm4Moe", SIGMOID | SHARED | {"normalize_top_k": False}, n_kv=1, **NORMED
    ),
    "experts, QK-norm, by a base's rules": of("Qwen3Moe", EXPERTS, **SCALED, **NORMED),
    "sigmoids, gates as they are, by a base's rules": of(
        "Glm4Moe", SIGMOID | {"normalize_top_k": False}, **SCALED
    ),
    "sigmoids without a bias, one a token, odd width": of(
        "Glm4Moe", EXPERTS | ALONE | FIRST_DENSE | {"gate": "sigmoid", "d_expert": 7}
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
