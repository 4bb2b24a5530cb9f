"""Plans: how a budget may be spent, as laws see it, and which plans the constraints allow.

A plan is a size, a sparsity and a number of tokens. ``shapes`` has those of models that can be
built.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moelaws.accounting.cost import Device
from moelaws.laws.base import Array
from moelaws.laws.clark import routing as clark
from moelaws.laws.clark.routing import effective_parameters
from moelaws.laws.leverage import hyperparameters
from moelaws.spec.errors import UserError

USUAL_CEILING = 0.98  # of sparsity, where the user sets none
USUAL_G = 8.0  # granularity, where no law sets it
TRAINING_BYTES = 18.0  # for each parameter: fp32 weight, gradient and two moments, and a bf16 copy
USED = 0.8  # optimizer states and activations may fill this part of a GPU's memory
NODE = 8  # GPUs of a node, which can share a sequence and exchange tokens fast
# A step reads and writes fp32 weights and two moments, reads the gradient and writes a bf16 copy.
STEP_BYTES = 30.0
NOT_HIDDEN = 0.5  # assumed: of the time in which tokens travel to experts, not hidden by products


@dataclass(frozen=True)
class Plans:
    """One or more plans, as arrays of one shape."""

    N: Array  # total parameters
    N_active: Array  # parameters that a token passes
    D: Array  # training tokens
    S: Array  # sparsity of the routed experts, (E - k) / E; 0 for a dense model
    G: Array  # granularity 2 d_model / d_expert
    embeddings: Array  # parameters of the embeddings; 0 unless the plan is a built model

    def columns(self) -> dict[str, Array]:
        """Returns the columns that laws may read, with the names that tables give them.

        ``expansion`` is E / k = 1 / (1 - S), the number of experts in laws that activate one.
        ``N_effective`` is the size of the dense model that Clark et al. hold equal to so many.
        """
        C, E = 6 * self.N_active * self.D, 1 / (1 - self.S)
        return {
            **dict.fromkeys(("N", "N_total"), self.N),
            "N_active": self.N_active,
            "N_total_nonemb": self.N - self.embeddings,
            "N_active_nonemb": self.N_active - self.embeddings,
            **dict.fromkeys(("C", "C_6N", "C_sparsity", "C_allocation", "C_leverage"), C),
            **dict.fromkeys(("S", "S_shared"), self.S),
            "A": 1 - self.S,
            "D": self.D,
            "expansion": E,
            "G": self.G,
            "N_effective": effective_parameters(clark.LAW.published or {}, self.N_active, E),
        }

    def values(self) -> dict[str, float]:
        """Returns the numbers of one plan, ``C`` (6 N_active D, FLOPs) among them."""
        columns = self.columns()
        return {
            name: float(columns[name]) for name in ("N", "N_active", "S", "expansion", "D", "C")
        }

    def distances(self, fitted_on: Mapping[str, tuple[float, float]]) -> dict[str, Array]:
        """Returns column -> decades beyond the fitted runs; of S, those of 1/(1 - S)."""
        columns, distances = self.columns(), {}
        for name, ends in fitted_on.items():
            x, low, high = (_log10(name, value) for value in (columns[name], *ends))
            distances[name] = np.maximum(low - x, x - high)
        return distances

    def beyond(self, fitted_on: Mapping[str, tuple[float, float]]) -> dict[str, float]:
        """Returns the same of one plan, without the columns in which it is not beyond the runs."""
        distances = self.distances(fitted_on)
        return {name: float(x) for name, x in distances.items() if x > 1e-3}

    def at(self, index: Any) -> "Plans":
        return Plans(**{name: np.asarray(values[index]) for name, values in vars(self).items()})


@dataclass(frozen=True)
class Constraints:
    """The limits of a plan; a UserError refuses experts without k or all above the ceiling on S."""

    compute: float  # FLOPs of training, in GPU time, and if T tokens are served of 2 N_active T
    served_tokens: float = 0.0  # T, over the model's life
    max_parameters: Mapping[str, float] = field(default_factory=dict)  # by the limit's name
    serve_memory: float = math.inf  # bytes for served weights and the caches of their sequences
    serve_bytes: float = 2.0  # of a served parameter
    serve_sequences: int = 32  # that are served at once, at full context
    max_tokens: float = math.inf  # available training tokens times the epochs that are allowed
    text_tokens: float = math.inf  # available training tokens, which a plan may repeat
    max_sparsity: float = USUAL_CEILING  # of mixtures; 0 for dense models only
    experts: tuple[int, ...] = ()  # numbers of routed experts that the stack supports; () for all
    device: Device | None = None  # of the GPUs; None counts products alone, and nothing that waits
    gpus: int = 1  # that share the weights and optimizer states of one training
    gpu_memory: float = math.inf  # bytes of each, which also hold the activations of a sequence
    k: int | None = None  # active routed experts of a mixture; None if other choices set it
    G: float | None = None  # granularity 2 d_model / d_expert; None if a law sets it

    def __post_init__(self) -> None:
        if not self.experts:
            return
        counts = ", ".join(map(str, self.experts))
        if self.k is None:
            raise UserError(
                f"the sparsity of {counts} experts needs the number of active ones (--top-k)"
            )
        if max(self.experts) <= self.k:
            raise UserError(f"no number of experts ({counts}) is above the {self.k} active ones")
        if all(1 - self.k / E > self.max_sparsity + 1e-9 for E in self.experts if self.k < E):
            raise UserError(
                f"{self.k} of {counts} experts are sparser than the ceiling of "
                f"{self.max_sparsity:g}; raise it, or give fewer experts"
            )

    @property
    def largest(self) -> float:
        """Returns the largest number of total parameters that all limits allow."""
        return min(self.max_parameters.values(), default=math.inf)

    def cost_of(self, flops: Array, parameters: Array, exchanged: Array) -> Array:
        """Returns what a training token costs in FLOPs, the time in which GPUs wait among them.

        Args:
            flops: of all matrix products of the token.
            parameters: total ones; each step reads and writes them and their optimizer states.
            exchanged: values that the token sends to experts and receives.
        """
        if self.device is None:
            return flops
        own = self.device
        known = hyperparameters.LAW.constants
        step_tokens = known["B_coefficient"] * self.compute ** known["B_exponent"]
        waiting = STEP_BYTES * parameters / own.memory_bandwidth / step_tokens
        on_a_node = TRAINING_BYTES * parameters <= NODE * USED * own.own_memory
        link = np.where(on_a_node, own.node_bandwidth, own.network_bandwidth)
        waiting = waiting + NOT_HIDDEN * 2 * exchanged / link  # bf16
        return np.asarray(flops + own.flops_per_second * waiting)

    def gpu_bytes(self, parameters: Array, activations: Array) -> Array:
        """Returns the bytes on each GPU: its part of the states, and of a sequence's activations.

        The GPUs of a node share the activations of a sequence.
        """
        states = TRAINING_BYTES * parameters / self.gpus
        return states + activations / min(self.gpus, NODE)

    def served_bytes(self, parameters: float | Array, cache: Array) -> Array:
        """Returns the bytes to serve from, with the ``cache`` of one sequence's keys and values."""
        return self.serve_bytes * parameters + self.serve_sequences * cache

    def tokens(self, N_active: Array, cost: float | Array, compute: float | None = None) -> Array:
        """Returns the tokens that the budget trains; 0 or less if it trains none.

        ``cost`` is that of a token (``cost_of``), and ``compute`` another budget than its own.
        """
        paid = (compute or self.compute) - 2 * N_active * self.served_tokens
        return np.asarray(np.minimum(paid / cost, self.max_tokens))

    def binding(self, plan: Plans) -> list[str]:
        """Returns the limits that one plan nearly reaches, in words."""
        near = 1.3  # the next larger model, or the next number of experts, would not keep to it
        limits = {name: (plan.N, ceiling) for name, ceiling in self.max_parameters.items()}
        if self.experts and self.k:
            limits["the numbers of experts"] = (1 / (1 - plan.S), max(self.experts) / self.k)
        if self.max_sparsity:
            limits["the ceiling on sparsity"] = (1 / (1 - plan.S), 1 / (1 - self.max_sparsity))
        binding = [name for name, (value, end) in limits.items() if value * near >= end]
        return binding + ["the tokens at hand"] * bool(plan.D >= self.max_tokens)


def ideal(N_active: ArrayLike, S: ArrayLike, D: ArrayLike, limits: Constraints) -> Plans:
    """Returns plans of N = N_active / (1 - S) total parameters, with the G of the limits."""
    N_active, S, D = np.broadcast_arrays(N_active, S, D)
    G, none = (np.full(S.shape, x) for x in (limits.G or USUAL_G, 0.0))
    return Plans(np.asarray(N_active / (1 - S)), N_active, D, S, G, none)


def _log10(column: str, value: ArrayLike) -> Array:
    value = np.asarray(value, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(-np.log10(1 - value) if column == "S" else np.log10(value))


# The columns that laws may read of a plan
COLUMNS = tuple(ideal(1.0, 0.0, 1.0, Constraints(1.0)).columns())
