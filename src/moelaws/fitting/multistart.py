"""Multistart: a whole grid of starts descends in batches, is pruned, and the best is polished.

Pruning has two rungs. All starts take a few steps on some of the rows, and those of the least
objective go on; these take some more on all rows, and the best of them descend to the end. A sample
of all starts descends to the end too: if it finds a lower optimum, that is the result, and the
report says that pruning lost it.

Arrays: B starts, n rows, P parameters; all parameters on the working scale.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moelaws.fitting.cores import each
from moelaws.fitting.descent import Certificate, certify, descend, polish
from moelaws.fitting.diagnostics import Search
from moelaws.fitting.objective import Objective
from moelaws.laws.base import Array, FitProtocol, FittableLaw
from moelaws.spec.errors import UserError

# Starts of a batch, at most; rows times starts, that they stay in the processor's cache; the least
# starts, where rows are many, for each call has its price; rows times these, for memory.
BATCH, CACHED, FEW, MAX_SIZE = 250, 16_000, 8, 125_000
MAX_UNPRUNED = 400  # up to so many starts all descend to the end
FIRST = (4, 0.04, 800)  # steps on some of the rows; share and least number of those that go on
SECOND = (12, 0.05, 100)  # steps on all rows; likewise
SAMPLE = 256  # starts that are never pruned, at most
REACHED = 1e-3  # a start has reached the optimum when its objective is this close, relatively
NEARLY = 1.5  # the objective of another end that is still of interest, relatively
APART = 1.0  # between parameters of different ends: a factor e of a coefficient
ENDS = 5  # the optimum and so many less one others are kept

Progress = Callable[[int, int], None]  # done, total


@dataclass(frozen=True)
class Optimum:
    """Where a multistart ended."""

    phi: Array  # (P,) the optimum, in the objective's coordinates
    value: float  # the objective at it
    certificate: Certificate  # whether it is a stationary point
    search: Search  # what became of the starts
    ends: Array  # (K, P) the optimum and ends far from it that are nearly as good, best first
    end_values: Array  # (K,) their objectives


def starts_of(law: FittableLaw, protocol: FitProtocol, seed: int) -> Array:
    """Returns the protocol's grid of starts (B, P), or a seeded sample without repetition."""
    axes = [np.asarray(protocol.grid[name]) for name in law.names]
    shape = tuple(len(axis) for axis in axes)
    index = np.arange(protocol.n_starts)
    if protocol.n_run < protocol.n_starts:
        rng = np.random.default_rng(seed)
        index = np.sort(rng.choice(protocol.n_starts, protocol.n_run, replace=False))
    places = np.unravel_index(index, shape)
    return np.stack([axis[i] for axis, i in zip(axes, places, strict=True)], axis=1)


def descents(total: int) -> tuple[int, int]:
    """Returns how many of ``total`` starts reach the second rung, and how many descend to the end.

    The first is 0 where none are pruned.
    """
    if total <= MAX_UNPRUNED:
        return 0, total
    second = _survivors(FIRST, total)
    return second, _survivors(SECOND, second) + _sample_size(total)


