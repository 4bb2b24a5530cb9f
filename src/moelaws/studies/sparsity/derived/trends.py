"""How the isoFLOP surfaces' optima move with sparsity, size and budget: slopes with intervals.

The sparsity paper reads these trends off its figures (sec 2, 3, D.1, D.2). Here each is a slope
over the optima that lie inside what was measured, with an interval from the surfaces' draws.
Sparsity enters as v = -ln(1 - S): where v rises by one, 1/(1 - S) grows by a factor of e.

Beside each stands the same slope of its null, and what is left beyond that. At a fixed width a
sparser model has more parameters, whatever they do to its loss. So the best total size rises with
sparsity even where sparsity does nothing, and a slope tells of an effect only beside the slope of
such a null, taken from the same grid by the same surfaces. Both nulls here say which losses the
runs would have if the effect were not there; surfaces are then fitted to those.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Row, Rows, table
from moelaws.analysis.effect import Effect
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array
from moelaws.analysis.regression import indicators, of_draws, slope_weights
from moelaws.studies.sparsity.derived.optima import SIZES
from moelaws.studies.sparsity.derived.surface import Surface, surfaces
from moelaws.tables.column import COVERAGE, NOTE, Column, estimated

MIN_OPTIMA = 3  # that determine a slope
SURE = 0.95
MEAN = "mean"
# 5e8 parameters over the best dense size by Eq 6, of which three of the paper's six budgets have
# more: up to there dense models are the best ones "for most compute budgets" (D.2)
SMALL = 0.78
EXPONENTS = np.linspace(0.1, 1.2, 23)  # of sizes and tokens in Chinchilla's law, to try

UNITS = {
    "N_over_S": "ln N* per e-fold of 1/(1-S)",
    "N_active_over_S": "ln N_a* per e-fold of 1/(1-S)",
    "L_over_S": "nats/token of L* per e-fold of 1/(1-S)",
    "S_over_N": "e-folds of 1/(1-S*) per e-fold of N",
    "S_of_small": f"e-folds of 1/(1-S*) at {SMALL} times the best dense size",
    "S_over_C": "e-folds of 1/(1-S*) per e-fold of C",
    "N_active_over_C": "e-folds of N_a* per e-fold of C",
    "N_active_over_S_over_C": "change of the slope of ln N_a* over S per e-fold of C",
    "L_over_S_over_C": "of the mean slope of L* over S per e-fold of C",
}


class Slope(NamedTuple):
    """A slope by the estimates and by each draw, (1 + B,); or NaN and a note why it is missing."""

    at: str
    n: int
    values: Array = np.full(1, np.nan)
    note: str = ""


Pair = tuple[Slope, Slope]  # a slope, and that of its null


@table(
    Column("trend", "string", "what moves with what, such as N_over_S"),
    Column("at", "string", "the budgets or the sparsity at which; mean: over all of these"),
    *estimated("slope", "in the unit that stands in `unit`", "1", ""),
    *estimated("null", "slope of these runs if the effect were not there", "1", "null"),
    *estimated("beyond", "slope less null, paired", "1", "beyond"),
    Column("unit", "string", "of the slopes and their ends"),
    COVERAGE,
    Column("n", "int", "optima that the slope is drawn through; of a mean, its slopes"),
    NOTE,
    told={"note != ''": "{trend}, {at}: {note}"},
)
def derive(inputs: FittedInputs) -> Rows:
    """Returns the slopes of the fits ``isoflop_total`` and ``isoflop_active``."""
    total, active = (list(surfaces(inputs, f"isoflop_{size}")) for size in ("total", "active"))
    return beside_nulls(total, active, inputs.fit("isoflop_total").level)


def trends(total: Sequence[Surface], active: Sequence[Surface]) -> dict[str, list[Slope]]:
    """Returns each trend's slopes, by the surfaces over total and over active size."""
    return {
        "N_over_S": [over_sparsity(s, "x") for s in total],
        "N_active_over_S": [over_sparsity(s, "x") for s in active],
        "L_over_S": [over_sparsity(s, "y") for s in total],
        "S_over_N": [sparsity_over_size(s) for s in total],
        "S_of_small": [sparsity_of_small(s) for s in total],
        "S_over_C": [sparsity_over_budget(*pair) for pair in pairwise(total)],
        "N_active_over_C": list(sizes_over_budget(active)),
    }


