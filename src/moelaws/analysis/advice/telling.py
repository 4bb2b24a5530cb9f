"""Which three small runs would tell the candidate laws apart."""

from itertools import combinations

import numpy as np

from moelaws.analysis.advice.regret import Minimax

_TELLING = 0.01  # nats: somewhat more than losses of two seeds differ by


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
