"""The model of a run: a decoder-only transformer, its feed-forward layers dense or of experts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from moelaws.spec.base import Count, Frozen, NonNegative, Positive, Share, Size, Whole

# swiglu: three matrices, no biases (Shazeer, 2020). gelu: two matrices with biases, the
# generalization paper's experts d -> w -> d.
Mlp = Literal["swiglu", "gelu"]


class DenseFFN(Frozen):
    """A feed-forward layer of width ``d_ffn``: no router, no experts."""

    kind: Literal["dense"]
    d_ffn: Size
    mlp: Mlp = "swiglu"


class MoE(Frozen):
    """Dropless layers of ``n_experts`` routed experts, ``top_k`` of them active a token.

    ``n_experts`` counts the routed experts alone (E of the sparsity paper, without the
    ``n_shared`` that every token passes); all experts have the width ``d_expert``. The first
    ``n_dense_layers`` layers are dense instead, of width ``d_ffn``.

    Gates are a softmax over all experts; with ``normalize_top_k`` they are divided by the sum of
    the selected ones, which is the softmax over the selected experts alone.
    """

    kind: Literal["moe"]
    n_experts: Size
    top_k: Size
    d_expert: Size
    n_shared: Annotated[Whole, Field(le=10**6)] = 0
    normalize_top_k: bool = True  # gates of the selected experts sum to 1
    load_balance: NonNegative = 0.01  # coefficient of the load-balancing loss
    router_z: NonNegative = 0.001  # coefficient of the router z-loss
    mlp: Mlp = "swiglu"
    # In training the router's inputs are multiplied by noise, uniform in [1 - jitter, 1 + jitter].
    jitter: Share = 0.0
    n_dense_layers: Annotated[Whole, Field(le=10**6)] = 0
    d_ffn: Size | None = None  # of the dense layers

    @model_validator(mode="after")
    def _routing_is_sound(self) -> MoE:
        if self.top_k > self.n_experts:
            raise ValueError(
                f"top_k = {self.top_k} is more than n_experts = {self.n_experts}; "
                "k must be at most E"
            )
        if self.top_k == 1 < self.n_experts and self.normalize_top_k:
            raise ValueError(
                "top_k = 1 with normalize_top_k makes every gate 1, so that the loss teaches the "
                "router nothing; set normalize_top_k: false"
            )
        if (self.n_dense_layers > 0) != (self.d_ffn is not None):
            raise ValueError(
                f"n_dense_layers = {self.n_dense_layers} with d_ffn = {self.d_ffn}; the width of "
                "the first dense layers is set where there are any, and only there"
            )
        return self

    @property
    def sparsity(self) -> float:
        """S = (E - k) / E, the sparsity paper's Eq 7 (routed experts)."""
        return (self.n_experts - self.top_k) / self.n_experts

    @property
    def activation(self) -> float:
        """A = (E_a + E_s) / (E + E_s), the leverage paper's formal activation ratio."""
        return (self.top_k + self.n_shared) / (self.n_experts + self.n_shared)


class Model(Frozen):
    """A decoder-only transformer: RMSNorm, RoPE, grouped-query attention, feed-forward layers."""

    n_layers: Size
    d_model: Size
    n_heads: Size
    n_kv: Size  # key-value heads; n_heads for multi-head attention
    context: Count  # tokens a sequence
    vocab_size: Size
    ffn: Annotated[DenseFFN | MoE, Field(discriminator="kind")]
    qk_norm: bool = False
    tied_embeddings: bool = False
    rope_theta: Positive = 10_000.0
    init_std: Positive = 0.02
    head_width: Size | None = None  # d_model / n_heads unless set

    @model_validator(mode="after")
    def _shapes_fit(self) -> Model:
        if self.head_width is None and self.d_model % (2 * self.n_heads):
            raise ValueError(
                f"d_model = {self.d_model} with n_heads = {self.n_heads}: the head width must be "
                "a whole even number (RoPE rotates pairs); head_width sets it apart from d_model"
            )
        if self.width_of_head % 2:
            raise ValueError(
                f"head_width = {self.head_width}; it must be even (RoPE rotates pairs)"
            )
        if self.n_heads % self.n_kv:
            raise ValueError(f"n_kv = {self.n_kv} must divide n_heads = {self.n_heads}")
        if isinstance(self.ffn, MoE) and self.ffn.n_dense_layers >= self.n_layers:
            raise ValueError(
                f"n_dense_layers = {self.ffn.n_dense_layers} of n_layers = {self.n_layers} leaves "
                "no layer with experts; a dense model is ffn: {kind: dense}"
            )
        return self

    @property
    def width_of_head(self) -> int:
        """Width of a query, key or value."""
        return self.head_width or self.d_model // self.n_heads

    @property
    def d_attention(self) -> int:
        """Width of all queries together: d_model unless ``head_width`` is set."""
        return self.n_heads * self.width_of_head

    @property
    def n_moe_layers(self) -> int:
        """Layers with experts."""
        return self.n_layers - self.ffn.n_dense_layers if isinstance(self.ffn, MoE) else 0