def beside_nulls(total: Sequence[Surface], active: Sequence[Surface], level: float) -> list[Row]:
    """Returns the table's rows: each trend's slopes and their means, beside those of the null.

    The null of ``N_active_over_C`` has one best active size at all budgets. In that of the other
    trends active parameters and tokens alone set the loss.
    """
    known = _pairs(total, active)
    moved = _pairs(without_each(total), without_each(active))
    return [
        _record(trend, *pair, alone, level)
        for trend, pairs in known.items()
        for pair, alone in zip(pairs, moved[trend], strict=True)
    ]


def _pairs(total: Sequence[Surface], active: Sequence[Surface]) -> dict[str, list[Pair]]:
    """Returns each trend's slopes with those of its null, and the means of both."""
    own = trends(total, active)
    nulls = trends(without_sparsity(total), without_sparsity(active))
    nulls["N_active_over_C"] = list(sizes_over_budget(without_budget(active)))
    pairs = {trend: with_means(slopes, nulls[trend]) for trend, slopes in own.items()}
    # No null is compared: where sparsity does nothing, the mean and so the interval tell nothing.
    change = slope_over_budget(total, own["L_over_S"])
    if not change.note:  # draws of both are of the same surfaces, so of equal number
        average = mean([slope for slope in own["L_over_S"] if not slope.note])
        change = change._replace(values=change.values / average.values)
    pairs["L_over_S_over_C"] = [(change, Slope("", 0))]
    over, null = (slope_over_budget(active, each["N_active_over_S"]) for each in (own, nulls))
    pairs["N_active_over_S_over_C"] = [(over, null)]
    return pairs


def without_each(surfaces: Sequence[Surface]) -> list[Surface]:
    """Returns the surfaces, of which each draw leaves out one of all runs."""
    ends = np.cumsum([0, *(len(surface.rows) for surface in surfaces)]).tolist()
    return [
        surface.without_each(first, ends[-1])
        for surface, first in zip(surfaces, ends, strict=False)
    ]


def over_sparsity(surface: Surface, coordinate: Literal["x", "y"]) -> Slope:
    """Returns the slope over v of the optima's ln N (``x``) or loss (``y``) at one budget."""
    sparsities = surface.measured["S"]
    optima = {-np.log1p(-S): size_optimum(surface, S, coordinate) for S in sparsities}
    return _through(f"C={surface.C:.3g}", optima, "sparsities")


def sizes_over_budget(budgets: Sequence[Surface]) -> Iterator[Slope]:
    """Yields the slope over ln C of the optima's ln N at each sparsity.

    Sizes are chosen to grow with the budget, so that an optimum which noise alone moves inside
    would grow with it. So only optima count that ``SURE`` of the draws have inside.
    """
    for S in sorted({float(S) for s in budgets for S in s.rows["S"]}):
        optima = {
            np.log(s.C): size_optimum(s, S, "x")
            for s in budgets
            if (known := s.size_minimum(S)) and np.mean(known.inside[1:]) >= SURE
        }
        yield _through(f"S={S:.4g}", optima, "budgets", least=2)


def sparsity_over_size(surface: Surface) -> Slope:
    """Returns the slope over ln N of v* at one budget, through optima inside and near runs."""
    optima = _sparsity_optima(surface, _sizes([surface]))
    return _through(f"C={surface.C:.3g}", optima, f"of {SIZES} sizes")


def sparsity_of_small(surface: Surface) -> Slope:
    """Returns v* at ``SMALL`` times the best dense size; no slope, but compared as one."""
    where = f"C={surface.C:.3g}"
    size = size_optimum(surface, float(surface.rows["S"].min()), "x")
    if size is None or surface.one_sparsity:
        return Slope(where, 0, note="the densest models have no optimum inside what was measured")
    (best,) = surface.sparsity_minima(size[0] + np.log(SMALL))
    return Slope(where, 1, best.x)


