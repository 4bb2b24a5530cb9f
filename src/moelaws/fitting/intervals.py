"""Draws from the estimates' sampling distribution, and what the delta method says of it.

Two ways to draw. The bootstrap refits to rows, or blocks of rows, drawn with replacement. For least
squares the estimates' Student-t distribution is drawn from instead: exact for a linear law with
normal errors, and right for the handful of rows of a law over optima, where a bootstrap is far too
narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from moelaws.fitting.cores import each, shared
from moelaws.fitting.descent import descend
from moelaws.fitting.multistart import batches
from moelaws.fitting.objective import Objective
from moelaws.fitting.problem import Problem
from moelaws.fitting.regression import student_t
from moelaws.fitting.solve import Solution, follow
from moelaws.laws.base import Array, Mask
from moelaws.laws.forms import LinearLaw

FIRST_STEPS = 10  # steps from each end before the best one of a draw is followed


def resampled(
    n: int, groups: NDArray[np.intp] | None, draws: int, rng: np.random.Generator
) -> Array:
    """Returns how often each of ``n`` rows stands in each of ``draws`` resamples, (draws, n).

    ``groups`` (n,) are the blocks' numbers, where whole blocks are drawn.
    """
    block = np.arange(n) if groups is None else groups
    blocks = int(block.max()) + 1
    counts = rng.multinomial(blocks, np.full(blocks, 1 / blocks), size=draws)
    return np.asarray(counts[:, block], float)


def bootstrap(
    problem: Problem,
    solution: Solution,
    groups: NDArray[np.intp] | None,
    draws: int,
    seed: int,
    progress: Callable[[int], None] = lambda done: None,
) -> Array:
    """Returns coordinates (draws, P) refitted to resampled rows.

    Each draw starts from every one of the fit's ends and the best is followed: from the optimum
    alone, a term that vanished there would vanish in every draw. A draw whose rows cannot tell the
    parameters of a linear law apart is left out: fewer come back.
    """
    n, rng = problem.model.n, np.random.default_rng(seed)
    blocks = n if groups is None else int(groups.max()) + 1
    place, counts_RB = np.arange(draws), np.empty((0, 0))
    # So few blocks give each resample many times: it is refitted once.
    are_few = groups is not None and math.comb(2 * blocks - 1, blocks) < draws
    if are_few:
        drawn = resampled(blocks, None, draws, rng)
        counts_RB, place = np.unique(drawn, axis=0, return_inverse=True)
    refits = len(counts_RB) if are_few else draws
    phi, used = shared((refits, len(solution.phi))), shared((refits,), bool)
    used[:] = True
    of_draws = batches(refits, n)

    def resamples() -> Iterator[tuple[slice, Array]]:
        for batch in of_draws:
            if are_few:
                yield batch, counts_RB[batch][:, groups]
            else:
                yield batch, resampled(n, groups, batch.stop - batch.start, rng)

    def work(resample: tuple[slice, Array]) -> None:
        batch, counts = resample
        if isinstance(problem.law, LinearLaw):
            used[batch] = _identified(problem, counts)
        if used[batch].any():
            phi[batch][used[batch]] = _refitted(problem, solution, counts[used[batch]])

    each(
        work,
        resamples(),
        len(of_draws),
        lambda resample: progress(resample[0].stop * draws // refits),
    )
    return np.asarray(phi[place][used[place]])


def _refitted(problem: Problem, solution: Solution, counts: Array) -> Array:
    """Coordinates (B, P) of refits to rows that stand ``counts`` (B, n) times in each resample."""
    weights = counts * solution.path[-1].weights
    path = [o.at(o.delta, o.unit, weights) for o in solution.path]
    tries = [
        descend(path[0], np.tile(end, (len(weights), 1)), problem.bounds, FIRST_STEPS)
        for end in solution.ends
    ]
    best = np.argmin([value for _, value in tries], axis=0)
    start = np.array([phi for phi, _ in tries])[best, np.arange(len(weights))]
    return follow(path, start, problem.bounds)


def _identified(problem: Problem, counts: Array) -> Mask:
    """Which resamples (B,) of a linear law, whose design is orthonormal, determine it."""
    _, state = problem.model.evaluate(problem.starts[:1])
    J = problem.model.jacobian(state)[0]
    gram = np.einsum("pn,bn,qn->bpq", J, counts, J, optimize=True) / (J[0] @ J[0])
    return np.asarray(np.linalg.eigvalsh(gram)[:, 0] > 1e-10)


def student(problem: Problem, solution: Solution, draws: int, seed: int) -> Array:
    """Returns draws (draws, P) of a least-squares fit's t distribution; none without freedom."""
    covariance = delta_method(
        problem, solution.path[-1], solution.phi, solution.certificate.at_bound
    )
    freedom = problem.model.n - len(solution.phi)
    if covariance is None:
        return np.empty((0, len(solution.phi)))
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    t = student_t(root, freedom, draws, seed)
    return np.asarray(np.clip(solution.phi + t, *problem.bounds.T))


def delta_method(
    problem: Problem, objective: Objective, phi: Array, at_bound: Mask
) -> Array | None:
    """Returns the covariance (P, P) of the estimates for large n; zero for parameters at a bound.

    The sandwich of an M-estimator: with weights w, psi the objective's derivative and psi' its mean
    slope, (psi' J'wJ)^-1 J' w^2 psi^2 J (psi' J'wJ)^-1, times n / (n - P). For least squares the
    residuals' variance stands for each psi^2. None where no degree of freedom is left.
    """
    n, P = problem.model.n, len(phi)
    if n <= P:
        return None
    prediction, state = problem.model.evaluate(phi[None])
    J, r = problem.model.jacobian(state)[0], prediction[0] - problem.observed
    w = objective.weights[0]
    psi = np.clip(r, -objective.delta, objective.delta)
    free = ~at_bound
    information = (J[free] * w) @ J[free].T
    if not np.isfinite(objective.delta):
        middle = information * float((w * r**2).mean())
    else:
        # The slope of psi is 1 for rows within the threshold: for so few, where it is tiny, that
        # they are counted over a wider band. Row by row, for errors differ between rows; where too
        # few are in the band for that, by their share of all rows.
        wide = 1.06 * float(np.median(np.abs(r))) * 1.4826 * n**-0.2
        band = max(objective.delta, wide)
        within = (np.abs(r) <= band).astype(float)
        if within.sum() >= 3 * P:
            information = (J[free] * (w * within)) @ J[free].T
        else:
            information = information * float(within.mean())
        information = information * objective.delta / band
        middle = (J[free] * (w * psi) ** 2) @ J[free].T
    scale = np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    bread = np.linalg.pinv(information / np.outer(scale, scale), hermitian=True)
    bread = bread / np.outer(scale, scale)
    covariance = np.zeros((P, P))
    covariance[np.ix_(free, free)] = bread @ middle @ bread * n / (n - P)
    return covariance
