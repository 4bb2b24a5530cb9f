"""A fitted law at query points: its intervals there, and whether fitted rows surround them.

Each variable is taken on the scale on which laws see it: ln of a positive quantity, -ln(1 - S) of a
sparsity S. The support is the convex hull of the fitted rows. It is kept as half-spaces, so that a
prediction needs NumPy alone and is quick.

Beyond the fitted compute the intervals are those that a roll-out calibrates (``fitting.rollout``),
where these are the wider ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moelaws.fitting.diagnostics import Calibration, Support
from moelaws.fitting.quantiles import percentiles, stretched, t_interval
from moelaws.fitting.report import GroupFit
from moelaws.laws.base import SPARSITY, Array, Columns, FittableLaw, Law, Mask, Variable


@dataclass(frozen=True)
class Prediction:
    """The response at query points, arrays of shape (n,) in its natural unit.

    ``low`` and ``high`` bound the mean (the law's value with other data of the same kind);
    ``new_low`` and ``new_high`` one new observation. NaN where nothing is known of the error.
    """

    value: Array
    low: Array
    high: Array
    new_low: Array
    new_high: Array

    def holds(self, observed: Array) -> dict[str, float | None]:
        """Returns, as ``inside``, the fraction of new observations (n,) that the intervals hold."""
        known = np.isfinite(self.new_low) & np.isfinite(self.new_high)
        held = (self.new_low <= observed) & (observed <= self.new_high)
        return {"inside": float(held[known].mean()) if known.any() else None}


def predict(
    law: FittableLaw, fitted: GroupFit, draws: Array, columns: Mapping[str, Any], level: float
) -> Prediction:
    """Evaluates the fitted law at ``columns`` (numbers or arrays of one shape (n,)).

    ``draws`` (B, P) are those of ``fitted``, natural scale; ``level`` is that of the intervals.
    """
    flat = {name: np.atleast_1d(x) for name, x in law.columns(columns).items()}
    value = law.predict(fitted.estimates(), flat)
    nothing = np.full(value.shape, np.nan)
    if not len(draws) or fitted.intervals.startswith("none"):
        return Prediction(value, nothing, nothing, nothing, nothing)
    mean_Bn = law.on_scale(of_draws(law, fitted, draws, flat))
    new: Any = (nothing, nothing)
    if (errors := fitted.residuals.quantiles) is not None:
        pooled = (np.add.outer(column, errors).ravel() for column in mean_Bn.T)
        new = np.array([percentiles(pool, level) for pool in pooled]).T
    ends = [*percentiles(mean_Bn, level), *new]
    if fitted.calibration:
        centre = law.on_scale(value)
        for k, reach in enumerate(reaches(fitted.calibration, flat, level)):
            ends[2 * k] = np.fmin(ends[2 * k], centre - reach)
            ends[2 * k + 1] = np.fmax(ends[2 * k + 1], centre + reach)
    return Prediction(value, *map(law.off_scale, ends))


def log_compute(powers: Mapping[str, float], columns: Columns) -> Array:
    """Returns log10 of the compute of rows (n,), up to a constant, by the variables' ``powers``.

    The power of a sparsity S is that of 1 - S.
    """
    values = {name: 1 - columns[name] if name == "S" else columns[name] for name in powers}
    return np.asarray(np.sum([powers[name] * np.log10(x) for name, x in values.items()], axis=0))


def reaches(own: Calibration, columns: Columns, level: float) -> tuple[Array, Array]:
    """Returns how far the mean and a new observation may lie from the law, on its scale, (n,) each.

    Both are NaN up to the fitted compute.
    """
    beyond = log_compute(own.powers, columns) - own.largest
    decades = np.where(beyond > 0, beyond, np.nan)
    _, quantile = t_interval(0.0, 1.0, own.freedom, level)
    _, normal = t_interval(0.0, 1.0, 1e9, level)
    mean = quantile * own.per_decade * decades
    return mean, np.hypot(mean, normal * own.scatter)


def vectors(law: FittableLaw, draws: Array) -> Array:
    """Returns draws (B, P), natural scale, on the working scale; there may be none."""
    rows = [law.vector(dict(zip(law.names, row, strict=True))) for row in draws]
    return np.reshape(rows, draws.shape)


def of_draws(law: FittableLaw, fitted: GroupFit, draws: Array, columns: Columns) -> Array:
    """Returns the predictions (B, n) of draws (B, P), natural scale, at ``columns`` (n,).

    Draws of Student's t know the slopes at the estimates alone. So do their predictions, which
    would otherwise be skewed towards where the law bends.
    """
    theta = vectors(law, draws)
    if not fitted.intervals.startswith("Student"):
        value = law.predict(fitted.estimates(), columns)
        stretch = fitted.diagnostics.draws.stretch
        return stretched(law.predict_batch(theta, columns), value, stretch)
    centre, model = law.vector(fitted.estimates()), law.model(law.columns(columns))
    value, state = model.evaluate(centre[None])
    return law.off_scale(value + (theta - centre) @ model.jacobian(state)[0])


# Measured by refits to the smaller budgets of public tables, which predicted the larger ones.
OF_THE_LAW_ALONE = (
    "beyond the fitted rows an interval is that of the fitted law alone: in roll-outs of six "
    "public isoFLOP sets to budgets 1.7 to 5 times larger, 90 % intervals held 53 % of new losses"
)


def beyond_the_rows(fitted: GroupFit) -> str:
    """Returns how far to trust the fit's intervals beyond its rows."""
    if not (own := fitted.calibration):
        return OF_THE_LAW_ALONE
    if not own.has_rounds:
        return (
            "these rows have too few budgets to calibrate intervals beyond the fitted compute, "
            "which rest on fits to few budgets of public runs: these erred by "
            f"{100 * own.per_decade:.2g} % a decade"
        )
    text = (
        f"beyond the fitted compute intervals are calibrated on {len(own.rates)} fits to the "
        f"cheaper rows, which erred by {100 * own.per_decade:.2g} % a decade"
    )
    if fitted.hull is None or {*fitted.hull.ranges} != {"N", "D"}:
        return text
    return f"{text}; `moelaws compare TABLE --laws average` averages three laws there"


# The hull is widened by this part of each variable's range, so that its own corners are inside.
SLACK = 1e-6
MAX_HALF_SPACES = 2000  # A hull of more half-spaces than this is kept as the box of its ranges


def support_of(law: Law, columns: Columns) -> Support:
    """Returns the hull of rows ``columns`` (n,), or the box of their ranges if there is no hull."""
    from scipy.spatial import ConvexHull, QhullError

    ranges = {
        v.name: [float(columns[v.name].min()), float(columns[v.name].max())] for v in law.variables
    }
    x, vary = _scaled(law, ranges, columns)
    x, names = x[:, vary], [v.name for v, varies in zip(law.variables, vary, strict=True) if varies]
    box = Support(ranges, names)
    if len(names) < 2:
        return box
    # Rows of one budget, say, lie in a plane, and have a hull only within it.
    centre = x.mean(axis=0)
    _, s, axes = np.linalg.svd(np.linalg.qr(x - centre, mode="r"), full_matrices=True)
    rank = int((s > 1e-6 * s[0]).sum())
    inner = (x - centre) @ axes[:rank].T
    if rank > 1:
        try:
            equations = ConvexHull(inner).equations
        except QhullError:
            return box
    else:
        equations = np.array([[1.0, -inner.max()], [-1.0, inner.min()]])
    if len(equations) > MAX_HALF_SPACES:
        return box
    flat, outward = axes[rank:], equations[:, :-1] @ axes[:rank]
    ends = (flat @ centre, -flat @ centre, outward @ centre - equations[:, -1])
    normals, offsets = np.concatenate([flat, -flat, outward]), np.concatenate(ends)
    return replace(box, normals=normals.tolist(), offsets=offsets.tolist())


def outside(law: Law, support: Support, columns: Columns) -> Mask:
    """Returns which query points (n,) lie outside the support."""
    x, vary = _scaled(law, support.ranges, columns)
    beyond = np.asarray(((x < -SLACK) | (x > vary + SLACK)).any(axis=1))
    if support.normals:
        names = [v.name for v in law.variables]
        inside_of = x[:, [names.index(name) for name in support.variables]]
        excess = inside_of @ np.array(support.normals).T - np.array(support.offsets)
        beyond = beyond | (excess > SLACK).any(axis=1)
    return beyond


def product_range(law: Law, support: Support, powers: Mapping[str, float]) -> tuple[float, float]:
    """Returns the least and the largest product of ``powers`` of variables over the support.

    The variables are positive; for a sparsity S the power is of 1 / (1 - S).
    """
    from scipy.optimize import linprog

    ends = {
        v.name: _own_scale(v, np.array(support.ranges[v.name]))
        for v in law.variables
        if v.name in powers
    }
    weights = [powers[n] * np.ptp(ends[n]) if n in ends else 0.0 for n in support.variables]
    inside = {"A_ub": support.normals, "b_ub": support.offsets} if support.normals else {}
    low, high = (sign * linprog(sign * np.array(weights), **inside, bounds=(0, 1)).fun
                 for sign in (1.0, -1.0))  # fmt: skip
    least = sum(power * ends[name][0] for name, power in powers.items())
    return float(np.exp(least + low)), float(np.exp(least + high))


def beyond_ranges(support: Support, values: Mapping[str, float]) -> list[str]:
    """Returns sentences on the variables of one query that lie outside the rows' range."""
    return [
        f"{name} = {values[name]:.6g} is outside the {low:.6g} to {high:.6g} of the fitted rows"
        for name, (low, high) in support.ranges.items()
        if name in values and not low - 1e-9 * abs(low) <= values[name] <= high + 1e-9 * abs(high)
    ]


def _scaled(law: Law, ranges: Mapping[str, list[float]], columns: Columns) -> tuple[Array, Mask]:
    """Returns the columns (n, V), scaled from 0 to 1 over their ranges, and which of them vary."""
    scaled, vary = [], []
    for variable in law.variables:
        low, high = _own_scale(variable, np.array(ranges[variable.name]))
        x = _own_scale(variable, np.atleast_1d(columns[variable.name]))
        varies = bool(high - low > 1e-12 * max(abs(low), abs(high), 1.0))
        scaled.append((x - low) / (high - low) if varies else (x - low))
        vary.append(varies)
    return np.stack(np.broadcast_arrays(*scaled), axis=1), np.array(vary)


def _own_scale(variable: Variable, values: Array) -> Array:
    if variable.domain is SPARSITY:
        return -np.log1p(-values)
    if variable.domain.holds(np.zeros(1))[0]:
        return values
    return np.log(values)
