"""Models that can be built, as arrays: the shapes of config/advice.yaml within limits, with counts.

All counts are those of ``accounting``, for thousands of models at once.
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moelaws.accounting.cost import activation_bytes
from moelaws.accounting.flops import TRAINING, attention_and_ffn, forward_terms
from moelaws.accounting.parameters import count_parameters
from moelaws.analysis.advice.plans import Constraints, Plans
from moelaws.laws.base import Array, Mask
from moelaws.spec.advice import Shape
from moelaws.spec.errors import UserError
from moelaws.spec.model import DenseFFN, Model, MoE

# Numbers of experts and of active ones that people build
EXPERTS = (4, 8, 16, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512)
ACTIVE = (1, 2, 4, 6, 8, 10, 12, 16, 24, 32)
DENSE_G = 0.75  # 2 d_model / d_ffn of a dense layer, whose width is 8/3 of the model's
_WIDEST = 2**16  # wider than any model that was trained
_APART = 1.06  # ratio of a width to the next smaller one, at least
_NEAR = 1.5  # ratio of FLOPs of experts over attention's to that of the mixture nearest to r
_NONE = (
    "no model of whole layers and experts keeps to the limits; change shape in config/advice.yaml, "
    "such as a smaller vocab_size, context or width_multiple"
)
# Of models of one sparsity whose ln N_active differ by less than this, only the better one counts.
_ALIKE = 0.05


@dataclass(frozen=True)
class Shapes:
    """Models of one ``shape``, an entry of the arrays (n,) each; a dense one has no experts."""

    shape: Shape
    n_layers: Array
    d_model: Array
    E: Array
    k: Array
    d_expert: Array
    n_dense: Array  # layers without experts, before the others

    def at(self, index: Any) -> "Shapes":
        names = ("n_layers", "d_model", "E", "k", "d_expert", "n_dense")
        return Shapes(self.shape, *(getattr(self, name)[index] for name in names))

    def model(self, i: int) -> Model:
        sizes, own = self._sizes, self.shape
        width, n_dense = int(sizes.ffn.d_ffn[i]), int(self.n_dense[i])
        ffn: Any = DenseFFN(kind="dense", d_ffn=width)
        if self.E[i]:
            layers = {"n_dense_layers": n_dense, "d_ffn": width} if n_dense else {}
            ffn = MoE(kind="moe", n_experts=int(self.E[i]), top_k=int(self.k[i]),
                      d_expert=int(self.d_expert[i]), n_shared=own.n_shared,
                      normalize_top_k=self.k[i] > 1, **layers)  # fmt: skip
        settings = {name: int(x[i]) if isinstance(x, np.ndarray) else x for name, x in sizes}
        return Model(**settings | {"ffn": ffn})

    @cached_property
    def _sizes(self) -> Any:
        """Returns a model whose sizes are arrays, since what counts a model is plain arithmetic.

        A dense model has experts in no layer.
        """
        d, own = self.d_model, self.shape
        heads, groups = np.maximum(1, d // own.head_width), range(1, own.query_groups + 1)
        group = np.max([np.where(heads % n == 0, n, 1) for n in groups], axis=0)
        experts: dict[str, Any] = {
            "n_experts": np.maximum(self.E, 1),
            "top_k": self.k,
            "d_expert": self.d_expert,
            "n_shared": own.n_shared,
            "n_dense_layers": np.where(self.E > 0, self.n_dense, self.n_layers),
            "d_ffn": mlp_width(d, own),
        }
        names = ("context", "vocab_size", "tied_embeddings")
        sizes: dict[str, Any] = {name: getattr(own, name) for name in names}
        sizes |= {"n_layers": self.n_layers, "d_model": d, "n_heads": heads, "n_kv": heads // group}
        return Model.model_construct(ffn=MoE.model_construct(**experts), **sizes)

    @cached_property
    def counts(self) -> Any:
        """Returns the parameters by group, (n,) each."""
        return count_parameters(self._sizes)

    @cached_property
    def sparsity(self) -> Array:
        return np.where(self.E > 0, 1 - self.k / np.maximum(self.E, 1), 0.0)

    @cached_property
    def active(self) -> Array:
        """Returns the parameters that a token passes, embeddings included."""
        return np.asarray(self.counts.active)

    @cached_property
    def total(self) -> Array:
        return np.asarray(self.counts.total)

    @cached_property
    def ratio(self) -> Array:
        """Returns FLOPs of feed-forward layers over attention's (allocation, App C corrected)."""
        attention, ffn = attention_and_ffn(self._sizes, "allocation")
        return np.asarray(ffn / attention)

    @cached_property
    def flops(self) -> Array:
        """Returns the training FLOPs of a token: all matrix products."""
        return np.asarray(TRAINING * sum(forward_terms(self._sizes).values()))

    @cached_property
    def activation_bytes(self) -> Array:
        """Returns the bytes that a token keeps for the backward pass."""
        return np.asarray(activation_bytes(self._sizes, "bf16"))

    @cached_property
    def cache_bytes(self) -> Array:
        """Returns the bytes of a sequence's keys and values, in bf16 and at full context."""
        sizes = self._sizes
        values = 2 * sizes.n_layers * sizes.n_kv * sizes.width_of_head
        return np.asarray(2 * values * sizes.context)

    @cached_property
    def exchanged(self) -> Array:
        """Returns the values that a token sends to experts and receives, both passes together."""
        return np.asarray(4 * self.k * self.d_model * self._sizes.n_moe_layers)

    def plans(self, tokens: Array) -> Plans:
        """Returns the models as plans that are trained on ``tokens``, (n,)."""
        G = np.where(self.E > 0, 2 * self.d_model / np.maximum(self.d_expert, 1), 2.0)
        return Plans(self.total, self.active, tokens, self.sparsity, G, self.counts.embeddings)


