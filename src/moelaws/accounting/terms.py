"""Forward FLOPs per token of the matrix products of a model, by term.

A product of (a, b) with (b, c) takes 2 a b c FLOPs. Attention is counted in full, as all papers
do: each token meets the whole context, though the mask hides half of it. Norms, rotations,
softmaxes, non-linearities, biases, gates and the embedding's look-up are no products.
"""

from __future__ import annotations

from moelaws.accounting.parameters import MATRICES
from moelaws.spec.model import Model, MoE

ATTENTION = ("queries", "keys_values", "scores", "values", "output")
FFN = ("router", "routed_experts", "shared_experts", "dense_ffn")
TERMS = (*ATTENTION, *FFN, "logits")


def forward_terms(model: Model) -> dict[str, int]:
    """Returns forward FLOPs per token, summed over the layers.

    With rho = n_kv / n_heads, n = context, a = n_heads * head width (d unless it is set apart) and
    w the hidden width that a token passes, a layer's are:

    queries and output 2 d a each, keys_values 4 d a rho, scores (QK^T) and values (weights times
    V) 2 n a each, router 2 d E, experts and dense_ffn 6 d w (SwiGLU) or 4 d w (GELU).
    """
    d, ffn = model.d_model, model.ffn
    layers, moe_layers = model.n_layers, model.n_moe_layers
    square = 2 * d * model.d_attention * layers
    context = 2 * model.context * model.d_attention * layers
    by_width = 2 * MATRICES[ffn.mlp] * d
    router = routed = shared = 0
    if isinstance(ffn, MoE):
        router = moe_layers * 2 * d * ffn.n_experts
        routed = moe_layers * by_width * ffn.d_expert * ffn.top_k
        shared = moe_layers * by_width * ffn.d_expert * ffn.n_shared
    return {
        "queries": square,
        "keys_values": 2 * square * model.n_kv // model.n_heads,
        "scores": context,
        "values": context,
        "output": square,
        "router": router,
        "routed_experts": routed,
        "shared_experts": shared,
        "dense_ffn": (layers - moe_layers) * by_width * (ffn.d_ffn or 0),
        "logits": 2 * d * model.vocab_size,
    }
