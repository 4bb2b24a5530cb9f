"""A law over a table's rows as the engine minimises it, and the search for its optimum.

The coordinates of a sum of power laws and of a general law are its working-scale parameters. In a
linear law the powers of ln N are nearly collinear, so its coordinates are those of an orthonormal
design.

The search descends from a whole grid of starts, in batches, and prunes them twice. All starts take
a few steps on some of the rows, and those of the least objective go on. These take some more steps
on all rows, and the best of them descend to the end. A random sample of all starts also descends to
the end. If it finds a lower optimum, that is the result, and the report says that pruning lost it.

Arrays: B starts or vectors, n rows, P parameters.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from moelaws.fitting.cores import LARGER, Done, batches, each, unseen
from moelaws.fitting.descent import APART, Certificate, Ends, certify, descend, far_apart, polish
from moelaws.fitting.diagnostics import Starts
from moelaws.fitting.objective import Index, Objective
from moelaws.fitting.priors import Priors, WithPriors
from moelaws.fitting.variables import Observations
from moelaws.laws.base import Array, FitProtocol, FittableLaw, Model
from moelaws.laws.forms import LinearLaw, LinearModel
from moelaws.spec.errors import UserError

# Thresholds of the non-smooth objectives: the path to the smallest leads through the larger ones.
LARGEST_DELTA = 1e-3
SMALLEST_DELTA = 1e-8
DELTA_RATIO = 3.0

MAX_UNPRUNED = 400  # up to this number all starts descend to the end
FIRST = (4, 0.04, 800)  # steps on some of the rows; fraction and least number of those that go on
SECOND = (12, 0.05, 100)  # the same of the steps on all rows
SAMPLE = 256  # the largest number of starts that are never pruned
REACHED = 1e-3  # a start has reached the optimum when its objective is this close, relatively
NEARLY = 1.5  # largest ratio of another end's objective to the best one's, for it to be reported
ENDS = 5  # ends that are kept, the optimum among them

Progress = Callable[[int, int], None]  # done, total


@dataclass(frozen=True)
class Problem:
    """A law over the rows that it is fitted to, in the coordinates that a fit minimises over."""

    law: FittableLaw
    rows: Observations
    observed: Array  # (n,) response on the law's scale, and what priors expect behind it
    protocol: FitProtocol
    seed: int  # of a sample of the starts
    weights: Array | None  # (n,)
    model: Model  # over the rows, in coordinates
    bounds: Array  # (P, 2) of the coordinates
    starts: Array  # (B, P) coordinates
    working: Callable[[Array], Array]  # coordinates (..., P) to working-scale parameters
    coordinates: Callable[[Array], Array]  # the reverse

    def path(self) -> list[Objective]:
        """Returns objectives that lead from a smooth one to the protocol's own, the last."""
        if self.protocol.objective == "huber":
            steps = [(self.protocol.delta, 1.0)]
        elif self.protocol.objective == "squared":
            steps = [(np.inf, 2.0)]
        else:
            count = round(np.log(LARGEST_DELTA / SMALLEST_DELTA) / np.log(DELTA_RATIO)) + 1
            relative = np.geomspace(LARGEST_DELTA, SMALLEST_DELTA, count)
            deltas = _spread(self.law, self.observed) * relative
            steps = [(delta, 1 / delta) for delta in deltas.tolist()]
        return [
            Objective(self.model, self.observed, delta, self.weights, unit) for delta, unit in steps
        ]


def problem(
    law: FittableLaw, rows: Observations, protocol: FitProtocol, seed: int, last: int | None = None
) -> Problem:
    """Returns the problem of fitting ``law`` to ``rows``.

    ``last`` is the index of a linear law's parameter that becomes the last coordinate, up to a
    factor, so that bounds can fix it.
    """
    observed = law.on_scale(rows.response)
    common = partial(Problem, law, rows, observed, protocol, seed, rows.weights)
    if not isinstance(law, LinearLaw):
        starts = starts_of(law, protocol, seed)
        # The coordinates are the parameters as they are.
        bare = common(law.model(rows.columns), law.bounds, starts, np.asarray, np.asarray)
        return _with_priors(bare) if any(p.prior for p in law.parameters) else bare
    X = law.design(rows.columns)
    P = X.shape[1]
    order = [i for i in range(P) if i != last] + ([] if last is None else [last])
    Q, R = np.linalg.qr(X[:, order])
    back = np.argsort(order)
    scale = np.sqrt(len(X)) * _spread(law, observed)

    def working(phi: Array) -> Array:
        solved = np.linalg.solve(R, np.atleast_2d(phi).T * scale).T[:, back]
        return solved.reshape(phi.shape)

    def coordinates(theta: Array) -> Array:
        return np.asarray(np.atleast_2d(theta)[:, order] @ R.T / scale).reshape(theta.shape)

    free = np.tile([-np.inf, np.inf], (P, 1))
    start = (Q.T @ observed / scale)[None]
    return common(LinearModel(Q * scale), free, start, working, coordinates)


