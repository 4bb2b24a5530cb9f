"""The model of a run: a decoder-only transformer, its feed-forward layers dense or of experts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from moelaws.spec.base import Count, Frozen, NonNegative, Positive, Share, Size, Whole

# swiglu: three matrices, no biases (Shazeer, 2020). gelu: two matrices with biases, the
# generalization paper's experts d -> w -> d.
Mlp = Literal["swiglu", "gelu"]
# What has a routing decision of its own: each token; each chunk of consecutive positions, by a
# router that sees the chunk before; or each chunk by its place alone, with nothing to learn.
RouteBy = Literal["token", "chunk", "position"]
SlicePositions = Literal["all", "chunks"]
Aggregation = Literal["projection", "concatenation"]


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

    ``route_by`` says what one decision is for. The sectional paper (sec 5.1.1) lets ``chunk``
    consecutive positions share it: decided by a router, or by the chunk's place in the sequence.
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
    route_by: RouteBy = "token"
    chunk: Size | None = None  # positions that share one decision, where it is not a token's own
    # What the router of a chunk sees of the chunk before: the mean of its positions, or its last.
    chunk_input: Literal["mean", "last"] = "mean"

    @model_validator(mode="after")
    def _routing_is_sound(self) -> MoE:
        if self.top_k > self.n_experts:
            raise ValueError(
                f"top_k = {self.top_k} is more than n_experts = {self.n_experts}; "
                "k must be at most E"
            )
        if (
            self.route_by != "position"
            and self.top_k == 1 < self.n_experts
            and self.normalize_top_k
        ):
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

    @model_validator(mode="after")
    def _chunks_are_sound(self) -> MoE:
        if (self.chunk is None) != (self.route_by == "token"):
            raise ValueError(
                f"route_by = {self.route_by} with chunk = {self.chunk}; the length of a chunk is "
                "set where chunks are routed, and only there"
            )
        if self.route_by != "position":
            return self
        for name in ("load_balance", "router_z", "jitter"):
            if value := getattr(self, name):
                raise ValueError(
                    f"route_by = position with {name} = {value:g}; the position decides and "
                    f"nothing is learned, so {name} must be 0"
                )
        if not self.normalize_top_k:
            raise ValueError(
                "route_by = position with normalize_top_k = false; there are no probabilities: "
                "each of the k experts has the gate 1 / k, so normalize_top_k must be true"
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


class Slices(Frozen):
    """Every ``every``-th block is split over the embedding (sectional, sec 2.2, 3.2 and Fig 4).

    Such a block has ``n_experts`` experts, each a transformer block of its own, attention and MLP,
    on its d_model / n_experts columns of the residual stream. The blocks between have the full
    width and see all positions: they are the paper's pre-expert blocks. What the experts add to
    their slices is brought back to the full width by a projection, or as it is.

    The paper can be read in two ways. In one every expert sees ``all`` positions of its slice. In
    the other expert e sees the e-th of n_experts equal ``chunks`` of the context alone, and what
    the others would see passes by.
    """

    n_experts: Size
    d_expert: Size  # hidden width of an expert's MLP
    n_heads: Size  # of an expert, which has as many key-value heads
    positions: SlicePositions = "all"
    aggregation: Aggregation = "projection"
    every: Size = 2


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
    slices: Slices | None = None

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
        chunk = self.ffn.chunk if isinstance(self.ffn, MoE) else None
        if chunk and self.context % chunk:
            raise ValueError(f"chunk = {chunk} must divide context = {self.context}")
        return self

    @model_validator(mode="after")
    def _slices_fit(self) -> Model:
        slices = self.slices
        if slices is None:
            return self
        E = slices.n_experts
        if isinstance(self.ffn, MoE):
            raise ValueError(
                "slices with ffn: {kind: moe}; experts are slices or routed, so ffn must be dense"
            )
        if self.d_model % (2 * E * slices.n_heads):
            raise ValueError(
                f"d_model = {self.d_model} in {E} slices with {slices.n_heads} heads each: the "
                "head width must be a whole even number (RoPE rotates pairs)"
            )
        if slices.every > self.n_layers:
            raise ValueError(
                f"every = {slices.every} of n_layers = {self.n_layers} splits no block into slices"
            )
        if slices.positions == "chunks" and self.context % E:
            raise ValueError(
                f"context = {self.context} with positions: chunks; its {E} slices must divide it"
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
    def n_sliced_layers(self) -> int:
        """Blocks that are split over the embedding."""
        return self.n_layers // self.slices.every if self.slices else 0

    @property
    def n_full_layers(self) -> int:
        """Blocks of the full width."""
        return self.n_layers - self.n_sliced_layers

    @property
    def slice_head_width(self) -> int:
        """Width of a query, key or value of an expert on a slice."""
        assert self.slices is not None
        return self.d_model // (self.slices.n_experts * self.slices.n_heads)

    def is_sliced(self, layer: int) -> bool:
        """Returns whether block ``layer``, from 0, is split over the embedding."""
        return self.slices is not None and (layer + 1) % self.slices.every == 0

    @property
    def n_moe_layers(self) -> int:
        """Layers with experts."""
        return self.n_layers - self.ffn.n_dense_layers if isinstance(self.ffn, MoE) else 0