def mlp_width(d_model: Array, shape: Shape, G: float = DENSE_G) -> Array:
    """Returns the width of experts of granularity ``G``, or of dense layers."""
    unit = shape.expert_multiple
    return unit * np.maximum(1, np.rint(2 / G * d_model / unit))


def buildable(limits: Constraints, shape: Shape, G: float, r: float) -> Shapes:
    """Returns the models of a shape whose experts the limits allow, dense ones among them.

    Experts have the granularity nearest to ``G``. Where k is free, models have the numbers of
    active experts by which their FLOPs of experts over attention's are nearest to ``r``.
    """
    widths = [shape.width_multiple]
    while widths[-1] * _APART < _WIDEST:
        step = max(widths[-1] * _APART, widths[-1] + shape.width_multiple)
        widths.append(shape.width_multiple * round(step / shape.width_multiple))
    d, ratio = np.meshgrid(np.array(widths, float), np.geomspace(*shape.width_per_layer, 6))
    n_layers = np.maximum(2, np.rint(d / ratio))
    pairs = np.unique(np.stack([d.ravel(), n_layers.ravel()], axis=1), axis=0)
    none = np.zeros(len(pairs))
    parts = [(pairs, none, none, none, none)]
    most = 1 / (1 - limits.max_sparsity) * (1 + 1e-9)
    for k in (limits.k,) if limits.k else ACTIVE:
        for E in limits.experts or EXPERTS:
            if k < E <= k * most:
                width = mlp_width(pairs[:, 0], shape, limits.G or G)
                parts += [
                    (pairs, none + E, none + k, width, none + n_dense)
                    for n_dense in shape.dense_layers
                ]
    sizes, *experts = (np.concatenate(x) for x in zip(*parts, strict=True))
    shapes = Shapes(shape, sizes[:, 1], sizes[:, 0], *experts)
    keep = shapes.n_dense < shapes.n_layers
    return shapes.at(keep if limits.k else keep & _near_ratio(shapes, r))


