"""One configuration for each architecture and optimizer that the papers describe, made small."""

ROUTED = {"kind": "moe", "n_experts": 8, "top_k": 2, "d_expert": 32}

# name -> (feed-forward layers, changes of the model, changes of the run)
VARIANTS = {
    "multi-head attention, routed experts": (ROUTED, {"n_kv": 4}, {}),
    "grouped queries, QK-norm, tied": (ROUTED, {"qk_norm": True, "tied_embeddings": True}, {}),
    "shared expert": ({**ROUTED, "n_shared": 1}, {}, {}),
    "fine-grained": ({**ROUTED, "n_experts": 32, "top_k": 8, "d_expert": 8}, {}, {}),
    "top-1, gates over all": ({**ROUTED, "top_k": 1, "normalize_top_k": False}, {}, {}),
    "S = 0 keeps its router": ({**ROUTED, "n_experts": 2}, {}, {}),
    "first layer dense": ({**ROUTED, "n_dense_layers": 1, "d_ffn": 96}, {}, {}),
    "jitter, no auxiliary losses": (
        {**ROUTED, "jitter": 0.1, "load_balance": 0, "router_z": 0}, {}, {},
    ),
    "GELU experts": ({**ROUTED, "mlp": "gelu", "n_shared": 1}, {}, {}),
    "dense SwiGLU": ({"kind": "dense", "d_ffn": 64}, {}, {}),
    "dense GELU": ({"kind": "dense", "d_ffn": 64, "mlp": "gelu"}, {}, {}),
    "slices of all positions": (
        {"kind": "dense", "d_ffn": 64},
        {"slices": {"n_experts": 4, "d_expert": 16, "n_heads": 2}, "qk_norm": True},
        {},
    ),
    "slices of chunks, bf16": (
        {"kind": "dense", "d_ffn": 64, "mlp": "gelu"},
        {"slices": {"n_experts": 4, "d_expert": 16, "n_heads": 2, "positions": "chunks"}},
        {"precision": "bf16"},
    ),
    "chunks by a router, above a dense layer": (
        ROUTED
        | {"route_by": "chunk", "chunk": 16, "n_dense_layers": 1, "d_ffn": 64, "jitter": 0.1},
        {},
        {},
    ),
    "chunks by position": (
        {**ROUTED, "route_by": "position", "chunk": 16, "load_balance": 0, "router_z": 0}, {}, {},
    ),
    "Muon": (
        {**ROUTED, "n_shared": 1},
        {"tied_embeddings": True},
        {"optimizer": {"kind": "muon", "lr": 1e-2}},
    ),
    "shuffled text": (ROUTED, {}, {"shuffle": "tokens"}),
    "bf16": (ROUTED, {}, {"precision": "bf16"}),
    "WSD, scale-free decay, small init": (
        ROUTED,
        {"init_std": 0.006},
        {
            "schedule": {"kind": "wsd"},
            "optimizer": {"lr": 1e-2, "scale_free": True, "weight_decay": 1e-5},
        },
    ),
}  # fmt: skip


def run_data(variant: str, corpus: dict, **changes) -> dict:
    """A RunConfig of that variant on ``corpus``, as plain data."""
    ffn, model, run = VARIANTS[variant]
    shape = {"n_layers": 2, "d_model": 32, "n_heads": 4, "n_kv": 2, "context": 64}
    return {
        "model": {**shape, "vocab_size": corpus["vocab_size"], "ffn": ffn, **model},
        "corpus": corpus,
        "steps": 60,
        "batch": 4,
        "balance_group": 2,
        "optimizer": {"lr": 1e-2},
        "evaluation": {"sequences": 64},
        **run,
        **changes,
    }
