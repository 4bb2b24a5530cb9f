"""Forward FLOPs per token of the matrix products of a model, by term.

A product of (a, b) with (b, c) takes 2 a b c FLOPs. Attention is counted in full, as all papers
do: each token meets the whole context, though the mask hides half of it. Norms, rotations,
softmaxes, non-linearities, biases, gates and the embedding's look-up are no products.
"""

from __future__ import annotations

from moelaws.accounting.parameters import MATRICES
from moelaws.spec.model import Model, MoE

ATTENTION = (
    "queries", "keys_values", "scores", "values", "output", "slice_projections", "slice_scores",
    "aggregation",
)  # fmt: skip
FFN = ("router", "routed_experts", "shared_experts", "dense_ffn", "slice_ffn")
TERMS = (*ATTENTION, *FFN, "logits")


def forward_terms(model: Model) -> dict[str, float]:
    """Returns forward FLOPs per token, summed over the layers.

    With rho = n_kv / n_heads, n = context, a = n_heads * head width (d unless it is set apart) and
    w the hidden width that a token passes, a layer's are:

    queries and output 2 d a each, keys_values 4 d a rho, scores (QK^T) and values (weights times
    V) 2 n a each, router 2 d E, experts and dense_ffn 6 d w (SwiGLU) or 4 d w (GELU). A router of
    chunks decides once a chunk.

    Of a block in E slices, ``slice_terms`` says the rest.
    """
    d, ffn = model.d_model, model.ffn
    layers, moe_layers = model.n_full_layers, model.n_moe_layers
    square = 2 * d * model.d_attention * layers
    context = 2 * model.context * model.d_attention * layers
    by_width = 2 * MATRICES[ffn.mlp] * d
    router: float = 0
    routed = shared = 0
    if isinstance(ffn, MoE):
        if ffn.route_by != "position":
            router = moe_layers * 2 * d * ffn.n_experts / (ffn.chunk or 1)
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
        **slice_terms(model),
    }


def slice_terms(model: Model) -> dict[str, float]:
    """Returns the terms of the blocks that are split into E slices of width s = d / E.

    Where each of the E experts sees all n positions: projections 8 s^2 E = 8 d^2 / E (queries,
    keys, values and output), scores 4 n d (with the weights times V), slice_ffn 6 s w E, and
    aggregation 2 d^2. Where an expert sees a chunk of n / E positions, a token passes one expert:
    all are E times less, and scores another E times, for there are E times fewer positions to meet.
    """
    terms = dict.fromkeys(("slice_projections", "slice_scores", "slice_ffn", "aggregation"), 0.0)
    slices, layers, d = model.slices, model.n_sliced_layers, model.d_model
    if slices is None:
        return terms
    E, width = slices.n_experts, d // slices.n_experts
    chunks = E if slices.positions == "chunks" else 1
    passed = E // chunks  # experts that a token passes
    return terms | {
        "slice_projections": layers * passed * 8 * width**2,
        "slice_scores": layers * passed * 4 * (model.context // chunks) * width,
        "slice_ffn": layers * passed * 2 * MATRICES[model.ffn.mlp] * width * slices.d_expert,
        "aggregation": layers * passed * 2 * width * d if slices.aggregation == "projection" else 0,
    }