def _near_ratio(shapes: Shapes, r: float) -> Mask:
    """Tells which mixtures are about as near to ``r`` as any of their width and depth."""
    far = np.abs(np.log(shapes.ratio / r))
    sizes = np.stack([shapes.d_model, shapes.n_layers])
    _, group = np.unique(sizes, axis=1, return_inverse=True)
    least = np.full(group.max() + 1, np.inf)
    np.minimum.at(least, group, np.where(shapes.E > 0, far, np.inf))
    return np.asarray((shapes.E == 0) | (far <= least[group] + np.log(_NEAR)))


def efficient(shapes: Shapes, cost: Array) -> NDArray[np.intp]:
    """Returns the indices of models of which no other one, alike in size and sparsity, is better.

    Laws read sizes, sparsity and tokens. So a better model costs less a token and active parameter,
    and is trained on more tokens, without fewer parameters in all.
    """
    bins = np.floor(np.log(shapes.active) / _ALIKE)
    keys = np.stack([shapes.sparsity.round(9), bins])
    _, cell = np.unique(keys, axis=1, return_inverse=True)
    order = np.lexsort([cost / shapes.active, cell])
    more = np.log(shapes.total / shapes.active)[order] + 100.0 * cell[order]
    most = np.append(-np.inf, np.maximum.accumulate(more)[:-1])
    return np.sort(order[more > most + 0.2 * _ALIKE])


class Space:
    """The models that keep to the limits, each trained on all tokens that the budget pays for."""

    def __init__(self, limits: Constraints, shape: Shape, G: float, r: float) -> None:
        """Takes the limits; a UserError says that no model of the shape keeps to them."""
        self.limits = limits
        shapes = buildable(limits, shape, G, r)
        held = (shapes.total <= limits.largest) & (
            limits.gpu_bytes(shapes.total, shapes.activation_bytes * shape.context)
            <= limits.gpu_memory
        )
        held &= limits.served_bytes(shapes.total, shapes.cache_bytes) <= limits.serve_memory
        if not held.any():
            raise UserError(_NONE)
        shapes = shapes.at(held)
        cost = limits.cost_of(shapes.flops, shapes.total, shapes.exchanged)
        kept = efficient(shapes, cost)
        self.shapes, self.cost = shapes.at(kept), cost[kept]
        self.plans = self.at(limits.compute)
        if not (self.plans.D > 0).any():
            raise UserError(_NONE)

    def at(self, compute: float) -> Plans:
        """Returns all models, each trained on what another budget pays for."""
        return self.shapes.plans(self.limits.tokens(self.shapes.active, self.cost, compute))

    def held_to(self, S: float) -> "Space":
        """Returns the models whose E / k is within a factor of 1.5 of that of ``S``."""
        kept, held = self.of_sparsity(S, np.log(1.5)), copy(self)
        held.shapes, held.plans = self.shapes.at(kept), self.plans.at(kept)
        held.cost = self.cost[kept]
        return held

    def of_sparsity(self, S: float | None, within: float = 0.05) -> Mask:
        """Tells which models have the sparsity nearest to ``S``; all if that is None.

        Those are as near whose E / k differs by less than ``within``, in ln.
        """
        if S is None:
            return np.ones(len(self.cost), bool)
        distance = np.abs(np.log1p(-self.shapes.sparsity) - np.log1p(-S))
        distance = np.where(self.plans.D > 0, distance, np.inf)
        return np.asarray(distance <= max(distance.min() + 0.05, within))

    def nearest(self, plan: Plans) -> int:
        """Returns the index of the model nearest to the active size and the sparsity of a plan."""
        size = np.log(self.shapes.active / plan.N_active)
        sparsity = np.log1p(-self.shapes.sparsity) - np.log1p(-plan.S)
        distance = np.where(self.plans.D > 0, size**2 + sparsity**2, np.inf)
        return int(np.argmin(distance))
