"""How far estimates may be off: draws of them, the delta method and the profile likelihood.

There are two ways to draw. The bootstrap refits to rows, or blocks of rows, drawn with replacement.
Least squares draws from the Student-t distribution of its estimates instead. That is exact for a
linear law with normal errors, and right for the few rows of a law over optima, where a bootstrap is
far too narrow. Other laws are predicted to first order by such draws (``prediction.of_draws``).

The profile likelihood says how far a parameter can be moved when all others make up for it. It
rests on the Huber likelihood with a fitted scale, whatever the fit's own objective is, so that its
optimum is near the fit's but not the same.
"""

import dataclasses
import math

import numpy as np
from scipy.special import gammaincinv

from moelaws.files.atomic import finite
from moelaws.fitting.cores import LARGER, Done, batches, each, unseen
from moelaws.fitting.descent import from_best, inverse
from moelaws.fitting.diagnostics import ProfileInterval
from moelaws.fitting.objective import Index, Objective, sigma_huber
from moelaws.fitting.priors import Priors
from moelaws.fitting.problem import Problem, Solution, follow, problem
from moelaws.fitting.quantiles import student_t
from moelaws.fitting.rollout import Progress
from moelaws.laws.base import Array, Columns, FittableLaw, Mask
from moelaws.laws.forms import LinearLaw
from moelaws.spec.fit import Fit

POINTS = 16  # of a profile, on each side of the optimum
# A coefficient's effect is looked for at so many values between its bounds, in at most so many
# rows.
STEPS, MAX_ROWS = 200, 1000
DELTA = 1e-3  # of a profile's likelihood, in units of its scale


def resampled(n: int, blocks: Index | None, draws: int, rng: np.random.Generator) -> Array:
    """Returns how often each of ``n`` rows stands in each of ``draws`` resamples, (draws, n).

    ``blocks`` (n,) are the numbers of the rows' blocks, where whole blocks are drawn.
    """
    block = np.arange(n) if blocks is None else blocks
    count = int(block.max()) + 1
    counts = rng.multinomial(count, np.full(count, 1 / count), size=draws)
    return np.asarray(counts[:, block], float)