def sparsity_over_budget(lower: Surface, upper: Surface) -> Slope:
    """Returns the change of v* over that of ln C, averaged over the sizes with both optima."""
    where = f"C={lower.C:.3g} to {upper.C:.3g}"
    sizes = _sizes([lower, upper])
    below, above = (_sparsity_optima(surface, sizes) for surface in (lower, upper))
    shared = sorted(set(below) & set(above))
    if len(shared) < MIN_OPTIMA:
        return Slope(where, len(shared), note=_few(len(shared), "sizes shared by both budgets"))
    both = _shared_draws(optima[u] for optima in (below, above) for u in shared)
    move = np.subtract(*np.split(both, 2)).mean(axis=0)
    return Slope(where, len(shared), -move / np.log(upper.C / lower.C))


def slope_over_budget(surfaces: Sequence[Surface], slopes: Sequence[Slope]) -> Slope:
    """Returns the slope over ln C of the ``slopes`` of the budgets."""
    known = {
        np.log(s.C): None if slope.note else slope.values
        for s, slope in zip(surfaces, slopes, strict=True)
    }
    return _through(MEAN, known, "budgets")


def with_means(slopes: Sequence[Slope], nulls: Sequence[Slope]) -> list[Pair]:
    """Returns the slopes with their nulls, and the means of those that have both."""
    pairs = list(zip(slopes, nulls, strict=True))
    both = [pair for pair in pairs if not any(slope.note for slope in pair)]
    own, null = (mean([pair[k] for pair in both]) for k in (0, 1))
    return [*pairs, (own, null)]


def mean(slopes: Sequence[Slope]) -> Slope:
    """Returns the mean of the slopes, whose draws are independent."""
    if not slopes:
        return Slope(MEAN, 0, note="no slope to average")
    values = _shared_draws(slope.values for slope in slopes)
    return Slope(MEAN, len(slopes), values.mean(axis=0))


def size_optimum(surface: Surface, S: float, coordinate: Literal["x", "y"]) -> Array | None:
    """Returns ln N (``x``) or the loss (``y``) of the minima over the sizes measured at ``S``.

    It is None where the minimum is not inside or fewer than three sizes were measured.
    """
    minima = surface.size_minimum(S)
    return getattr(minima, coordinate) if minima and minima.inside[0] else None


def _sizes(surfaces: Sequence[Surface]) -> Array:
    """Returns ln of ``SIZES`` sizes that span the range measured in all of the ``surfaces``."""
    low = max(float(np.log(s.rows[s.size].min())) for s in surfaces)
    high = min(float(np.log(s.rows[s.size].max())) for s in surfaces)
    return np.linspace(low, high, SIZES) if low < high else np.empty(0)


def _sparsity_optima(surface: Surface, sizes: Array) -> dict[float, Array]:
    """Maps ln N to v* for those ``sizes`` where v* is a minimum inside the grid and near runs."""
    if surface.one_sparsity or not len(sizes):
        return {}
    return {
        float(u): best.x
        for u, best in zip(sizes, surface.sparsity_minima(sizes), strict=True)
        if best.inside[0] and surface.near_runs(float(u), float(best.x[0]))
    }


def _through(
    where: str, optima: Mapping[float, Array | None], what: str, least: int = MIN_OPTIMA
) -> Slope:
    """Returns the least-squares slope of the ``optima`` over their keys, and of each draw."""
    inside = {x: optimum for x, optimum in optima.items() if optimum is not None}
    if len(inside) < least:
        return Slope(where, len(inside), note=_few(len(inside), what))
    weights = slope_weights(np.array(list(inside)))
    return Slope(where, len(inside), weights @ _shared_draws(inside.values()))


def _shared_draws(numbers: Iterable[Array]) -> Array:
    """Returns n numbers with as many draws as all of them have, (n, 1 + B)."""
    rows = list(numbers)
    return np.array([values[: min(map(len, rows))] for values in rows])


def _few(n: int, what: str) -> str:
    return f"too few {what} have an optimum inside what was measured: {n}"


def _record(trend: str, own: Slope, null: Slope, without: Pair, level: float) -> Row:
    compared = {
        "slope": (own.values, without[0].values),
        "null": (null.values, without[1].values),
        "beyond": (_less(own, null), _less(*without)),
    }
    return {
        "trend": trend,
        "at": own.at,
        **{name: _estimate(*values, level) for name, values in compared.items()},
        "unit": UNITS[trend],
        "level": level,
        "n": own.n,
        "note": own.note or (null.note and f"of the null, {null.note}"),
    }


