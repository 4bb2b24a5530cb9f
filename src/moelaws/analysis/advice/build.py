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
from moelaws.analysis.advice.regret import Court
from moelaws.spec.advice import Shape
from moelaws.spec.errors import UserError
from moelaws.spec.model import DenseFFN, Model, MoE

_MOST_ACTIVE = 64  # experts a token
_WIDEST = 2**17  # wider than any that was trained
_NEAR = 1.6  # active parameters of the models that are looked at, over the plan's, at most
_NODE = 8  # GPUs that share the activations of one sequence, as those of a node can
TRAINING_BYTES = 18.0  # a parameter: fp32 weight, gradient and two moments, and a bf16 copy


@dataclass(frozen=True)
class Configuration:
    """A model that can be built, with what it costs.

    Attributes:
        model: its shape.
        parameters: by group.
        tokens: that the budget trains, with all matrix products counted.
        flops: convention -> training FLOPs; ``all`` counts every matrix product.
        r: FLOPs of the feed-forward layers over those of attention (allocation, App C corrected).
        gpu_bytes: on each GPU: its share of weights, gradients and optimizer states, and that of
            the activations of a sequence, which the GPUs of a node share.
    """

    model: Model
    parameters: Parameters
    tokens: float
    flops: dict[str, float]
    r: float
    gpu_bytes: float

    @property
    def flops_over_plan(self) -> float:
        """Returns the training FLOPs over the 6 N_active D that a plan counts."""
        return self.flops["all"] / (6 * self.parameters.active * self.tokens)

    @property
    def routed_share(self) -> float:
        """Returns the share of the active parameters that are routed experts."""
        routed = self.parameters.routed_experts - self.parameters.inactive_experts
        return routed / self.parameters.active


@dataclass(frozen=True)
class Targets:
    """What laws of one variable set of a configuration: granularity, and r where k is free."""

    G: float
    r: float


def built(court: Court, plan: Plans, shape: Shape, targets: Targets) -> tuple[Configuration, Plans]:
    """Returns the configuration near ``plan`` of the least worst-case regret, and it as a plan.

    Args:
        court: the judges, with the limits.
        plan: of continuous size and sparsity.
        shape: what all configurations have in common.
        targets: granularity, and FLOPs of the experts over those of attention to come near to.

    Raises:
        UserError: where no such configuration keeps to the limits.
    """
    limits = court.limits
    models, counts, tokens = [], [], []
    for model, parameters in _candidates(plan, limits, shape, targets):
        D = float(limits.tokens(TRAINING * sum(forward_terms(model).values()) / 6))
        fits = _gpu_bytes(model, parameters, limits) <= limits.gpu_memory
        if parameters.total <= limits.largest and D > 0 and fits:
            models.append(model)
            counts.append(parameters)
            tokens.append(D)
    if not models:
        raise UserError(
            f"no model of whole layers and experts near {float(plan.N_active):.3g} active and "
            f"{float(plan.N):.3g} total parameters keeps to the limits; change shape in "
            "config/advice.yaml, such as a smaller vocab_size, context or width_multiple"
        )
    plans = as_plans(models, counts, tokens)
    worst = court.worst(plans)
    at = int(np.argmin(np.where(np.isnan(worst), np.inf, worst)))
    model, parameters, D = models[at], counts[at], tokens[at]
    flops = {"all": TRAINING * sum(forward_terms(model).values()) * D}
    flops |= {name: train_flops_per_token(model, name) * D for name in CONVENTIONS}
    held = _gpu_bytes(model, parameters, limits)
    return Configuration(model, parameters, D, flops, _ratio(model), held), plans.at(at)


def _gpu_bytes(model: Model, parameters: Parameters, limits: Constraints) -> float:
    states = TRAINING_BYTES * parameters.total / limits.gpus
    return states + model.context * activation_bytes(model, "bf16") / min(limits.gpus, _NODE)


