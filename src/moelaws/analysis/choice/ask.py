"""The question behind a choice of runs: a pool with costs, a target, and laws as candidates.

The target is either the loss at some rows, or the best model of a budget. For a budget its models
are the pool's own, made larger or smaller: parameters times a factor, and as many tokens as the
budget then pays for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from moelaws.analysis.choice.choose import Beliefs, Chosen, choose, error_of, weights_of
from moelaws.analysis.choice.draws import Known, posterior
from moelaws.analysis.choice.search import search
from moelaws.fitting.variables import read_variables, with_size
from moelaws.laws.base import Array, FittableLaw, Mask
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit
from moelaws.tables.foreign import numbers

DRAWS = 100  # of each law
# The models of a budget have sizes by these factors about the size that grows as C^(1/2).
FACTORS = tuple(np.geomspace(0.2, 5.0, 13))


@dataclass(frozen=True)
class Question:
    """What the runs in the rows of ``pool`` are to tell, and the laws that are candidates."""

    laws: Sequence[FittableLaw]
    specs: Sequence[Fit]  # how each law reads the pool and the target
    pool: pd.DataFrame  # (n) runs, trained or not; the response has a value where it is known
    costs: Array  # (n,) of training each, FLOPs
    free: Mask  # (n,) which of them may be trained
    target: pd.DataFrame  # (m) rows or models
    target_cost: float  # FLOPs of one of these
    is_budget: bool  # whether the target is the best of these models, and not the loss at them
    # Settings whose least loss is asked for instead, and what the runs of one search have in common
    searched: Sequence[str] = ()
    per: Sequence[str] = ()


@dataclass(frozen=True)
class Answer:
    """What the known runs say of the target, and which runs to train next."""

    weights: Mapping[str, float]  # law -> its support
    refused: Mapping[str, str]  # law -> why it takes no part
    known: int  # runs
    # At the target, as a part of the loss: the root mean square error, or for a budget the expected
    # regret, by which the model that looks best is worse than the best one
    error: float
    loss: Array  # (m,) that is expected at the target's rows or models
    chosen: Sequence[Chosen]  # each with the error that is expected behind it


def models_of(pool: pd.DataFrame, costs: Array, budget: float) -> pd.DataFrame:
    """Returns the ``pool`` scaled to a ``budget`` in FLOPs, each of its rows to several sizes.

    Columns whose names begin with N count parameters, and D the tokens.
    """
    if "D" not in pool or not (sizes := [c for c in map(str, pool) if c[0] == "N"]):
        raise UserError("a target C=... needs columns of parameters (N...) and tokens (D)")
    scaled = []
    for factor in FACTORS:
        own = np.sqrt(budget / costs) * factor
        values = {c: pd.to_numeric(pool[c]) * own for c in sizes}
        values |= {"D": pd.to_numeric(pool["D"]) * budget / costs / own, "C": budget}
        scaled.append(pool.assign(**values))
    return pd.concat(scaled, ignore_index=True)


# The number of threads would change last digits, and a choice between equals.
@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]
def ask(
    question: Question,
    noise: float,  # the standard deviation of ln L between two trainings of a run
    budget: float,  # FLOPs
    seed: int = 0,
) -> Answer:
    """Returns which runs are expected to narrow the target most within the ``budget``.

    A UserError refuses laws none of which can be read from the pool.
    """
    if question.searched:
        return _searched(question, noise, budget)
    order, places = _order(question.pool), _order(question.target)
    pool, costs = question.pool.iloc[order], question.costs[order]
    frames = pool, question.target.iloc[places]
    decades = np.abs(np.log10(costs / question.target_cost))
    drawn, posteriors, refused, observed = [], {}, {}, np.zeros(0)
    for law, spec in zip(question.laws, question.specs, strict=True):
        try:
            runs, target = (_read(law, frame, spec) for frame in frames)
        except UserError as reason:
            refused[law.ref] = str(reason)
            continue
        observed = runs.pop(law.response.name)
        known = np.isfinite(observed)
        both = {name: np.append(values, target[name]) for name, values in runs.items()}
        own = {name: values[known] for name, values in runs.items()}
        view = Known(law, own, law.on_scale(observed[known]), decades[known], both)
        posteriors[law.ref] = posterior(view, noise, DRAWS, seed)
        drawn.append(law.model(both).evaluate(posteriors[law.ref].draws)[0])
    if not drawn:
        raise UserError("; ".join(f"{name}: {reason}" for name, reason in refused.items()))
    together, n, each = np.concatenate(drawn), len(pool), posteriors.values()
    weights = weights_of([own.evidence for own in each], DRAWS)
    errors = [np.hypot(own.noise, own.rate * decades) for own in each]
    scatter = np.average(errors, axis=0, weights=weights[::DRAWS])
    numbered = np.repeat(np.arange(len(drawn)), DRAWS)
    beliefs = Beliefs(together[:, :n], together[:, n:], weights, numbered, scatter)
    loss = np.empty(len(places))
    loss[places] = np.exp(beliefs.weights @ beliefs.target)
    error, beliefs, importance = _aim(beliefs, question.is_budget)
    free = question.free[order]
    chosen = choose(beliefs, importance, costs, budget, free) if error > 0 else []
    start = error_of(beliefs, importance)
    power = 2 if question.is_budget else 1  # near its least value, a loss grows with the square
    named = [
        replace(one, run=int(order[one.run]), error=error * min(one.error / start, 1.0) ** power)
        for one in chosen
    ]
    total = {law: float(beliefs.weights[i * DRAWS : (i + 1) * DRAWS].sum())
             for i, law in enumerate(posteriors)}  # fmt: skip
    return Answer(total, refused, int(np.isfinite(observed).sum()), error, loss, named)


def _searched(question: Question, noise: float, budget: float) -> Answer:
    """Returns the runs that are expected to lower the least loss of each search most."""
    order, own = _order(question.pool), [*question.searched]
    pool = question.pool.iloc[order]
    if not (pool[own] > 0).all(axis=None):
        raise UserError(f"{' or '.join(own)} is not above 0 in all runs, as a search needs")
    logs, groups = pool[own].astype(float).apply(np.log), pd.Series(0, pool.index)
    if question.per:
        groups = pool.groupby([*question.per], dropna=False).ngroup()
    low, high = (logs.groupby(groups).transform(end) for end in ("min", "max"))
    places = (2 * logs - low - high) / (high - low).where(high > low, 1.0)
    losses, free, costs = pool["L"].to_numpy(float), question.free[order], question.costs[order]
    each = places.to_numpy(), groups.to_numpy()
    chosen = search(*each, losses, free, costs, budget, noise)
    named = [replace(one, run=int(order[one.run])) for one in chosen]
    # The search itself says when nothing is left to gain, and no error of a target
    return Answer({}, {}, int(np.isfinite(losses).sum()), np.inf, losses, named)


def _order(frame: pd.DataFrame) -> NDArray[np.intp]:
    """Returns an order of the rows (n,) that does not depend on the one that they are given in."""
    return np.lexsort([np.nan_to_num(values) for values in numbers(frame).values()])


def _read(law: FittableLaw, frame: pd.DataFrame, spec: Fit) -> dict[str, Array]:
    """Returns the law's variables and, with NaN where it is unknown, its response."""
    frame = frame.reset_index(drop=True)
    given = read_variables(law, frame, with_size(law, frame, spec)).values
    columns = law.columns(given)
    for variable in law.variables:
        values = columns[variable.name]
        if not variable.domain.holds(values).all():
            raise UserError(f"{variable.name} is not {variable.domain.text} in all runs")
    return columns | {law.response.name: given[law.response.name]}


def _aim(beliefs: Beliefs, is_budget: bool) -> tuple[float, Beliefs, Array]:
    """Returns the target's error, and the values and their importance that decide it.

    For a budget these are the losses of the models that some draw finds best, over that of the
    model that is best on average; each counts as often as draws find it best.
    """
    target, weights = beliefs.target, beliefs.weights
    if not is_budget:
        importance = np.full(target.shape[1], 1 / target.shape[1])
        deviations = target - weights @ target
        return float(np.sqrt(weights @ deviations**2 @ importance)), beliefs, importance
    best, own = int(np.argmin(weights @ target)), target.argmin(axis=1)
    regret = float(weights @ (target[:, best] - target.min(axis=1)))
    models = np.setdiff1d(own, [best])
    importance = np.array([weights[own == model].sum() for model in models])
    contrasts = target[:, models] - target[:, [best]]
    return regret, replace(beliefs, target=contrasts), importance / max(importance.sum(), 1e-12)
