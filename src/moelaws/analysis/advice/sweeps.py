"""Which small sweep would narrow the regret most: proposed grids, their cost and expected regret.

Each candidate law is taken as the truth in turn. It simulates the losses of the sweep, which leave
draws of its coefficients open (``choice.draws``). The regret of each draw's plan is taken under the
truth. This takes seconds; `moelaws plan` makes a study's fits, whose intervals are wider.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from moelaws.accounting.flops import train_flops_per_token
from moelaws.analysis.advice.plans import Plans
from moelaws.analysis.advice.regret import LEVEL, Minimax, Truth, drawn_optima
from moelaws.analysis.advice.shapes import Shapes, mlp_width
from moelaws.analysis.choice.draws import Known, posterior
from moelaws.laws.base import Array
from moelaws.spec.advice import Shape, SweepEntry
from moelaws.spec.errors import UserError

_SPREAD = (0.4, 0.63, 1.0, 1.6, 2.5)  # sizes at a budget, over the mean of the laws' best sizes
_DRAWS = 50  # refits
_WIDEST = 8192
_TELLING = 0.01  # nats: somewhat more than losses of two seeds differ by

Sizes = tuple[tuple[int, int], ...]  # (layers, width) of each


@dataclass(frozen=True)
class SmallSweep:
    """A proposed sweep, and the regret to expect after it."""

    name: str  # its budgets, in FLOPs
    budgets: tuple[float, ...]  # rising
    shapes: Mapping[float, Sizes]  # budget -> (layers, width) of its sizes
    runs: int  # how many
    flops: float  # of training all, by the sparsity paper's convention
    # Candidate law -> regret in nats that 95 of 100 refits do not exceed if that law is the truth
    regret: Mapping[str, float]
    worst: float  # the largest of these over the laws that count


def three_runs(minimax: Minimax) -> tuple[float, list[dict[str, float]], float] | None:
    """Returns the compute of each of three runs, their plans, and how far they tell laws apart.

    The runs are among the models that the laws think best at a hundredth of the budget or, where
    that tells too little, at a tenth, and among their best dense ones. Losses of different laws do
    not compare, so what tells two apart is how the three losses differ from each other: the
    standard deviation of the laws' difference, in nats, of the two laws that are most alike. None
    if there are fewer than three such models.
    """
    space, found = minimax.space, None
    truths = [truth.law for truth in minimax.truths if truth.law.name in minimax.counting]
    dense = space.shapes.E == 0
    for share in (0.01, 0.1):
        C = share * space.limits.compute
        plans = space.shapes.plans(C / space.cost)  # these runs serve nobody
        losses = np.array([law.loss(plans) for law in truths])
        judged = np.isfinite(losses).all(axis=0)
        kinds = [(own, judged & kind) for law, own in zip(truths, losses, strict=True)
                 for kind in (space.of_sparsity(law.S), dense)]  # fmt: skip
        wanted = {int(np.where(kind, own, np.inf).argmin()) for own, kind in kinds if kind.any()}
        told = {
            three: min(float(np.std(a - b)) for a, b in combinations(losses[:, three], 2))
            for three in combinations(sorted(wanted), 3)
        }
        if told:
            best = max(told, key=lambda three: told[three])
            found = C, [plans.at(i).values() for i in best], told[best]
            if told[best] >= _TELLING:
                break
    return found


def small_sweeps(minimax: Minimax, entry: SweepEntry) -> list[SmallSweep]:
    """Returns the proposed sweeps of the file, the one of least expected regret first.

    A budget that can train fewer than three models of the settings is left out, and so is a sweep
    of fewer than two budgets.
    """
    unit = 2 * entry.head_width
    shapes = [(max(2, round(d / entry.width_per_layer)), d) for d in range(unit, _WIDEST, unit)]
    active = _models(entry, shapes, [0.0]).active
    budgets = {}
    for fraction in {fraction for fractions in entry.candidates for fraction in fractions}:
        C = fraction * minimax.space.limits.compute
        sizes = tuple(shapes[i] for i in _trainable(minimax, entry, active, C))
        if len(sizes) >= 3:
            budgets[fraction] = (C, sizes)
    sweeps = {}  # by budgets
    for fractions in entry.candidates:
        shapes_of = dict(budgets[fraction] for fraction in sorted(fractions) if fraction in budgets)
        if len(shapes_of) >= 2:
            sweeps[tuple(shapes_of)] = _sweep(minimax, entry, shapes_of)
    return sorted(sweeps.values(), key=lambda sweep: sweep.worst)


def _trainable(minimax: Minimax, entry: SweepEntry, active: Array, C: float) -> list[int]:
    """Returns the sizes around the laws' best at a budget that the budget can train."""
    space = minimax.space
    plans, best = space.shapes.plans(C / space.cost), []  # these runs serve nobody
    for law in minimax.laws:
        losses = np.where(space.of_sparsity(law.S), law.loss(plans), np.nan)
        if np.isnan(losses).all():  # so small a budget pays for no model that the law judges
            return []
        best.append(math.log(plans.N_active[np.nanargmin(losses)]))
    target = math.exp(sum(best) / len(best))
    nearest = [int(np.argmin(np.abs(np.log(active / (target * x))))) for x in _SPREAD]
    steps = C / (6 * active * entry.step_tokens)
    return [i for i in dict.fromkeys(nearest) if steps[i] >= entry.min_steps]


