"""What a fit will cost: said before a long one begins, refused where it would not end.

A few starts descend over a few of the rows; time grows with the rows, starts and refits from there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from moelaws.fitting.cores import cores_at_work
from moelaws.fitting.descent import descend
from moelaws.fitting.multistart import SECOND, descents
from moelaws.fitting.problem import Problem, problem
from moelaws.fitting.rows import Rows
from moelaws.laws.base import FitProtocol, FittableLaw
from moelaws.laws.forms import LinearLaw
from moelaws.records.progress import announce, duration
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit

MEASURED_ABOVE = 5e6  # rows times descents: what is below takes some twenty seconds at most
SAID_ABOVE = 60.0  # seconds
ROWS, STARTS = 1000, 64  # of the sample that is timed
REFIT = 0.6  # of a descent from a start: a refit begins near its end
PATH = 3.0  # refits, where the objective is reached by way of smoother ones
SLOWER = 2.0  # than the sample, which fits into the processor's cache, is a whole fit
PROFILE = 100  # descents a parameter's profile takes
EFFICIENCY = 0.8  # of each further core


def check_cost(
    law: FittableLaw, prepared: Sequence[Rows], spec: Fit, protocol: FitProtocol, seed: int
) -> None:
    """Says on standard error how long a fit of more than a minute will take.

    Raises:
        UserError: where that is more than the entry's ``max_hours``.
    """
    with threadpool_limits(1):  # as the fit itself
        seconds = sum(_seconds(law, rows, spec, protocol, seed) for rows in prepared)
    seconds /= 1 + EFFICIENCY * (cores_at_work() - 1)
    if seconds < SAID_ABOVE:
        return
    n = sum(len(rows.response) for rows in prepared)
    starts = 1 if isinstance(law, LinearLaw) else protocol.n_run
    takes = f"fitting {law.ref} to {n:,} rows takes about {duration(seconds)} on this machine"
    shorter = (
        f"a lower bootstrap (now {spec.bootstrap:,} refits) or sample (now {starts:,} starts), or "
        "fewer rows"
    )
    if seconds > 3600 * spec.max_hours:
        raise UserError(
            f"{takes}; max_hours allows {spec.max_hours:g} h. Choose {shorter}, or a higher "
            "max_hours"
        )
    announce(f"{takes}; shorter by {shorter}")


def _seconds(law: FittableLaw, rows: Rows, spec: Fit, protocol: FitProtocol, seed: int) -> float:
    """How long the fit to ``rows`` takes; 0 where it is too short for a measurement."""
    n, task = len(rows.response), problem(law, rows, _few_starts(protocol), seed)
    pruned, whole = descents(1 if isinstance(law, LinearLaw) else protocol.n_run)
    refits = REFIT * (0 if spec.uses_student(protocol.objective) else spec.bootstrap)
    if n * (pruned + whole + refits) < MEASURED_ABOVE:
        return 0.0
    refits *= PATH if len(task.path()) > 1 else 1.0
    rolled = 4.0 if spec.rollout else 0.0  # eight fits of half the rows
    of_pruned, of_whole = _timed(task)
    searches = (1 + rolled) * (pruned * of_pruned + whole * of_whole)
    return SLOWER * n * (searches + (refits + PROFILE * len(spec.profile)) * of_whole)


def _timed(task: Problem) -> tuple[float, float]:
    """Seconds for each start and row: of the second rung's steps, and of a descent to the end."""
    n = task.model.n
    some = task.path()[0].rows(np.linspace(0, n - 1, min(n, ROWS)).astype(np.intp))
    began = time.perf_counter()
    theta, value = descend(some, task.starts, task.bounds, SECOND[0])
    middle = time.perf_counter()
    best = theta[np.argsort(value)[: max(1, len(theta) // 8)]]
    descend(some, best, task.bounds)
    whole = time.perf_counter() - middle
    return (middle - began) / (len(theta) * some.model.n), whole / (len(best) * some.model.n)


def _few_starts(protocol: FitProtocol) -> FitProtocol:
    return replace(protocol, sample=min(STARTS, protocol.sample or STARTS))
