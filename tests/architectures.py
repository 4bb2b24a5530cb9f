"""Models of every architecture, at a size for tests: a new router or option has its line here."""

from moelaws.spec.model import DenseFFN, Model, Slices

CONTEXT = 24


DENSE = DenseFFN(kind="dense", d_ffn=20)
GELU = DenseFFN(kind="dense", d_ffn=20, mlp="gelu")


def small(ffn=DENSE, **changes):
    fields = {
        "n_layers": 4, "d_model": 16, "n_heads": 2, "n_kv": 2, "context": CONTEXT, "vocab_size": 30,
        "init_std": 0.3,
    }  # fmt: skip
    return Model(**{**fields, **changes}, ffn=ffn)


def sliced(mlp="swiglu", model=None, **changes):
    fields = {"n_experts": 4, "d_expert": 6, "n_heads": 1}
    return small(
        GELU if mlp == "gelu" else DENSE, slices=Slices(**{**fields, **changes}), **(model or {})
    )


def routed(model=None, **changes):
    fields = {"kind": "moe", "n_experts": 6, "top_k": 2, "d_expert": 12}
    if changes.get("route_by") == "position":
        fields |= {"load_balance": 0, "router_z": 0}
    return small({**fields, **changes}, **(model or {}))


SLICED = {
    "slices of all positions": sliced(),
    "slices of chunks": sliced(positions="chunks"),
    "slices that return as they are": sliced(aggregation="concatenation"),
    "slices of chunks that return as they are": sliced(
        positions="chunks", aggregation="concatenation"
    ),
    "slices with GELU and QK-norm": sliced("gelu", {"qk_norm": True}, n_heads=2),
    "slices of chunks with GELU and QK-norm": sliced(
        "gelu", {"qk_norm": True, "n_kv": 1}, positions="chunks", n_heads=2
    ),
    "every third block in slices": sliced(every=3),
    "one slice": sliced(n_experts=1),
}
CHUNKED = {
    "chunks by the mean before": routed(route_by="chunk", chunk=8),
    "chunks by the last before": routed(route_by="chunk", chunk=4, chunk_input="last"),
    "chunks, one expert": routed(route_by="chunk", chunk=6, top_k=1, normalize_top_k=False),
    "chunks above dense layers": routed(route_by="chunk", chunk=4, n_dense_layers=2, d_ffn=20),
    "chunks by position": routed(route_by="position", chunk=4, n_shared=1),
    "one token a chunk": routed(route_by="chunk", chunk=1),
    "one chunk": routed(route_by="position", chunk=CONTEXT, top_k=1),
}
BALANCED = {
    "sigmoids with a bias": routed(gate="sigmoid", route_scale=2.5, balance="bias"),
    "a capacity": routed(capacity_factor=0.75, balance="none"),
    "chunks with a bias and a capacity": routed(
        route_by="chunk", chunk=4, balance="bias", capacity_factor=1.0
    ),
}
SECTIONAL = SLICED | CHUNKED
ARCHITECTURES = SECTIONAL | {
    "multi-head": routed(),
    "grouped-query, QK-norm": routed(
        {"n_heads": 4, "qk_norm": True}, top_k=1, normalize_top_k=False
    ),
    "one key-value head, tied": routed(
        {"n_heads": 4, "n_kv": 1, "tied_embeddings": True}, n_experts=2
    ),
    "shared experts": routed({"n_heads": 4}, n_shared=2),
    **BALANCED,
    "all experts": routed(n_experts=3, top_k=3, d_expert=8),
    "first dense layers": routed(n_shared=1, n_dense_layers=2, d_ffn=40),
    "GELU experts": routed(mlp="gelu", d_expert=8),
    "GELU, shared, first dense layer": routed(
        {"tied_embeddings": True}, mlp="gelu", n_shared=2, n_dense_layers=1, d_ffn=20
    ),
    "heads of their own width": routed({"n_heads": 6, "n_kv": 3, "head_width": 4, "qk_norm": True}),
    "dense": small(n_heads=4),
    "dense GELU": small(GELU),
}
