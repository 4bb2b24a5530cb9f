"""Plans: how a budget may be spent, as laws see it, and which plans the constraints allow.

A plan here is a size, a sparsity and a number of tokens, all continuous. ``build`` makes a model of
whole experts and layers of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array
from moelaws.spec.errors import UserError

# Least and most tokens for each active parameter of a plan, far beyond any that were trained.
_MIN_RATIO, _MAX_RATIO = 0.1, 1e5
_SIZES, _SPARSITIES = 121, 33  # of the first grid
_ZOOMS, _FINE = 16, 9  # finer grids, each around the best point of the one before, and their points
USUAL_G = 8.0  # granularity, where no law sets it


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
        """
        C = 6 * self.N_active * self.D
        return {
            **dict.fromkeys(("N", "N_total"), self.N),
            "N_active": self.N_active,
            "N_total_nonemb": self.N - self.embeddings,
            "N_active_nonemb": self.N_active - self.embeddings,
            **dict.fromkeys(("C", "C_6N", "C_sparsity", "C_allocation", "C_leverage"), C),
            **dict.fromkeys(("S", "S_shared"), self.S),
            "A": 1 - self.S,
            "D": self.D,
            "expansion": 1 / (1 - self.S),
            "G": self.G,
        }

    def values(self) -> dict[str, float]:
        """Returns the numbers of one plan, ``C`` (6 N_active D, FLOPs) among them."""
        columns = self.columns()
        return {
            name: float(columns[name]) for name in ("N", "N_active", "S", "expansion", "D", "C")
        }

    def beyond(self, fitted_on: Mapping[str, tuple[float, float]]) -> dict[str, float]:
        """Returns column -> decades beyond the fitted runs of a plan; of S, those of 1/(1 - S)."""
        columns, distances = self.columns(), {}
        for name, ends in fitted_on.items():
            x, low, high = (_log10(name, value) for value in (float(columns[name]), *ends))
            if (distance := max(low - x, x - high)) > 1e-3:
                distances[name] = distance
        return distances

    def at(self, index: Any) -> Plans:
        return Plans(**{name: np.asarray(values[index]) for name, values in vars(self).items()})


@dataclass(frozen=True)
class Constraints:
    """The limits of a plan; a UserError refuses experts without k or all above the ceiling on S."""

    compute: float  # FLOPs: 6 N_active D and, if T tokens are served, also 2 N_active T
    served_tokens: float = 0.0  # T, over the model's life
    max_parameters: Mapping[str, float] = field(default_factory=dict)  # by the limit's name
    max_tokens: float = math.inf  # available training tokens times the epochs that are allowed
    max_sparsity: float = 0.98  # of mixtures; 0 for dense models only
    experts: tuple[int, ...] = ()  # numbers of routed experts that the stack supports; () for all
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
        if len(self.sparsities) == 1:
            raise UserError(
                f"{self.k} of {counts} experts are sparser than the ceiling of "
                f"{self.max_sparsity:g}; raise it, or give fewer experts"
            )

    @property
    def sparsities(self) -> tuple[float, ...]:
        """Returns the allowed sparsities, 0 among them; empty if all up to the ceiling are."""
        if not self.experts or self.k is None:
            return ()
        every = {1 - self.k / E for E in self.experts if self.k < E}
        return (0.0, *sorted(S for S in every if self.max_sparsity + 1e-9 >= S))

    def nearest(self, S: float) -> float:
        """Returns the largest sparsity up to ``S`` that is allowed."""
        return max((x for x in self.sparsities if x <= S), default=min(S, self.max_sparsity))

    @property
    def largest(self) -> float:
        """Returns the largest number of total parameters that all limits allow."""
        return min(self.max_parameters.values(), default=math.inf)

    def tokens(self, N_active: ArrayLike) -> Array:
        """Returns the tokens that the budget trains at a size; 0 or less if it trains none."""
        paid = self.compute / (6 * np.asarray(N_active, float))
        return np.minimum(paid - self.served_tokens / 3, self.max_tokens)

    def cost(self, plans: Plans) -> Array:
        """Returns the FLOPs of training and of serving."""
        return np.asarray(plans.N_active * (6 * plans.D + 2 * self.served_tokens))

    def binding(self, plan: Plans) -> list[str]:
        """Returns the limits that one plan reaches, in words."""
        limits = {name: (plan.N, ceiling) for name, ceiling in self.max_parameters.items()}
        limits["the tokens at hand"] = (plan.D, self.max_tokens)
        if self.sparsities:
            limits["the numbers of experts"] = (1 / (1 - plan.S), 1 / (1 - self.sparsities[-1]))
        elif self.max_sparsity:
            limits["the ceiling on sparsity"] = (1 / (1 - plan.S), 1 / (1 - self.max_sparsity))
        binding = [name for name, (value, end) in limits.items() if value >= end * (1 - 1e-4)]
        # At the ends of the search the law has no best size for this budget.
        ratio = float(plan.D / plan.N_active)
        if any(math.isclose(ratio, end, rel_tol=1e-4) for end in (_MIN_RATIO, _MAX_RATIO)):
            binding.append(f"the search: {ratio:.2g} tokens a parameter")
        return binding