def _candidates(
    plan: Plans, limits: Constraints, shape: Shape, targets: Targets
) -> Iterator[tuple[Model, Parameters]]:
    """Yields models of the shape, with parameters, whose active ones are near the plan's."""
    target, S = float(plan.N_active), float(plan.S)
    for d in range(shape.width_multiple, _WIDEST, shape.width_multiple):
        k = limits.k or (_active_experts(d, targets, shape) if S else 1)
        smallest = math.inf
        for n_layers in _depths(d, shape):
            for E in _expert_counts(k, S, limits):
                model = _model(d, n_layers, (E, k), targets.G, shape)
                parameters = count_parameters(model)
                smallest = min(smallest, parameters.active)
                if target / _NEAR <= parameters.active <= target * _NEAR:
                    yield model, parameters
        if smallest > target * _NEAR:
            return


def _depths(d: int, shape: Shape) -> list[int]:
    """Returns at most six numbers of layers for a width."""
    ratios = np.geomspace(*shape.width_per_layer, 6)
    return sorted({max(2, round(d / ratio)) for ratio in ratios})


def _active_experts(d: int, targets: Targets, shape: Shape) -> int:
    """Returns the k whose FLOPs of experts over attention come nearest to ``r``.

    The ratio is the same at every depth, and a straight line over k.
    """
    one, two = (_ratio(_model(d, 2, (256, k), targets.G, shape)) for k in (1, 2))
    return min(max(round(1 + (targets.r - one) / (two - one)), 1), _MOST_ACTIVE)


def _ratio(model: Model) -> float:
    attention, ffn = attention_and_ffn(model, "allocation")
    return ffn / attention


def _expert_counts(k: int, S: float, limits: Constraints) -> list[int]:
    """Returns numbers of experts around those of sparsity S; 0, a dense model, among them.

    More of them make up for the parameters that are no experts, as far as limits allow.
    """
    most = k / (1 - limits.max_sparsity) * (1 + 1e-9)
    counts = set(limits.experts)
    if S and not limits.experts:
        ideal = k / (1 - S)
        step = 8 if ideal >= 32 else 1
        shares = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0)
        counts = {k + 1, *(step * math.floor(ideal * x / step + 1e-9) for x in shares)}
    return [0, *sorted(E for E in counts if S and k < E <= most)]


def _model(d: int, n_layers: int, experts: tuple[int, int], G: float, shape: Shape) -> Model:
    """Returns a model of ``experts`` routed and active ones a layer; dense where there are none."""
    E, k = experts
    heads = max(1, d // shape.head_width)
    group = max(n for n in range(1, shape.query_groups + 1) if heads % n == 0)
    unit = shape.expert_multiple
    ffn: Any
    if E == 0:
        ffn = DenseFFN(kind="dense", d_ffn=unit * max(1, round(8 / 3 * d / unit)))
    else:
        ffn = MoE(
            kind="moe",
            n_experts=E,
            top_k=k,
            d_expert=unit * max(1, round(2 * d / G / unit)),
            n_shared=shape.n_shared,
            normalize_top_k=k > 1,
        )
    return Model(
        n_layers=n_layers,
        d_model=d,
        n_heads=heads,
        n_kv=heads // group,
        context=shape.context,
        vocab_size=shape.vocab_size,
        tied_embeddings=shape.tied_embeddings,
        ffn=ffn,
    )


def as_plans(
    models: Sequence[Model], counts: Sequence[Parameters], tokens: Sequence[float]
) -> Plans:
    """Returns models with their parameters and training tokens as laws see them."""
    mixtures = [m.ffn if isinstance(m.ffn, MoE) else None for m in models]

    def per(values: Sequence[float]) -> Any:
        return np.array(values, float)

    return Plans(
        N=per([p.total for p in counts]),
        N_active=per([p.active for p in counts]),
        D=per(tokens),
        S=per([ffn.sparsity if ffn else 0.0 for ffn in mixtures]),
        G=per([2 * m.d_model / m.ffn.d_expert if isinstance(m.ffn, MoE) else 2.0 for m in models]),
        embeddings=per([p.embeddings for p in counts]),
    )