def _sweep(minimax: Minimax, entry: SweepEntry, shapes: Mapping[float, Sizes]) -> SmallSweep:
    sizes = [size for own in shapes.values() for size in own]
    models, n = _models(entry, sizes, entry.sparsities), len(entry.sparsities)
    budgets = np.array([C for C, own in shapes.items() for _ in own for _ in range(n)])
    runs = range(len(budgets))
    cost = [train_flops_per_token(models.model(i), "sparsity") for i in runs]
    plans = models.plans(budgets / cost)
    regret = {truth.law.name: _regret(truth, plans, entry.noise) for truth in minimax.truths}
    return SmallSweep(
        name=", ".join(f"{C:.2g}" for C in shapes),
        budgets=tuple(shapes),
        shapes=shapes,
        runs=len(runs),
        flops=float(sum(C * len(own) * n for C, own in shapes.items())),
        regret=regret,
        worst=max(regret[name] for name in minimax.counting),
    )


def _models(entry: SweepEntry, sizes: Sequence[tuple[int, int]], S: Sequence[float]) -> Shapes:
    """Returns the models of all ``sizes`` at all sparsities, as the study's grid derives them."""
    own = entry.settings
    k = own.top_k or 2
    shape = Shape(
        head_width=entry.head_width,
        expert_multiple=1,
        query_groups=1,
        n_shared=0,
        context=own.context or 1024,
        vocab_size=own.vocab_size or 16384,
        tied_embeddings=bool(own.tied_embeddings),
    )
    n_layers, d, sparsity = np.array([(*size, s) for size in sizes for s in S], float).T
    none, E = np.zeros(len(d)), np.rint(k / (1 - sparsity))
    return Shapes(shape, n_layers, d, E, none + k, mlp_width(d, shape, own.G or 1.0), none)


def _regret(truth: Truth, runs: Plans, noise: float) -> float:
    """Returns the regret under the truth that 95 of 100 refits' plans do not exceed.

    The refits are to the losses of simulated ``runs``: the law's, with ``noise`` of ln L.
    """
    candidate, law, n = truth.law, truth.law.law, len(runs.D)
    columns = candidate.columns(runs)
    true = law.model(columns).evaluate(law.vector(candidate.params)[None])[0][0]
    observed = true + noise * np.random.default_rng(0).standard_normal(n)
    known = Known(law, columns, observed, np.zeros(n), open=columns)
    draws = law.natural(posterior(known, noise, _DRAWS, seed=0).draws)
    refitted = replace(candidate, draws=draws, stretch=1.0)
    try:
        plans, _ = drawn_optima(refitted, truth.space)
    except UserError:  # a refit ended where its law gives no loss, so the sweep tells nothing
        return math.inf
    excess = candidate.loss(plans) - truth.least
    return float(np.quantile(np.maximum(excess, 0.0), 0.5 + LEVEL / 2))
