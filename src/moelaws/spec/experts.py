"""Layers of routed experts. Each class stands for one router: its settings and its costs.

A new router takes a class here, a module and its line in ``model/router.py``, and a test
(docs/adding-a-part.md).
"""

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from moelaws.spec.base import BelowOne, NonNegative, Positive, Size, Whole
from moelaws.spec.parts import Mlp, Part, mlp_flops, mlp_parameters
from moelaws.spec.validation import must_be
from moelaws.spec.words import joined

if TYPE_CHECKING:
    from moelaws.spec.model import Model


Gates = Literal["all", "selected", "none"]  # the experts that the softmax of the gates is over


def routers() -> dict[str, "type[MoE]"]:
    """Returns the classes of layers with routed experts by their ``route_by``.

    A class that names no router of its own is the common base of others.
    """
    kinds: list[type[MoE]] = [MoE]
    for kind in kinds:  # which grows meanwhile
        kinds += kind.__subclasses__()
    return {kind.router: kind for kind in kinds if "router" in vars(kind)}


def _known(route_by: str) -> str:
    if route_by not in routers():
        raise must_be(
            f"{joined(routers(), 'or')}; experts that choose their tokens would depend on later "
            "ones, which a decoder must not see"
        )
    return route_by


class MoE(Part):
    """Layers of ``n_experts`` routed experts, of which ``top_k`` are active per token.

    ``n_experts`` counts the routed experts alone (E of the sparsity paper). Every token also passes
    the ``n_shared`` shared experts. All experts have the width ``d_expert``. The first
    ``n_dense_layers`` layers are dense instead, of width ``d_ffn``.

    ``route_by`` says what one decision of the router is for. In this class it is for a token. The
    scores of a token's experts are a softmax over all experts, or with ``gate: sigmoid`` a sigmoid
    of each logit (DeepSeek-V3, 2024, Eq 15). The gates are the scores of the selected experts times
    ``route_scale``. With ``normalize_top_k`` they are first divided by their sum, which makes those
    of a softmax the softmax over the selected experts alone.

    ``balance`` says what keeps the load even: the auxiliary loss; a bias of each expert that is
    added to the scores for the selection alone (Wang et al., 2024); or nothing. Beside the bias,
    ``sequence_balance`` is the coefficient of the same loss within each sequence (DeepSeek-V3).

    No token is dropped unless there is a ``capacity_factor``: then an expert takes at most
    ceil(capacity_factor N k / E) assignments of a sequence, for a context of N tokens.
    """

    router: ClassVar[str] = "token"

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
    jitter: BelowOne = 0.0
    n_dense_layers: Annotated[Whole, Field(le=10**6)] = 0
    d_ffn: Size | None = None  # of the dense layers
    route_by: Annotated[str, AfterValidator(_known)] = "token"
    gate: Literal["softmax", "sigmoid"] = "softmax"
    route_scale: Positive = 1.0
    balance: Literal["loss", "bias", "none"] = "loss"
    bias_rate: Positive = 0.001  # how far a step moves a bias
    sequence_balance: NonNegative = 0.0  # coefficient of the loss beside the bias
    capacity_factor: Positive | None = None  # None drops nothing

    @model_validator(mode="after")
    def _layers_are_sound(self) -> Self:
        if self.top_k > self.n_experts:
            raise ValueError(
                f"top_k = {self.top_k} is more than n_experts = {self.n_experts}; "
                "k must be at most E"
            )
        if (self.n_dense_layers > 0) != (self.d_ffn is not None):
            raise ValueError(
                f"n_dense_layers = {self.n_dense_layers} with d_ffn = {self.d_ffn}; the width of "
                "the first dense layers is set where there are any, and only there"
            )
        owners = {"load_balance": "loss", "bias_rate": "bias", "sequence_balance": "bias"}
        for name, owner in owners.items():
            given, default = getattr(self, name), MoE.model_fields[name].default
            if self.balance != owner and given != default:
                raise ValueError(
                    f"balance = {self.balance} with {name} = {given}; {name} is set where balance "
                    f"is {owner}, and only there"
                )
        return self

    @model_validator(mode="after")
    def _router_is_sound(self) -> Self:
        if self.top_k == 1 < self.n_experts and self.normalize_top_k:
            raise ValueError(
                "top_k = 1 with normalize_top_k makes every gate 1, so that the loss teaches the "
                "router nothing; set normalize_top_k: false"
            )
        return self

    @property
    def balance_loss(self) -> float:
        """Returns the coefficient of the load-balancing loss, 0 where there is none."""
        return {"loss": self.load_balance, "bias": self.sequence_balance, "none": 0.0}[self.balance]

    @property
    def sparsity(self) -> float:
        """Returns S = (E - k) / E of the routed experts (Eq 7, sparsity)."""
        return (self.n_experts - self.top_k) / self.n_experts

    @property
    def decision(self) -> int:
        """Returns how many positions share one decision of the router: a chunk, if it has them."""
        return int(getattr(self, "chunk", 1))

    @property
    def width_of_dense(self) -> int:
        """Returns the width of the dense layers, 0 where there are none.

        Advice counts many models at once: the width is an array then, whose truth has no meaning.
        """
        return 0 if self.d_ffn is None else self.d_ffn

    def capacity(self, context: int) -> int | None:
        """Returns how many of a sequence's assignments an expert takes; None for any number."""
        if self.capacity_factor is None:
            return None
        # Exact, because ceil would make a whole assignment of a rounding error
        return math.ceil(
            Fraction(str(self.capacity_factor)) * context * self.top_k / self.n_experts
        )

    def router_parameters(self, d_model: int) -> int:
        """Returns the parameters of a layer's router."""
        return d_model * self.n_experts

    def router_flops(self, d_model: int) -> int:
        """Returns the forward FLOPs of one decision of a layer's router."""
        return 2 * d_model * self.n_experts

    def parameters(self, model: "Model") -> dict[str, int]:
        """Counts the shared experts as one wide MLP with one bias at its output."""
        d, layers = model.d_model, model.n_moe_layers
        expert = layers * mlp_parameters(self.mlp, d, self.d_expert)
        return {
            "router": layers * self.router_parameters(d),
            "routed_experts": expert * self.n_experts,
            "shared_experts": layers * mlp_parameters(self.mlp, d, self.n_shared * self.d_expert),
            "dense_ffn": self.n_dense_layers * mlp_parameters(self.mlp, d, self.width_of_dense),
            "inactive_experts": expert * (self.n_experts - self.top_k),
        }

    def flops(self, model: "Model") -> dict[str, float]:
        d, layers = model.d_model, model.n_moe_layers
        expert = layers * mlp_flops(self.mlp, d, self.d_expert)
        return {
            "router": layers * self.router_flops(d) / self.decision,
            "routed_experts": expert * self.top_k,
            "shared_experts": expert * self.n_shared,
            "dense_ffn": self.n_dense_layers * mlp_flops(self.mlp, d, self.width_of_dense),
        }


