"""IsoFLOP optima: the size of least loss for each budget C and sparsity S, and S* at a fixed size.

Optimal sizes come from two methods that share nothing but the data: the surface fitted to all
sparsities of a budget (Eq 8, sparsity), and a parabola in ln N for each (C, S) alone (D.4). The
optimal sparsity at a fixed size and budget is that of the surface (Eq 4).
"""

from collections.abc import Iterator

import numpy as np

from moelaws.analysis.contrasts import BY_SEEDS, contrast_errors
from moelaws.analysis.derive import Row, Rows, of_runs, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import at
from moelaws.analysis.minimum import TOO_FEW, Array, Minima, parabola_minima
from moelaws.analysis.regression import of_draws
from moelaws.studies.sparsity.derived.surface import WHICH, Surface, surfaces
from moelaws.tables.column import COVERAGE, INSIDE, NOTE, RUNS, Column, estimated

SIZES = 41  # for each budget, enough for a smooth line
UNMEASURED = "no run near: outside the sizes measured at this sparsity"


@table(
    *of_runs("C", "S"),
    WHICH,
    Column("method", "string", "surface: Eq 8 over all S of a budget; parabola: each (C, S)"),
    *estimated("N_star", "size of least loss in the measured range", "parameters", "N"),
    *estimated("L_star", "loss at N_star by the fitted curve", "nats/token", "L"),
    COVERAGE,
    INSIDE,
    RUNS,
    Column("drop", "float?", "L_star at the least S of the budget less L_star", "nats/token"),
    Column("drop_paired_se", "float?", "error of drop by documents, paired", "nats/token"),
    Column("drop_seed_se", "float?", f"its error {BY_SEEDS}", "nats/token"),
    NOTE,
    told={
        "note != ''": "C={C:.3g}, S={S:g}: no minimum of the loss in N_{size} inside the sizes "
        "measured ({method}): {note}"
    },
)
def optima(inputs: FittedInputs) -> Rows:
    """Returns the optima of every isoFLOP surface fit that the study's entry declares."""
    return [
        optimum
        for fit in sorted(inputs.fits)
        for method in METHODS
        for surface in surfaces(inputs, fit)
        for optimum in _with_drops(inputs, surface, size_optima(surface, method))
    ]


def parabola_minimum(surface: Surface, S: float) -> Minima | None:
    """Returns the minima of a parabola of L in ln N at ``S``, as ``Surface.size_minimum`` does."""
    rows = at(surface.rows, "S", S)
    return parabola_minima(np.log(rows[surface.size]), rows["L"])


# Method -> its minima at a sparsity. Intervals are those of the fit's draws, and Student's.
METHODS = {"parabola": parabola_minimum, "surface": Surface.size_minimum}


def size_optima(surface: Surface, method: str) -> list[Row]:
    """Returns a row for each measured S of one budget: the minimum, with an interval by draws."""
    optima = []
    for S in surface.measured["S"]:
        row: Row = {
            "C": surface.C,
            "S": S,
            "size": surface.size.removeprefix("N_"),
            "method": method,
            "level": surface.level,
            "n": len(at(surface.rows, "S", S)),
            "inside": False,
            "note": TOO_FEW,
        }
        values = [np.full(1, np.nan)] * 2
        if best := METHODS[method](surface, S):
            row |= {"inside": bool(best.inside[0]), "note": best.notes[0]}
            values = [np.exp(best.x), best.y]
        for name, own in zip("NL", values, strict=True):
            ends = of_draws(own, level=surface.level).interval
            row |= zip((f"{name}_star", f"{name}_low", f"{name}_high"), ends, strict=True)
        optima.append(row)
    return optima


def _with_drops(inputs: FittedInputs, surface: Surface, optima: list[Row]) -> Iterator[Row]:
    """Yields the ``optima`` of one budget and method with the drop of L* from the densest models.

    L* moves with the losses as the fitted curve does at N*: to first order a move of N* does not
    change L*, as the curve's slope is 0 there.
    """
    errors = contrast_errors(inputs, surface.rows["run_id"])
    densest, *others = optima
    first = _influence(surface, densest)
    yield densest
    for optimum in others:
        weights = first - _influence(surface, optimum)
        if np.isfinite(weights).all():
            optimum["drop"] = densest["L_star"] - optimum["L_star"]
            optimum["drop_paired_se"] = float(errors.documents(weights))
            optimum["drop_seed_se"] = float(errors.seeds(weights))
        yield optimum


def _influence(surface: Surface, optimum: Row) -> Array:
    """Returns how L* moves with the loss of each of the budget's runs, (n,); NaN without one."""
    N, S, rows = optimum["N_star"], optimum["S"], surface.rows
    if not np.isfinite(N):
        return np.full(len(rows), np.nan)
    if optimum["method"] == "surface":
        return np.asarray(surface.influence(N, S)[0])
    own = (rows["S"] == S).to_numpy()
    u = np.log(rows[surface.size].to_numpy(float)[own])
    curve = np.vander([np.log(N) - u.mean()], 3) @ np.linalg.pinv(np.vander(u - u.mean(), 3))
    moves = np.zeros(len(rows))
    moves[own] = curve[0]
    return moves


@table(
    *of_runs("C"),
    WHICH,
    Column("N", "float", "fixed model size", "parameters"),
    *estimated("S_star", "sparsity of least loss within the grid's sparsities", "1", "S"),
    Column("L_star", "float", "loss at S_star by the surface", "nats/token"),
    COVERAGE,
    INSIDE,
    NOTE,
    told={
        "inside == False": "C={C:.3g}: the optimal sparsity lies outside what was measured at some "
        "values of N_{size}: {note}"
    },
)
def sparsity_optima(inputs: FittedInputs) -> Rows:
    """Returns the optimal sparsities of every isoFLOP surface fit that the entry declares."""
    return [
        optimum
        for fit in inputs.fits
        for surface in surfaces(inputs, fit)
        for optimum in optimal_sparsities(surface)
    ]


def optimal_sparsities(surface: Surface) -> Iterator[Row]:
    """Yields S* at ``SIZES`` sizes between the smallest and the largest measured at one budget."""
    if surface.one_sparsity:
        return
    u_low, u_high = surface.measured["u_low"].min(), surface.measured["u_high"].max()
    sizes = np.linspace(u_low, u_high, SIZES)
    for u, best in zip(sizes, surface.sparsity_minima(sizes), strict=True):
        v, inside, note = float(best.x[0]), bool(best.inside[0]), best.notes[0]
        if best.convex[0] and v == 0.0:  # no model is denser than a dense one, whatever the grid
            inside, note = True, ""
        if inside and not surface.near_runs(float(u), v):
            inside, note = False, UNMEASURED
        yield {
            "C": surface.C,
            "size": surface.size.removeprefix("N_"),
            "N": float(np.exp(u)),
            "S_star": of_draws(-np.expm1(-best.x), level=surface.level),
            "L_star": float(best.y[0]),
            "level": surface.level,
            "inside": inside,
            "note": note,
        }