class Space:
    """The plans that keep to the constraints, by positions of size and sparsity in [0, 1].

    The tokens follow from the size, since a plan spends the whole budget, up to a limit of tokens.
    """

    def __init__(self, limits: Constraints, sparsities: tuple[float, ...] = ()) -> None:
        """Takes the limits, which some plan must keep to, and ``sparsities`` if not all count."""
        self.limits = limits
        self._sparsest = -math.log1p(-limits.max_sparsity)
        sparsities = sparsities or limits.sparsities
        self._steps = np.array([-math.log1p(-S) for S in sparsities]) if sparsities else None
        self.continuous = not sparsities  # whether sparsities between those of a grid are plans
        self.n_sparsities = len(sparsities) or _SPARSITIES
        C = limits.compute / 6
        widest = max(math.sqrt(C / _MIN_RATIO), 3 * C / limits.max_tokens)
        if limits.served_tokens:  # beyond this size serving takes the whole budget
            widest = min(widest, (1 - 1e-9) * 3 * C / limits.served_tokens)
        if widest < 1:
            serving = f" and {limits.served_tokens:.3g} served tokens" * bool(limits.served_tokens)
            raise UserError(
                f"a budget of {limits.compute:.3g} FLOPs{serving} pays for no model of even one "
                "parameter"
            )
        if limits.largest < 1:
            raise UserError(f"{' and '.join(limits.max_parameters)} holds less than one parameter")
        self._ln_low, self._ln_high = math.log(math.sqrt(C / _MAX_RATIO)), math.log(widest)

    def plans(self, size: ArrayLike, sparsity: ArrayLike) -> Plans:
        """Returns the plans at positions in [0, 1], which broadcast.

        The position of one of several given sparsities is its index over their number less one.
        """
        u, v = np.broadcast_arrays(np.asarray(size, float), np.asarray(sparsity, float))
        if self._steps is None:
            ln_expansion = self._sparsest * v
        else:
            ln_expansion = self._steps[np.rint(v * (len(self._steps) - 1)).astype(int)]
        ln_largest = np.log(self.limits.largest) if self.limits.largest < np.inf else np.inf
        high = np.minimum(self._ln_high, ln_largest - ln_expansion)
        low = np.minimum(self._ln_low, high - math.log(100.0))
        N_active = np.exp(low + (high - low) * u)
        return ideal(N_active, -np.expm1(-ln_expansion), self.limits.tokens(N_active), self.limits)

    def grid(self, n_sizes: int = _SIZES) -> tuple[Array, Array]:
        """Returns positions of all sizes and sparsities, (n_sizes, n_sparsities) each."""
        positions = np.linspace(0, 1, n_sizes), np.linspace(0, 1, self.n_sparsities)
        size, sparsity = np.meshgrid(*positions, indexing="ij")
        return size, sparsity

    def least(self, objective: Callable[[Plans], Array]) -> Plans:
        """Returns the plan of the least ``objective``, by a grid and finer ones around its best.

        Each finer grid spans two steps of the one before in either direction. A UserError says that
        the objective has no value at any plan.
        """
        size, sparsity = self._best(objective, *self.grid())
        step_u, step_v = 1 / (_SIZES - 1), 1 / max(self.n_sparsities - 1, 1)
        span = np.linspace(-2, 2, _FINE)
        for _ in range(_ZOOMS):
            u, v = np.meshgrid(
                np.clip(size + step_u * span, 0, 1),
                np.clip(sparsity + step_v * (span if self.continuous else np.zeros(1)), 0, 1),
                indexing="ij",
            )
            size, sparsity = self._best(objective, u, v)
            step_u, step_v = step_u * 0.4, step_v * 0.4
        return self.plans(size, sparsity)

    def _best(
        self, objective: Callable[[Plans], Array], size: Array, sparsity: Array
    ) -> tuple[float, float]:
        values = objective(self.plans(size, sparsity))
        if not np.isfinite(values).any():
            raise UserError("the laws give no loss for any plan of this budget")
        at = np.unravel_index(np.argmin(np.where(np.isnan(values), np.inf, values)), values.shape)
        return float(size[at]), float(sparsity[at])


def ideal(N_active: ArrayLike, S: ArrayLike, D: ArrayLike, limits: Constraints) -> Plans:
    """Returns plans of N = N_active / (1 - S) total parameters, with the G of the limits."""
    N_active, S, D = np.broadcast_arrays(*(np.asarray(x, float) for x in (N_active, S, D)))
    G, none = (np.full(S.shape, x) for x in (limits.G or USUAL_G, 0.0))
    return Plans(np.asarray(N_active / (1 - S)), N_active, D, S, G, none)


def _log10(column: str, value: float) -> float:
    if column == "S":
        return -math.log10(1 - value)
    return math.log10(value) if value > 0 else -math.inf


# The columns that laws may read of a plan
COLUMNS = tuple(ideal(1.0, 0.0, 1.0, Constraints(1.0)).columns())
