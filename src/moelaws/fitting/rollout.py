"""Roll-outs: fits to the rows up to a value of a column, and how they predict the rows above it.

A fit's interval knows the scatter of its rows. It does not know that the law itself may be wrong,
which shows where the law is extrapolated. So intervals beyond the fitted compute are calibrated on
a roll-out of the fit's own rows. Its errors grow about in proportion to the distance in decades of
compute, and the runs of a budget share them. Each round therefore counts once, by its error per
decade, and a later round counts more, since it is more like the extrapolation that is asked for.
Student's t for the effective number of rounds turns their root mean square into an interval. This
is split conformal prediction with a scale that grows with the distance, for rounds so few that
their quantiles must be modelled.

Laws are averaged by these errors: each one's logarithm of the loss counts by the inverse square of
its error per decade. The average errs in a round as its members do, weighted, so that its interval
is calibrated on the same rounds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from moelaws.fitting.caveats import require_identifiable
from moelaws.fitting.diagnostics import Calibration
from moelaws.fitting.prediction import Prediction, log_compute, reaches
from moelaws.fitting.problem import descend_all, follow, problem
from moelaws.fitting.report import GroupFit
from moelaws.fitting.rows import Rows
from moelaws.fitting.variables import Observations
from moelaws.laws.base import Array, Columns, FitProtocol, FittableLaw, Mask
from moelaws.spec.errors import UserError

ROWS_PER_PARAMETER, MAX_FITS = 2, 8  # the fewest rows of a round, and the most rounds
# Of a calibration: the fewest rounds, and the fewest budgets of a round's rows. One or two budgets
# hardly tell how a loss falls with compute, and rounds of them err wildly.
FEWEST, BUDGETS = 2, 3
GAP = 0.05  # decades of compute between budgets; rows less apart are of one
# A round of a calibration descends from so many starts, and from the estimates of the whole fit.
STARTS = 48
LEAST = 1e-6  # error per decade below which a law's weight does not grow

Progress = Callable[[str, int, int], None]  # stage, done, total


def within(progress: Progress, before: str, after: str = "") -> Progress:
    """Returns the progress of a part, whose stages are named with ``before`` and ``after``."""
    return lambda stage, done, total: progress(f"{before}{stage}{after}", done, total)


def _compute_powers(law: FittableLaw) -> dict[str, float]:
    """Returns the powers of variables whose product is compute, up to a factor; {} if unknown.

    Distances in decades do not depend on the factor, such as 6 or a constant sparsity.
    """
    names = {variable.name for variable in law.variables}
    if "C" in names:
        return {"C": 1.0}
    size = next((name for name in ("N_active", "N", "N_total", "M") if name in names), "")
    if not size or "D" not in names:
        return {}
    # A token passes 1 - S of all parameters.
    return {size: 1.0, "D": 1.0} | ({"S": 1.0} if size != "N_active" and "S" in names else {})


def calibrate(
    law: FittableLaw,
    rows: Rows,
    protocol: FitProtocol,
    seed: int,
    whole: GroupFit,
) -> Calibration | None:
    """Returns how far fits to the cheaper ``rows`` erred on the dearer ones.

    It is None where the law's variables do not give the compute, and of a law whose errors are not
    relative. Where fewer than two rounds have enough rows it has no rates, and is None unless the
    law is of losses. ``whole`` is the fit of all rows.
    """
    powers = _compute_powers(law)
    if not (powers and law.log_response):
        return None
    theta = law.vector(whole.estimates())
    compute = log_compute(powers, rows.columns)
    budget = budgets(compute)
    cuts = thresholds(budget)
    rates = []
    scatters = []
    for cut in cuts:
        fitted, held = _where(rows, budget <= cut), budget > cut
        few = len(fitted.response) < ROWS_PER_PARAMETER * law.n_free
        if few or len(np.unique(budget[~held])) < BUDGETS:
            continue
        try:
            require_identifiable(law, fitted.columns)
        except UserError:
            continue
        task = problem(law, fitted, replace(protocol, sample=STARTS), seed)
        starts, path = np.vstack([task.starts, task.coordinates(theta)]), task.path()
        ends, values = descend_all(path[:1], starts, task.bounds)  # a polish adds nothing here
        phi = follow(path, ends[[np.nanargmin(values)]], task.bounds)[0]
        own = dict(zip(law.names, law.natural(task.working(phi)), strict=True))
        above = _where(rows, held)
        with np.errstate(all="ignore"):
            error = law.on_scale(above.response) - law.on_scale(law.predict(own, above.columns))
        if not np.isfinite(error).all():
            continue
        # Rows of a continuous axis form blocks between the thresholds.
        block = np.searchsorted(cuts, budget[held])
        _, block, count = np.unique(block, return_inverse=True, return_counts=True)
        mean = np.bincount(block, error) / count
        distance = np.bincount(block, compute[held]) / count - compute[~held].max()
        rates.append(float(np.mean(mean / np.maximum(distance, GAP))))
        freedom = len(error) - len(count)
        scatters.append(float(((error - mean[block]) ** 2).sum() / freedom) if freedom else 0.0)
    if len(rates) < FEWEST:
        if law.response.name != "L":  # public runs say nothing of laws whose response is no loss
            return None
        rates, scatters = [], [(whole.residuals.sd or 0.0) ** 2]
    scatter = float(np.sqrt(np.mean(scatters[-2:])))
    return Calibration(powers, float(compute.max()), rates, scatter)


def budgets(compute: Array) -> Array:
    """Returns the number of each row's budget, counted from the least; ``compute`` is log10, (n,).

    Where rows lie so close that gaps separate none, a budget is every so many decades.
    """
    order = np.argsort(compute)
    budget = np.zeros(len(order))
    budget[order[1:]] = np.cumsum(np.diff(compute[order]) > GAP)
    return budget if budget.max() >= BUDGETS else np.round(compute / GAP)


def _where(rows: Rows, mask: Mask) -> Observations:
    weights = None if rows.weights is None else rows.weights[mask] / rows.weights[mask].mean()
    columns = {name: x[mask] for name, x in rows.columns.items()}
    return Observations(columns=columns, response=rows.response[mask], weights=weights)


def thresholds(values: Array) -> list[float]:
    """Returns where a roll-out cuts: at eight quantiles, or at fewer values without the largest.

    The ``values`` are finite.
    """
    below = np.unique(values)[:-1]
    if len(below) > MAX_FITS:
        levels = np.arange(1, MAX_FITS + 1) / (MAX_FITS + 1)
        chosen = np.quantile(values, levels, method="lower")
        below = np.intersect1d(chosen, below)
    return [float(value) for value in below]


@dataclass(frozen=True)
class Average:
    """Fitted laws of one response with their weights, which sum to 1."""

    laws: Sequence[FittableLaw]
    fits: Sequence[GroupFit]
    weights: Sequence[float]
    calibration: Calibration

    @classmethod
    def of(cls, laws: Sequence[FittableLaw], fits: Sequence[GroupFit]) -> "Average":
        """Returns the average of ``laws``, whose ``fits`` are all calibrated."""
        calibrations = [fit.calibration for fit in fits if fit.calibration]
        raw = np.array([max(own.per_decade, LEAST) ** -2 for own in calibrations])
        weights = (raw / raw.sum()).tolist()
        # A law of more parameters has fewer rounds, which are the later ones.
        rounds = min(len(own.rates) for own in calibrations)
        rates = np.array(weights) @ [own.rates[-rounds:] for own in calibrations]
        scatter = max(own.scatter for own in calibrations)
        own = replace(calibrations[0], rates=rates.tolist(), scatter=scatter)
        return cls(laws, fits, weights, own)

    def predict(self, columns: Sequence[Columns], level: float) -> Prediction:
        """Returns the average at rows (n,), given as each member's variables.

        Up to the fitted compute the intervals are NaN: an average of laws tells nothing new there.
        """
        each = [
            law.on_scale(law.predict(fit.estimates(), own))
            for law, fit, own in zip(self.laws, self.fits, columns, strict=True)
        ]
        centre = np.array(self.weights) @ each
        ends = []
        for reach in reaches(self.calibration, columns[0], level):
            ends += [np.exp(centre - reach), np.exp(centre + reach)]
        return Prediction(np.exp(centre), *ends)