def _with_priors(bare: Problem) -> Problem:
    """Returns the problem with a row for each prior; the scatter is that of a fit without them."""
    priors, delta = Priors.of(bare.law), bare.path()[-1].delta
    residual = bare.path()[-1].evaluate(solve(bare, bare.seed).phi[None]).residual[0]
    factors, n = priors.factors(delta), bare.model.n
    own = np.ones(n) if bare.weights is None else bare.weights
    return replace(
        bare,
        model=WithPriors(bare.model, priors.index, factors),
        observed=np.append(bare.observed, priors.mean * factors),
        weights=np.append(own, priors.weights(residual, delta)),
    )


def _spread(law: FittableLaw, observed: Array) -> float:
    """Returns the unit of steps and thresholds: a response that is no logarithm may have any."""
    return 1.0 if law.log_response else float(observed.std()) or 1.0


def starts_of(law: FittableLaw, protocol: FitProtocol, seed: int) -> Array:
    """Returns the protocol's grid of starts (B, P), or a seeded sample without repetition."""
    if missing := [name for name in law.names if not protocol.grid.get(name)]:
        raise UserError(f"law {law.ref}: the parameter {missing[0]} declares no starts")
    axes = [np.asarray(protocol.grid[name]) for name in law.names]
    shape = tuple(len(axis) for axis in axes)
    index = np.arange(protocol.n_starts)
    if protocol.n_run < protocol.n_starts:
        rng = np.random.default_rng(seed)
        index = np.sort(rng.choice(protocol.n_starts, protocol.n_run, replace=False))
    places = np.unravel_index(index, shape)
    return np.stack([axis[i] for axis, i in zip(axes, places, strict=True)], axis=1)


@dataclass(frozen=True)
class Solution:
    """Where a fit ended."""

    phi: Array  # (P,) the optimum, in the objective's coordinates
    value: float  # the objective at it
    certificate: Certificate  # whether it is a stationary point
    search: Starts  # what became of the starts
    ends: Array  # (K, P) the optimum and ends far from it that are nearly as good; best first
    end_values: Array  # (K,) their objectives
    path: list[Objective]  # from a smooth objective to the one whose minimum is the optimum


def multistart(
    objective: Objective, starts: Array, bounds: Array, seed: int = 0, progress: Progress = unseen
) -> Solution:
    """Returns the best optimum that ``starts`` (B, P) lead to, within ``bounds`` (P, 2).

    ``progress`` counts descents, and counts a start again after each pruning that it survives. A
    UserError says that the objective has no finite value at any of their ends.
    """
    rng, total = np.random.default_rng(seed), len(starts)
    second = _survivors(FIRST, total) if total > MAX_UNPRUNED else 0  # 0 where none are pruned
    pruned = total + second if second else 0
    whole = _survivors(SECOND, second) + _sample_size(total) if second else total

    def shown(done: int) -> None:
        progress(done, pruned + whole)

    survivors, sample = starts, starts[:0]
    if second:
        sample = starts[rng.choice(total, _sample_size(total), replace=False)]
        survivors = _pruned(objective, starts, bounds, rng, shown)
    last = np.concatenate([survivors, sample])
    theta_BP, value_B = descend_all(
        [objective], last, bounds, done=lambda count: shown(pruned + count)
    )
    value_B = np.where(np.isfinite(value_B), value_B, np.nan)
    if np.isnan(value_B).all():
        raise UserError(
            "the law has no finite value for these rows at any of its starts; set other starts "
            "under protocol.grid"
        )
    ends, values = _distinct(objective, theta_BP, value_B, bounds)
    n = len(survivors)
    # In a long flat valley only the polish arrives, so a start that came as far as the best counts.
    furthest = max(float(np.nanmin(value_B)), float(values[0]))
    close = value_B <= furthest * (1 + REACHED) + 1e-15
    search = Starts(
        run=total,
        survived=n,
        reached=int(close[:n].sum()),
        sample=len(sample),
        sample_reached=int(close[n:].sum()),
        pruning_lost=bool(len(sample)) and not close[:n].any(),
        grid=total,
    )
    certificate = certify(objective, ends[0], bounds)
    return Solution(ends[0], float(values[0]), certificate, search, ends, values, [objective])


