"""Which runs to train next: those whose losses are expected to narrow the target most.

Each candidate law gives draws of the loss at the runs that could be trained and at the target. All
draws together, each law's weighted by its support, say how far a run's loss goes together with the
target. So a run on which the laws disagree counts as one on which a law is unsure does. A run that
is chosen narrows the draws as its loss would on average, before the next one is chosen.

Arrays: B draws, n runs, T target values; losses on the laws' scale, ln L.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moelaws.laws.base import Array, Mask

FLOOR = 0.1  # the share of the weight that all laws have in common, whatever their support
REACH = 6.0  # median deviations beyond which a draw counts as one at that distance
POWER = 0.5  # A gain is divided by this power of the cost


@dataclass(frozen=True)
class Beliefs:
    """Draws of all laws at the runs and at the target."""

    runs: Array  # (B, n)
    target: Array  # (B, T)
    weights: Array  # (B,), of sum 1
    laws: NDArray[np.intp]  # (B,) number of each draw's law
    noise: Array  # (n,) how far a run's loss lies from the law that holds at the target


@dataclass(frozen=True)
class Chosen:
    """A run to train, and what it is expected to bring."""

    run: int  # number of its row
    cost: float  # FLOPs
    # The target's error once this run is trained, in ln L: the root mean square over its values.
    error: float
    between: float  # the part of its gain, 0 to 1, that tells laws apart and narrows none


def weights_of(evidence: Sequence[float], draws: int) -> Array:
    """Returns the weight (B,) of each draw of each law, ``draws`` of each."""
    support = np.exp(np.array(evidence) - max(evidence))
    weights = (1 - FLOOR) * support / support.sum() + FLOOR / len(support)
    return np.repeat(weights / draws, draws)


def spread(beliefs: Beliefs, values: Array) -> Array:
    """Returns deviations (B, m) from the mean, each draw's times the root of its weight.

    Draws far out are brought nearer: a few of them would decide alone.
    """
    middle = np.median(values, axis=0)
    reach = REACH * 1.4826 * np.median(np.abs(values - middle), axis=0)
    near = np.clip(values, middle - reach, middle + reach)
    return (near - beliefs.weights @ near) * np.sqrt(beliefs.weights)[:, None]


def choose(
    beliefs: Beliefs, importance: Array, costs: Array, budget: float, free: Mask
) -> list[Chosen]:
    """Returns the ``free`` runs (n,) to train within ``budget``, in the order of their choice.

    ``importance`` (T,) of sum 1 weights the target's values, and ``costs`` (n,) are the runs' own.
    A run's gain is divided by the root of its cost, and the first run of equals is taken.
    """
    A, T = spread(beliefs, beliefs.runs), spread(beliefs, beliefs.target)
    noise = beliefs.noise**2
    member = np.eye(int(beliefs.laws.max()) + 1)[beliefs.laws]  # (B, laws)
    roots = np.sqrt(beliefs.weights)[:, None] * member
    plan: list[Chosen] = []
    open_, left = free.copy(), budget
    while True:
        can = np.flatnonzero(open_ & (costs <= left))
        if not len(can):
            return plan
        cross = A[:, can].T @ T
        gain = (cross**2 @ importance) / ((A[:, can] ** 2).sum(axis=0) + noise[can])
        best = int(np.argmax(gain / costs[can] ** POWER))
        if gain[best] <= 0:
            return plan
        run, a = int(can[best]), A[:, can[best]].copy()
        # The part of the covariance that the laws' means alone have
        means = (roots.T @ np.column_stack([a, T])) / np.sqrt((roots**2).sum(axis=0))[:, None]
        whole = cross[best] ** 2 @ importance
        between = (means[:, 0] @ means[:, 1:]) ** 2 @ importance / whole
        own = float(a @ a)
        keep = (1 - np.sqrt(noise[run] / (own + noise[run]))) / own
        A -= np.outer(a, keep * (a @ A))
        T -= np.outer(a, keep * (a @ T))
        open_[run], left = False, left - float(costs[run])
        error = float(np.sqrt((T**2).sum(axis=0) @ importance))
        plan.append(Chosen(run, float(costs[run]), error, float(min(between, 1.0))))


def error_of(beliefs: Beliefs, importance: Array) -> float:
    """Returns the target's error now: the root mean square deviation over its values."""
    return float(np.sqrt((spread(beliefs, beliefs.target) ** 2).sum(axis=0) @ importance))
