"""What the known runs leave open of a law: draws of its parameters, also before the first run.

A draw is a fit to the known losses with new noise, to what its parameters are expected to be before
any run, and to what losses are expected at some of the points asked about: the same within a factor
e^SPREAD. These weak rows hold the draws where the known runs leave a direction open. In a linear
law such draws are those of the posterior (randomize, then optimize: Bardsley et al., 2014).

Arrays: B draws, n rows, P parameters; all on the law's own scale, such as ln L.
"""

from dataclasses import dataclass

import numpy as np

from moelaws.fitting.descent import descend, far_apart, from_best
from moelaws.fitting.objective import Objective
from moelaws.fitting.priors import WithPriors
from moelaws.laws.base import Array, Columns, FittableLaw
from moelaws.laws.vocabulary import MAX_LOSS

SPREAD = 0.5  # the standard deviation of ln L that is expected at a point before any run is known
# How far losses may lie from a law that is right at the target, for a decade less cost
LEAST_RATE, MOST_RATE = 0.005, 1.0
STARTS, ENDS = 64, 4  # descents that look for optima, and optima from which draws start
# Steps of a descent, and how far above the best end, in chi squared, an end may lie to be a start.
STEPS, NEAR = 60, 20.0


@dataclass(frozen=True)
class Known:
    """A law's view of the runs that are known, and its weak expectations of the others."""

    law: FittableLaw
    rows: Columns  # variable -> (n,)
    observed: Array  # (n,) on the law's scale
    decades: Array  # (n,) of the cost of these runs, away from that of the target
    open: Columns  # variable -> (m,): the points asked about, at which losses are plausible


@dataclass(frozen=True)
class Posterior:
    """Draws (B, P) of a law's parameters, its error beside the known runs, and its support."""

    draws: Array
    noise: float  # how far a run scatters about the law, as the residuals say
    rate: float  # how far runs lie from the law that holds at the target, a decade of cost away
    evidence: float  # ln of the law's likelihood, up to a constant that all laws share


def posterior(known: Known, noise: float, draws: int, seed: int) -> Posterior:
    """Returns ``draws`` of a law's parameters beside the known runs.

    ``noise`` is the standard deviation between trainings of one run, on the law's scale, or what
    known runs say of it that are the same to the law. Where the residuals are larger, they say how
    far new runs lie from the law.
    """
    law, n = known.law, len(known.observed)
    mean, sd = _expected(law)
    centre = float(known.observed.mean()) if n else np.log(MAX_LOSS) / 2
    some = _spread_out(known.open, 2 * len(mean) + 2)
    columns = {name: np.append(known.rows[name], known.open[name][some]) for name in known.open}
    model = WithPriors(law.model(columns), np.arange(len(mean)), 1 / sd)
    observed = np.concatenate([known.observed, np.full(len(some), centre), mean / sd])
    noise = max(noise, _scatter(known))
    rng, error = np.random.default_rng(seed), (noise, LEAST_RATE)
    starts = np.clip(mean + sd * rng.standard_normal((STARTS, len(mean))), *law.bounds.T)

    def objective(copies: int, error: tuple[float, float]) -> Objective:
        """Returns chi squared; with copies, of rows that are drawn anew for each."""
        own = np.hypot(error[0], error[1] * known.decades)
        errors = np.concatenate([own, np.full(len(some), SPREAD), np.ones(len(mean))])
        weights, rows = errors**-2, observed
        if copies:
            rows = observed + errors * rng.standard_normal((copies, len(errors)))
            weights = np.tile(weights, (copies, 1))
        return Objective(model, rows, np.inf, weights, unit=2.0)

    for _ in range(3):  # each time by the rate that the one before found
        ends, values = descend(objective(0, error), starts, law.bounds, STEPS, newton=False)
        starts, values = far_apart(ends, values)
        starts = starts[values < values[0] + NEAR][:ENDS]
        squares = (model.evaluate(starts[:1])[0][0][:n] - known.observed) ** 2
        error = _error(squares, known.decades, noise, n - law.n_free)
    drawn = objective(draws, error)
    theta = from_best(drawn, starts, law.bounds, newton=False)
    theta, _ = descend(drawn, theta, law.bounds, STEPS, newton=False)
    variance = error[0] ** 2 + (error[1] * known.decades) ** 2
    evidence = -0.5 * (np.log(variance) + squares / variance).sum()
    evidence -= 0.5 * law.n_free * np.log(max(n, 1))
    return Posterior(theta, *error, float(evidence))


def _scatter(known: Known) -> float:
    """Returns the standard deviation between known runs that are the same to the law, or 0."""
    rows = np.array([known.rows[name] for name in known.open]).T
    _, own, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    apart = known.observed - (np.bincount(own, known.observed) / counts)[own]
    return float(np.sqrt((apart**2).sum() / max(len(rows) - len(counts), 1)))


def _error(squares: Array, decades: Array, noise: float, freedom: int) -> tuple[float, float]:
    """Returns the noise and the rate that make squared residuals (n,) most likely."""
    if freedom < 1:
        return noise, LEAST_RATE
    squares = squares * len(squares) / freedom
    noises = np.geomspace(noise, max(noise, MOST_RATE), 40)[:, None, None]
    rates = np.geomspace(LEAST_RATE, MOST_RATE, 40)[:, None]
    variance = noises**2 + (rates * decades) ** 2
    unlikely = (np.log(variance) + squares / variance).sum(axis=-1)
    i, j = np.unravel_index(np.argmin(unlikely), unlikely.shape)
    return float(noises[i, 0, 0]), float(rates[j, 0])


def _expected(law: FittableLaw) -> tuple[Array, Array]:
    """Returns what parameters (P,) are before any run, and how far off: their fits' starts."""
    known = []
    for p, (low, high) in zip(law.parameters, law.bounds, strict=True):
        starts = law.protocol.grid.get(p.name) or (0.0,)
        middle, reach = (max(starts) + min(starts)) / 2, (max(starts) - min(starts)) / 2
        known.append(p.prior or (np.clip(middle, low, high), reach or 1.0))
    mean, sd = np.array(known).T
    return mean, sd


def _spread_out(columns: Columns, count: int) -> Array:
    """Returns the numbers of up to ``count`` rows that lie far from each other, by logarithms."""
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.array([np.where(v > 0, np.log(v), v) for v in columns.values()]).T
    x = (x - x.mean(axis=0)) / np.where(np.ptp(x, axis=0) > 0, np.ptp(x, axis=0), 1.0)
    chosen = [int(np.argmax((x**2).sum(axis=1)))]
    distance = ((x - x[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < count and distance.max() > 0:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, ((x - x[chosen[-1]]) ** 2).sum(axis=1))
    return np.array(chosen)