def descend_all(
    path: list[Objective],
    starts: Array,
    bounds: Array,
    iterations: int = 500,
    larger: int = 1,
    done: Done = unseen,
) -> Ends:
    """Returns where each of ``starts`` (B, P) leads along ``path``, and the last objectives there.

    A batch at a time descends (:func:`descend`), and the batches may be ``larger``.
    """
    bounds_BP2 = np.broadcast_to(bounds, (*starts.shape, 2))

    def work(batch: slice) -> Ends:
        phi, values = starts[batch], np.empty(0)
        for objective in path:
            own = objective.take(np.arange(batch.start, batch.stop))
            phi, values = descend(own, phi, bounds_BP2[batch], iterations)
        return phi, values

    slices = batches(len(starts), path[0].model.n, larger)
    ended = each(work, slices, len(slices), lambda count: done(slices[count - 1].stop))
    ends, values = map(np.concatenate, zip(*ended, strict=True))
    return ends, values


def follow(path: list[Objective], phi_BP: Array, bounds: Array) -> Array:
    """Returns the minimum (B, P) of the last objective of ``path``, followed from each vector.

    Most vectors arrive within fifty steps. The last few in a flat valley take hundreds, and
    without them a bootstrap's intervals are too narrow where rows hardly determine a parameter.
    """
    return descend_all(path, phi_BP, bounds, larger=LARGER)[0]


def _pruned(
    objective: Objective, starts: Array, bounds: Array, rng: np.random.Generator, done: Done
) -> Array:
    """Returns where the starts that survive both prunings have come to."""
    (B, P), n = starts.shape, objective.model.n
    some = objective.rows(np.sort(rng.choice(n, min(n, max(40, 4 * P)), replace=False)))
    theta, value = descend_all([some], starts, bounds, FIRST[0], done=done)
    theta = theta[_best(value, _survivors(FIRST, B))]
    theta, value = descend_all(
        [objective], theta, bounds, SECOND[0], done=lambda count: done(B + count)
    )
    return theta[_best(value, _survivors(SECOND, len(theta)))]


def _survivors(rung: tuple[int, float, int], count: int) -> int:
    _, fraction, least = rung
    return min(count, max(least, int(fraction * count)))


def _sample_size(total: int) -> int:
    """Returns how many starts are not pruned, to see whether pruning lost the optimum."""
    return min(SAMPLE, max(32, total // 70))


def _best(value: Array, count: int) -> Index:
    return np.argsort(np.where(np.isfinite(value), value, np.inf), kind="stable")[:count]


def _distinct(objective: Objective, theta_BP: Array, value_B: Array, bounds: Array) -> Ends:
    """Returns the polished optimum and up to ``ENDS - 1`` others far from it, and their values.

    Only the optimum needs its last digits, and a polish takes one vector at a time. So all of them
    descend once more, together, and then the best one is polished.
    """
    best = np.nanargmin(value_B)
    is_near = value_B <= value_B[best] * NEARLY + 1e-15
    is_near[best] = False
    near, chosen = theta_BP[is_near], [theta_BP[best]]
    distance = np.full(len(near), np.inf)
    while len(chosen) < ENDS and len(near):
        distance = np.minimum(distance, np.abs(near - chosen[-1]).max(axis=1))
        if distance.max() < APART:
            break
        chosen.append(near[np.argmax(distance)])
    ends, values = descend(objective, np.array(chosen), bounds)
    first = np.nanargmin(values)
    ends[first] = polish(objective, ends[first], bounds)
    return far_apart(ends, objective.value(ends))


def solve(problem: Problem, seed: int, progress: Progress = unseen) -> Solution:
    """Minimises the problem's own objective from all of its starts."""
    path = problem.path()
    first = multistart(path[0], problem.starts, problem.bounds, seed, progress)
    if len(path) == 1:
        return first
    ends = follow(path[1:], first.ends, problem.bounds)
    # Several may have come to one place on the way.
    ends, values = far_apart(ends, path[-1].value(ends))
    best = ends[0] = polish(path[-1], ends[0], problem.bounds)
    values[0] = path[-1].value(best[None])[0]
    certificate = certify(path[-1], best, problem.bounds)
    return Solution(best, float(values[0]), certificate, first.search, ends, values, path)