def multistart(
    objective: Objective,
    starts: Array,
    bounds: Array,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> Optimum:
    """Returns the best optimum that ``starts`` (B, P) lead to, within ``bounds`` (P, 2).

    ``progress`` counts descents: a start that goes on to the next rung counts again there. Where
    they lead to no finite value of the objective, a UserError says so.
    """
    rng, total = np.random.default_rng(seed), len(starts)
    second, whole = descents(total)
    pruned = total + second if second else 0

    def shown(done: int) -> None:
        progress(done, pruned + whole)

    survivors, sample = starts, starts[:0]
    if second:
        sample = starts[rng.choice(total, _sample_size(total), replace=False)]
        survivors = _pruned(objective, starts, bounds, rng, shown)
    last = np.concatenate([survivors, sample])
    ended = descend_all(objective, last, bounds, progress=lambda done: shown(pruned + done))
    theta_BP, value_B = ended
    value_B = np.where(np.isfinite(value_B), value_B, np.nan)
    if np.isnan(value_B).all():
        raise UserError(
            "the law has no finite value for these rows at any of its starts; set other starts "
            "under protocol.grid"
        )
    ends, values = _distinct(objective, theta_BP, value_B, bounds)
    n = len(survivors)
    # A long flat valley is left to the polish: what came as far as the best of them reached it too.
    furthest = max(float(np.nanmin(value_B)), float(values[0]))
    close = value_B <= furthest * (1 + REACHED) + 1e-15
    search = Search(
        run=total,
        survived=n,
        reached=int(close[:n].sum()),
        sample=len(sample),
        sample_reached=int(close[n:].sum()),
        pruning_lost=bool(len(sample)) and not close[:n].any(),
    )
    certificate = certify(objective, ends[0], bounds)
    return Optimum(ends[0], float(values[0]), certificate, search, ends, values)


def descend_all(
    objective: Objective,
    starts: Array,
    bounds: Array,
    iterations: int = 500,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[Array, Array]:
    """Runs :func:`descend` from each of ``starts`` (B, P), a batch at a time."""

    def work(batch: slice) -> tuple[Array, Array]:
        return descend(objective, starts[batch], bounds, iterations)

    slices = batches(len(starts), objective.model.n)
    ended = each(work, slices, len(slices), lambda count: progress(slices[count - 1].stop))
    ends, values = zip(*ended, strict=True)
    return np.concatenate(ends), np.concatenate(values)


def batches(count: int, n: int) -> list[slice]:
    """Returns slices of ``count`` parameter vectors to work on at a time, over ``n`` rows."""
    size = max(1, min(BATCH, max(CACHED // n, min(FEW, MAX_SIZE // n))))
    return [slice(i, min(i + size, count)) for i in range(0, count, size)]


def _pruned(
    objective: Objective,
    starts: Array,
    bounds: Array,
    rng: np.random.Generator,
    progress: Callable[[int], None],
) -> Array:
    """Returns where the starts that survive both rungs have come to."""
    (B, P), n = starts.shape, objective.model.n
    some = objective.rows(np.sort(rng.choice(n, min(n, max(40, 4 * P)), replace=False)))
    theta, value = descend_all(some, starts, bounds, FIRST[0], progress)
    theta = theta[_best(value, _survivors(FIRST, B))]
    theta, value = descend_all(objective, theta, bounds, SECOND[0], lambda done: progress(B + done))
    return theta[_best(value, _survivors(SECOND, len(theta)))]


def _survivors(rung: tuple[int, float, int], count: int) -> int:
    return min(count, max(rung[2], int(rung[1] * count)))


def _sample_size(total: int) -> int:
    """Returns how many starts are not pruned, to see whether pruning lost the optimum."""
    return min(SAMPLE, max(32, total // 70))


def _best(value: Array, count: int) -> NDArray[np.intp]:
    return np.argsort(np.where(np.isfinite(value), value, np.inf), kind="stable")[:count]


def _distinct(
    objective: Objective, theta_BP: Array, value_B: Array, bounds: Array
) -> tuple[Array, Array]:
    """Returns the polished optimum and up to ``ENDS - 1`` far others, and values, best first."""
    near = theta_BP[value_B <= np.nanmin(value_B) * NEARLY + 1e-15]
    chosen = [polish(objective, theta_BP[np.nanargmin(value_B)], bounds)]
    while len(chosen) < ENDS and len(near):
        distance = np.abs(near[:, None] - np.array(chosen)[None]).max(axis=2).min(axis=1)
        if distance.max() < APART:
            break
        chosen.append(polish(objective, near[np.argmax(distance)], bounds))
        near = np.delete(near, np.argmax(distance), axis=0)
    ends = np.array(chosen)
    values = objective.value(ends)
    return far_apart(ends, values)


def far_apart(ends: Array, values: Array) -> tuple[Array, Array]:
    """Returns ends (K, P) and objectives (K,), best first, without those close to a better one."""
    order = np.argsort(values, kind="stable")
    apart = [order[0]]
    for i in order[1:]:
        if all(np.abs(ends[i] - ends[j]).max() >= APART for j in apart):
            apart.append(i)
    return ends[apart], values[apart]