class ChunkRouted(MoE):
    """The router decides for ``chunk`` consecutive positions together (sectional, sec 5.1.1).

    Its input is the chunk before: the mean of that chunk's positions, or the last of them. For the
    first chunk the input is a learned vector.
    """

    router: ClassVar[str] = "chunk"

    chunk: Size
    chunk_input: Literal["mean", "last"] = "mean"

    def router_parameters(self, d_model: int) -> int:
        return d_model * (self.n_experts + 1)


class PositionRouted(MoE):
    """The chunk's place in the sequence decides (sectional, sec 5.1.1); nothing is learned."""

    router: ClassVar[str] = "position"

    chunk: Size

    @model_validator(mode="after")
    def _router_is_sound(self) -> Self:
        learned = {
            "load_balance": 0, "router_z": 0, "jitter": 0, "normalize_top_k": True,
            "gate": "softmax", "route_scale": 1, "balance": "loss",
        }  # fmt: skip
        for name, value in learned.items():
            if (given := getattr(self, name)) != value:
                raise ValueError(
                    f"route_by = position with {name} = {given}; the position decides, nothing is "
                    "learned and each of the k experts has the gate 1 / k, so "
                    f"{name} must be {str(value).lower()}"
                )
        return self

    def router_parameters(self, d_model: int) -> int:
        return 0

    def router_flops(self, d_model: int) -> int:
        return 0
