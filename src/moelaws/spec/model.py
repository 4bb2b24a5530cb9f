"""The model of a run: a decoder-only transformer with dense feed-forward layers or experts."""

from collections import Counter
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from moelaws.spec.base import Count, Frozen, Positive, Size, key_of
from moelaws.spec.base_shape import BaseShape
from moelaws.spec.experts import Gates, MoE, routers
from moelaws.spec.parts import DenseFFN, Mlp, Part, SlicePositions, Slices

__all__ = ["DenseFFN", "Mlp", "MoE", "Model", "SlicePositions", "Slices"]


def _class(ffn: Any) -> str:
    """Returns the name of the class of a layer of experts, given as data or built."""
    return routers().get(key_of(ffn, "route_by"), MoE).__name__


if TYPE_CHECKING:
    Routed = MoE
else:
    # Each class of ``experts`` is a member of the union, so a new class needs no line here.
    Routed = Annotated[
        reduce(or_, (Annotated[kind, Tag(kind.__name__)] for kind in routers().values())),
        Discriminator(_class),
    ]


class Model(Frozen):
    """A decoder-only transformer: RMSNorm, RoPE, grouped-query attention, feed-forward layers.

    The settings of attention are fields of the model itself, because its shapes depend on them.
    """

    n_layers: Size
    d_model: Size
    n_heads: Size
    n_kv: Size  # key-value heads; n_heads for multi-head attention
    context: Count  # tokens a sequence
    vocab_size: Size
    ffn: Annotated[DenseFFN | Routed, Field(discriminator="kind")]
    qk_norm: bool = False
    tied_embeddings: bool = False
    rope_theta: Positive = 10_000.0
    init_std: Positive = 0.02
    head_width: Size | None = None  # d_model / n_heads unless set
    slices: Slices | None = None
    # How deviations, rates and outputs follow from the sizes (``model.parameterization``): not at
    # all, or from those of the ``base``, over width and experts (mup), and over depth (completep)
    parameterization: Literal["standard", "mup", "completep"] = "standard"
    base: BaseShape | None = None

    @model_validator(mode="after")
    def _shapes_fit(self) -> Self:
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
        if isinstance(self.ffn, DenseFFN):
            return self
        if self.ffn.n_dense_layers >= self.n_layers:
            raise ValueError(
                f"n_dense_layers = {self.ffn.n_dense_layers} of n_layers = {self.n_layers} leaves "
                "no layer with experts; a dense model is ffn: {kind: dense}"
            )
        if self.context % self.ffn.decision:
            raise ValueError(f"chunk = {self.ffn.decision} must divide context = {self.context}")
        return self

    @model_validator(mode="after")
    def _slices_fit(self) -> Self:
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

    @model_validator(mode="after")
    def _base_fits(self) -> Self:
        base, of = self.base, f"parameterization = {self.parameterization}"
        if (base is None) != (self.parameterization == "standard"):
            raise ValueError(
                f"{of} {'without' if base is None else 'with'} base; mup and completep need the "
                "base shape that they take hyperparameters from, and standard has none"
            )
        if base is None:
            return self
        routing = getattr(self.ffn, "route_by", "token")
        if self.slices or routing == "chunk":
            what = "slices" if self.slices else "route_by = chunk"
            raise ValueError(f"{of} with {what}; there is no rule for these weights: use standard")
        own = BaseShape.of(self)
        for name in ("head_width", "d_ffn", "n_experts", "top_k", "d_expert", "n_shared"):
            ours, theirs = getattr(own, name), getattr(base, name)
            if (ours is None) != (theirs is None):
                raise ValueError(
                    f"base.{name} = {theirs}, and the model's {name} = {ours}; a base states each "
                    "size that the model has, and no other"
                )
        for part, whole in (("n_kv", "n_heads"), ("top_k", "n_experts")):
            of_part, of_whole = getattr(base, part), getattr(base, whole)
            if of_part and of_part * getattr(own, whole) != getattr(own, part) * of_whole:
                raise ValueError(
                    f"{part} / {whole} = {getattr(own, part)} / {getattr(own, whole)}, and the "
                    f"base's is {of_part} / {of_whole}; rates transfer at one ratio alone"
                )
        return self

    @property
    def width_of_head(self) -> int:
        """Returns the width of a query, key or value."""
        return self.head_width or self.d_model // self.n_heads

    @property
    def d_attention(self) -> int:
        """Returns the width of all queries together: d_model unless ``head_width`` is set."""
        return self.n_heads * self.width_of_head

    @property
    def n_sliced_layers(self) -> int:
        """Returns how many blocks are split over the embedding."""
        return self.n_layers // self.slices.every if self.slices else 0

    @property
    def n_full_layers(self) -> int:
        """Returns how many blocks have the full width."""
        return self.n_layers - self.n_sliced_layers

    @property
    def slice_head_width(self) -> int:
        """Returns the width of a query, key or value of an expert on a slice."""
        assert self.slices is not None
        return self.d_model // (self.slices.n_experts * self.slices.n_heads)

    def is_sliced(self, layer: int) -> bool:
        """Returns whether block ``layer``, from 0, is split over the embedding."""
        return self.slices is not None and (layer + 1) % self.slices.every == 0

    @property
    def n_moe_layers(self) -> int:
        """Returns how many layers have experts."""
        return self.n_layers - self.ffn.n_dense_layers if isinstance(self.ffn, MoE) else 0

    @property
    def n_biases(self) -> int:
        """Returns the number of the routers' biases, which are moved by rule and no parameters."""
        if not isinstance(self.ffn, MoE) or self.ffn.balance != "bias":
            return 0
        return self.n_moe_layers * self.ffn.n_experts

    @property
    def gates(self) -> Gates:
        """Returns the experts over which the softmax of the gates is; none without a router.

        Gates of sigmoids go by the same names: those of the selected experts sum to route_scale.
        """
        if not isinstance(self.ffn, MoE):
            return "none"
        return "selected" if self.ffn.normalize_top_k else "all"

    @property
    def parts(self) -> tuple[Part, ...]:
        """Returns the parts that have settings of their own."""
        return (self.ffn, self.slices) if self.slices else (self.ffn,)

    def parameters(self) -> dict[str, int]:
        """Counts the parameters by group: those of the parts, of attention, norms and embeddings.

        A full block has one gain for each column before attention, and one before the MLP. QK-norm
        adds the gains of a query and of a key.
        """
        d, head, layers = self.d_model, self.width_of_head, self.n_full_layers
        counts = Counter(
            embedding=self.vocab_size * d,
            unembedding=0 if self.tied_embeddings else self.vocab_size * d,
            attention=layers * 2 * d * head * (self.n_heads + self.n_kv),
            norms=layers * (2 * d + self.qk_norm * 2 * head) + d,
        )
        for part in self.parts:
            counts.update(part.parameters(self))
        return counts

    def flops(self) -> dict[str, float]:
        """Counts the forward FLOPs per token by term: those of the parts, attention and logits.

        With rho = n_kv / n_heads, n = context and a = n_heads * head width (= d by default), a full
        block has 2 d a for queries and for output, 4 d a rho for keys_values, and 2 n a for scores
        (QK^T) and for values (weights times V).
        """
        square = 2 * self.d_model * self.d_attention * self.n_full_layers
        context = 2 * self.context * self.d_attention * self.n_full_layers
        terms: dict[str, float] = {
            "queries": square,
            "keys_values": 2 * square * self.n_kv // self.n_heads,
            "scores": context,
            "values": context,
            "output": square,
            "logits": 2 * self.d_model * self.vocab_size,
        }
        for part in self.parts:
            terms |= part.flops(self)
        return terms