def bootstrap(
    problem: Problem,
    solution: Solution,
    blocks: Index | None,
    draws: int,
    seed: int,
    progress: Done = unseen,
) -> Array:
    """Returns coordinates (draws, P) refitted to resampled rows, or blocks (n,) of rows.

    Each draw starts from all ends of the fit. A draw whose rows do not identify the parameters of a
    linear law is left out.
    """
    if not draws:
        return np.empty((0, len(solution.phi)))
    n, rng = len(problem.rows.response), np.random.default_rng(seed)
    expected = Priors.of(problem.law).drawn(solution.path[-1].delta, draws, seed)
    refits, place = draws, np.arange(draws)
    different = None
    if blocks is not None and not expected.size:
        count = int(blocks.max()) + 1
        # Where blocks are so few that resamples repeat, each different one is refitted once.
        if math.comb(2 * count - 1, count) < draws:
            drawn = resampled(count, None, draws, rng)
            different, place = np.unique(drawn, axis=0, return_inverse=True)
            refits = len(different)
    slices = batches(refits, n, LARGER)

    def counted(batch: slice) -> tuple[Array, Array]:
        if different is not None:
            return different[batch][:, blocks], expected
        return resampled(n, blocks, batch.stop - batch.start, rng), expected[batch]

    def work(drawn: tuple[Array, Array]) -> tuple[Array, Mask]:
        counts, means = drawn
        phi, used = np.zeros((len(counts), len(solution.phi))), np.ones(len(counts), dtype=bool)
        if isinstance(problem.law, LinearLaw):
            used = _identified(problem, counts)
        if used.any():
            phi[used] = _refitted(problem, solution, counts[used], means)
        return phi, used

    def ended(count: int) -> None:
        progress(slices[count - 1].stop * draws // refits)

    refitted = each(work, map(counted, slices), len(slices), ended)
    phi, used = map(np.concatenate, zip(*refitted, strict=True))
    return np.asarray(phi[place][used[place]])


def _refitted(problem: Problem, solution: Solution, counts: Array, means: Array) -> Array:
    """Returns coordinates (B, P) of refits to rows that stand ``counts`` (B, n) times.

    ``means`` (B, K) are what the law's priors expect.
    """
    observed = problem.observed
    if means.size:
        counts = np.hstack([counts, np.ones_like(means)])
        rows = np.tile(observed[: -means.shape[1]], (len(means), 1))
        observed = np.hstack([rows, means])
    weights = counts * solution.path[-1].weights
    path = [Objective(o.model, observed, o.delta, weights, o.unit) for o in solution.path]
    return follow(path, from_best(path[0], solution.ends, problem.bounds), problem.bounds)


def _identified(problem: Problem, counts: Array) -> Mask:
    """Returns which resamples (B,) determine a linear law, whose design is orthonormal."""
    _, state = problem.model.evaluate(problem.starts[:1])
    J = problem.model.jacobian(state)[0]
    gram = np.einsum("pn,bn,qn->bpq", J, counts, J, optimize=True) / (J[0] @ J[0])
    return np.linalg.eigvalsh(gram)[:, 0] > 1e-10


def student(problem: Problem, solution: Solution, draws: int, seed: int) -> Array:
    """Returns draws (draws, P) from the t distribution of least squares; none without freedom."""
    at_bound, P = solution.certificate.at_bound, len(solution.phi)
    covariance = delta_method(problem, solution.path[-1], solution.phi, at_bound)
    if covariance is None:
        return np.empty((0, P))
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    t = student_t(root, problem.model.n - problem.law.n_free, draws, seed)
    return np.clip(solution.phi + t, *problem.bounds.T)


def delta_method(
    problem: Problem, objective: Objective, phi: Array, at_bound: Mask
) -> Array | None:
    """Returns the covariance (P, P) of the estimates for large n; zero for parameters at a bound.

    It is the sandwich of an M-estimator. With weights w, the objective's derivative psi and its
    mean slope psi', that is (psi' J'wJ)^-1 J' w^2 psi^2 J (psi' J'wJ)^-1, times n / (n - P). Least
    squares takes the residuals' variance for each psi^2. None where no degree of freedom is left.
    """
    n, P = problem.model.n, problem.law.n_free
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
        # The slope of psi is 1 for rows within the threshold. Where the threshold is tiny, these
        # are so few that rows are counted over a wider band instead: row by row, since errors
        # differ between rows, or by the fraction of all rows where too few are in the band.
        wide = 1.06 * float(np.median(np.abs(r))) * 1.4826 * n**-0.2
        band = max(objective.delta, wide)
        within = (np.abs(r) <= band).astype(float)
        if within.sum() >= 3 * P:
            information = (J[free] * (w * within)) @ J[free].T
        else:
            information = information * float(within.mean())
        information = information * objective.delta / band
        middle = (J[free] * (w * psi) ** 2) @ J[free].T
    bread = inverse(information)
    covariance = np.zeros((len(phi), len(phi)))
    covariance[np.ix_(free, free)] = bread @ middle @ bread * n / (n - P)
    return covariance


def open_ends(law: FittableLaw, theta: Array, ends: Array, columns: Columns, noise: float) -> Array:
    """Returns intervals' ends (2, P), natural scale, of which upper ones are infinite if unknown.

    Unknown is an end at a bound, and one beyond which no value of a coefficient changes a
    prediction of the rows by a hundredth of their ``noise``, such as a saturation that no row comes
    near. A search stops anywhere there. The lower end is then at most where effects begin.
    """
    if isinstance(law, LinearLaw):
        return ends
    low, high = ends
    some = {name: x[:: -(-len(x) // MAX_ROWS)] for name, x in columns.items()}
    model = law.model(law.columns(some))
    for i, p in enumerate(law.parameters):
        if p.scale == "log" and p.low < p.high:
            vectors = np.repeat(theta[None], STEPS, axis=0)
            vectors[:, i] = np.linspace(p.working(p.low), p.working(p.high), STEPS)
            with np.errstate(all="ignore"):  # at a bound a law may overflow
                prediction, _ = model.evaluate(vectors)
                effect = np.abs(prediction - prediction[-1]).max(axis=1)
            alike = effect <= max(0.01 * noise, 1e-9)
            edge = math.exp(vectors[np.flatnonzero(~alike).max(initial=0), i])
            if high[i] >= edge:
                low[i], high[i] = min(low[i], edge), np.inf
        if p.low < p.high and high[i] >= p.high - 1e-6 * abs(p.high):
            high[i] = np.inf
    return np.array([low, high])


def profile(
    fitted: Problem, solution: Solution, spec: Fit, progress: Progress
) -> dict[str, ProfileInterval]:
    """Returns the interval of each parameter of ``spec.profile``.

    An end is None where the likelihood does not fall far enough before the bound or within twenty
    standard errors.
    """
    law, theta = fitted.law, fitted.working(solution.phi)
    likelihood = dataclasses.replace(fitted.protocol, objective="absolute", sample=1)
    profiles = {}
    for done, name in enumerate(spec.profile):
        progress("profile", done + 1, len(spec.profile))
        place = law.names.index(name)
        task = problem(law, fitted.rows, likelihood, fitted.seed, last=place)
        profiles[name] = _profile(task, place, theta, solution, spec.level)
    return profiles


def _profile(
    task: Problem, place: int, theta: Array, solution: Solution, level: float
) -> ProfileInterval:
    """Returns the profile of the parameter at index ``place``, from the estimates ``theta``."""
    law, path = task.law, task.path()
    linear = isinstance(law, LinearLaw)
    axis = len(theta) - 1 if linear else place
    starts = task.coordinates(theta)[None] if linear else solution.ends
    centre = follow(path, starts, task.bounds)
    best = centre[np.argmin([_nll(task, phi) for phi in centre])]
    least = _nll(task, best)
    covariance = delta_method(task, path[-1], best, np.zeros(len(best), dtype=bool))
    variance = 0.0 if covariance is None else float(covariance[axis, axis])
    step = float(np.sqrt(variance)) or 0.1 * max(abs(float(best[axis])), 1.0)  # a standard error
    drop = float(gammaincinv(0.5, level))  # half a chi-squared quantile, of one degree of freedom

    def natural(phi: Array) -> float:
        return float(law.natural(task.working(phi))[place])

    edges, ways = [math.nan, math.nan], {}
    for reach in (3.0, 20.0):  # of both ways together, and then of those where it was too short
        lasts = np.clip(best[axis] + np.array([-reach, reach]) * step, *task.bounds[axis])
        values = np.linspace(best[axis], lasts, POINTS + 1)[1:].T  # one way and the other
        short = [i for i in range(2) if np.isnan(edges[i])]
        if not short:
            break
        optima = iter(_along(task, path, centre, axis, values[short].ravel()))
        for i in short:
            ways[i] = [next(optima) for _ in values[i]]
            rises = np.array([nll - least for _, nll in ways[i]])
            if (rises > drop).any():
                edges[i] = _crossing(float(best[axis]), values[i], rises, drop)
    along = np.arange(len(best)) == axis
    ends = [finite(natural(best + (edge - best[axis]) * along)) for edge in edges]
    curve = [(best, least), *ways[0], *ways[1]]
    curve.sort(key=lambda point: float(point[0][axis]))
    points = [[natural(phi), nll] for phi, nll in curve]
    if points[0][0] > points[-1][0]:  # a coordinate that runs the other way
        ends.reverse()
    return ProfileInterval(natural(best), ends[0], ends[1], points)


def _along(
    task: Problem, path: list[Objective], centre: Array, axis: int, values: Array
) -> list[tuple[Array, float]]:
    """Returns the likelihood's optima with the coordinate ``axis`` at each of ``values`` (K,)."""
    starts = np.repeat(centre[None], len(values), axis=0)  # (K, ends, P)
    starts[:, :, axis] = values[:, None]
    starts = starts.reshape(-1, centre.shape[1])
    bounds = np.broadcast_to(task.bounds, (*starts.shape, 2)).copy()
    bounds[:, axis] = starts[:, axis, None]
    ends = follow(path, starts, bounds)
    nll = np.array([_nll(task, phi) for phi in ends]).reshape(len(values), len(centre))
    ends = ends.reshape(len(values), len(centre), -1)
    return [(ends[k, i], float(nll[k, i])) for k, i in enumerate(nll.argmin(axis=1))]


def _crossing(centre: float, values: Array, rises: Array, drop: float) -> float:
    """Returns where the likelihood has fallen by ``drop``, between the points that bracket it.

    The square root of the fall is nearly linear in the parameter, so that it is interpolated.
    """
    k = int(np.argmax(rises > drop))
    inner, x = (0.0, centre) if k == 0 else (max(rises[k - 1], 0.0), float(values[k - 1]))
    return float(np.interp(np.sqrt(drop), np.sqrt([inner, rises[k]]), [x, values[k]]))


def _nll(task: Problem, phi: Array) -> float:
    residual = task.model.evaluate(phi[None])[0][0] - task.observed
    return sigma_huber(residual, DELTA, task.rows.weights)
