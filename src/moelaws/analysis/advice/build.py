"""A configuration that can be built: whole experts, heads and layers near a plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moelaws.accounting.cost import activation_bytes
from moelaws.accounting.flops import (
    CONVENTIONS,
    TRAINING,
    attention_and_ffn,
    forward_terms,
    train_flops_per_token,
)
from moelaws.accounting.parameters import Parameters, count_parameters
from moelaws.analysis.advice.plans import Constraints, Plans
from moelaws.analysis.advice.regret import Minimax
from moelaws.spec.advice import Shape
from moelaws.spec.errors import UserError
from moelaws.spec.model import DenseFFN, Model, MoE

_MAX_ACTIVE = 64  # active experts of a token
_WIDEST = 2**17  # wider than any model that was trained
_NEAR = 1.6  # largest ratio of a model's active parameters to the plan's, or of the plan's to those
_NODE = 8  # GPUs of a node, which can share the activations of one sequence
TRAINING_BYTES = 18.0  # for each parameter: fp32 weight, gradient and two moments, and a bf16 copy


@dataclass(frozen=True)
class Configuration:
    """A model that can be built, with what it costs."""

    model: Model
    parameters: Parameters
    tokens: float  # that the budget trains, with all matrix products counted
    # Of each GPU: for its fraction of weights, gradients and optimizer states, and of a sequence's
    # activations, which the GPUs of a node share
    gpu_bytes: float

    @classmethod
    def of(cls, model: Model, limits: Constraints) -> Configuration:
        """Returns the configuration of a model that spends the whole budget."""
        parameters = count_parameters(model)
        tokens = float(limits.tokens(TRAINING * sum(forward_terms(model).values()) / 6))
        states = TRAINING_BYTES * parameters.total / limits.gpus
        activations = model.context * activation_bytes(model, "bf16") / min(limits.gpus, _NODE)
        return cls(model, parameters, tokens, states + activations)

    @property
    def flops(self) -> dict[str, float]:
        """Returns convention -> training FLOPs; ``all`` counts every matrix product."""
        flops = {"all": TRAINING * sum(forward_terms(self.model).values()) * self.tokens}
        by_convention = {n: train_flops_per_token(self.model, n) * self.tokens for n in CONVENTIONS}
        return flops | by_convention

    @property
    def r(self) -> float:
        """Returns FLOPs of feed-forward layers over attention's (allocation, App C corrected)."""
        return _ratio(self.model)


def built(
    minimax: Minimax, plan: Plans, shape: Shape, G: float, r: float
) -> tuple[Configuration, Plans]:
    """Returns the configuration near ``plan`` of the least worst-case regret, and it as a plan.

    ``shape`` is what all configurations have in common, and ``G`` the granularity of the experts.
    Where k is free, ``r`` is the ratio of FLOPs of experts to attention to come near to. A
    UserError says that no such configuration keeps to the limits.
    """
    limits = minimax.limits
    every = [Configuration.of(model, limits) for model in _models(plan, limits, shape, G, r)]
    held = [c for c in every if c.parameters.total <= limits.largest]
    allowed = [c for c in held if c.tokens > 0 and c.gpu_bytes <= limits.gpu_memory]
    if not allowed:
        raise UserError(
            f"no model of whole layers and experts near {float(plan.N_active):.3g} active and "
            f"{float(plan.N):.3g} total parameters keeps to the limits; change shape in "
            "config/advice.yaml, such as a smaller vocab_size, context or width_multiple"
        )
    plans = as_plans([c.model for c in allowed], [c.tokens for c in allowed])
    worst = minimax.worst(plans)
    at = int(np.argmin(np.where(np.isnan(worst), np.inf, worst)))
    return allowed[at], plans.at(at)


def _models(plan: Plans, limits: Constraints, shape: Shape, G: float, r: float) -> Iterator[Model]:
    """Yields models of the shape whose active parameters are near the plan's."""
    target, S = float(plan.N_active), float(plan.S)
    for d in range(shape.width_multiple, _WIDEST, shape.width_multiple):
        k = limits.k or (_active_experts(d, G, r, shape) if S else 1)
        smallest = math.inf
        ratios = np.geomspace(*shape.width_per_layer, 6)  # gives at most six depths for a width
        for n_layers in sorted({max(2, round(d / ratio)) for ratio in ratios}):
            for E in _expert_counts(k, S, limits):
                model = model_of(d, n_layers, (E, k), G, shape)
                active = count_parameters(model).active
                smallest = min(smallest, active)
                if target / _NEAR <= active <= target * _NEAR:
                    yield model
        if smallest > target * _NEAR:
            return


def _active_experts(d: int, G: float, r: float, shape: Shape) -> int:
    """Returns the k at which the FLOPs of experts over attention's are nearest to ``r``."""
    # The ratio does not depend on depth, and is a straight line over k.
    one, two = (_ratio(model_of(d, 2, (256, k), G, shape)) for k in (1, 2))
    return min(max(round(1 + (r - one) / (two - one)), 1), _MAX_ACTIVE)


def _ratio(model: Model) -> float:
    attention, ffn = attention_and_ffn(model, "allocation")
    return ffn / attention


def _expert_counts(k: int, S: float, limits: Constraints) -> list[int]:
    """Returns numbers of experts around that of sparsity S, and 0 for a dense model.

    Larger ones make up for the parameters outside experts, as far as the limits allow.
    """
    ceiling = k / (1 - limits.max_sparsity) * (1 + 1e-9)
    counts = set(limits.experts)
    if S and not limits.experts:
        ideal = k / (1 - S)
        step = 8 if ideal >= 32 else 1
        factors = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0)
        counts = {k + 1, *(step * math.floor(ideal * x / step + 1e-9) for x in factors)}
    return [0, *sorted(E for E in counts if S and k < E <= ceiling)]


def model_of(d: int, n_layers: int, experts: tuple[int, int], G: float, shape: Shape) -> Model:
    """Returns a model with ``experts``, routed and active ones a layer; dense without any."""
    E, k = experts
    heads = max(1, d // shape.head_width)
    group = max(n for n in range(1, shape.query_groups + 1) if heads % n == 0)
    unit = shape.expert_multiple
    ffn: Any
    if E == 0:
        ffn = DenseFFN(kind="dense", d_ffn=unit * max(1, round(8 / 3 * d / unit)))
    else:
        width = unit * max(1, round(2 * d / G / unit))
        ffn = MoE(kind="moe", n_experts=E, top_k=k, d_expert=width, n_shared=shape.n_shared,
                  normalize_top_k=k > 1)  # fmt: skip
    common = {name: getattr(shape, name) for name in ("context", "vocab_size", "tied_embeddings")}
    return Model(
        n_layers=n_layers, d_model=d, n_heads=heads, n_kv=heads // group, ffn=ffn, **common
    )


def as_plans(models: Sequence[Model], tokens: Sequence[float]) -> Plans:
    """Returns models and their training tokens as plans, which laws read."""
    counts = [count_parameters(model) for model in models]
    mixtures = [m.ffn if isinstance(m.ffn, MoE) else None for m in models]
    fields = {
        "N": [p.total for p in counts],
        "N_active": [p.active for p in counts],
        "D": tokens,
        "S": [ffn.sparsity if ffn else 0.0 for ffn in mixtures],
        "G": [2 * m.d_model / m.ffn.d_expert if isinstance(m.ffn, MoE) else 2.0 for m in models],
        "embeddings": [p.embeddings for p in counts],
    }
    return Plans(**{name: np.array(values, float) for name, values in fields.items()})