def _less(own: Slope, null: Slope) -> Array:
    return np.asarray(np.subtract(*_shared_draws((own.values, null.values))))


def _estimate(values: Array, without: Array, level: float) -> Effect:
    """Returns the first of ``values`` with an interval that no single run decides.

    It is that of the draws, moved outwards by as much as it would move ``without`` the run that
    moves it most.
    """
    effect = of_draws(values, level=level)
    moves = np.append(without[1:] - without[0], 0.0)
    low, high = effect.low + np.nanmin(moves), effect.high + np.nanmax(moves)
    return replace(effect, low=float(low), high=float(high))


def without_sparsity(surfaces: Sequence[Surface]) -> list[Surface]:
    """Returns the surfaces of a null in which active parameters and tokens alone set the loss.

    Chinchilla's law is fitted to the runs of all budgets and sparsities; its losses replace
    theirs. Active parameters include routers: these grow with sparsity, and a model is better by
    them even if its experts do nothing.
    """
    if not surfaces:
        return []
    rows, L = pd.concat([surface.rows for surface in surfaces]), _losses(surfaces)
    N, D = (rows[name] / rows[name].median() for name in ("N_active", "D"))
    # Linear for given exponents, of which the best ones by the losses are those of all draws
    powers = (own.to_numpy()[:, None] ** -EXPONENTS for own in (N, D))
    forms = [
        np.column_stack([np.ones(len(L[0])), *terms]) for terms in product(*(p.T for p in powers))
    ]
    # A fit is a projection, and the best one leaves the most of the losses
    bases, _ = np.linalg.qr(np.array(forms))
    best = bases[np.linalg.norm(L[0] @ bases, axis=1).argmax()]
    return _surfaces(surfaces, L @ best @ best.T)


def without_budget(surfaces: Sequence[Surface]) -> list[Surface]:
    """Returns the surfaces of a null in which one active size is best at all budgets.

    Each budget has a parabola in the logarithm of the FLOPs per token (Eq 9), and all have the same
    curvature. Its losses replace the runs', after all vertices were moved to their mean.
    """
    if not surfaces:
        return []
    w = _log_flops(surfaces)
    at_nG = indicators(np.repeat(np.arange(len(surfaces)), [len(s.rows) for s in surfaces]))
    W = np.column_stack([w**2, at_nG * w[:, None], at_nG])
    curvature, *slopes = (_losses(surfaces) @ np.linalg.pinv(W).T).T[: 1 + len(surfaces)]
    vertex = np.mean([-slope / (2 * curvature) for slope in slopes], axis=0)
    return _surfaces(surfaces, curvature[:, None] * (w - vertex[:, None]) ** 2)


def _losses(surfaces: Sequence[Surface]) -> Array:
    """Returns the losses of all runs, and below them each draw of the surfaces (1 + B, n).

    A draw adds to a run's loss what its surface moves by in that draw.
    """
    blocks = []
    for surface in surfaces:
        drawn = surface.losses(**surface.columns)
        blocks.append(surface.rows["L"].to_numpy(float) + drawn - drawn[0])
    B = min(map(len, blocks))
    return np.concatenate([block[:B] for block in blocks], axis=1)


def _surfaces(surfaces: Sequence[Surface], losses: Array) -> list[Surface]:
    """Returns the surfaces of other ``losses`` (1 + B, n) of their runs.

    Draw b of a null follows from draw b of the surfaces, so the difference of both is paired.
    """
    ends = np.cumsum([len(surface.rows) for surface in surfaces])[:-1]
    each = np.split(losses, ends, axis=1)
    return [surface.refitted(own) for surface, own in zip(surfaces, each, strict=True)]


def _log_flops(surfaces: Sequence[Surface]) -> Array:
    """Returns ln of the FLOPs per token of all runs (n,), less its mean."""
    w = np.concatenate([np.log(s.rows["C_sparsity"] / s.rows["D"]) for s in surfaces])
    return np.asarray(w - w.mean())
