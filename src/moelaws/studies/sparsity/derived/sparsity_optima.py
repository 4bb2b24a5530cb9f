"""The optimal sparsity S* at a fixed size and budget, by the isoFLOP surface (Eq 4, sparsity)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import percentile_interval
from moelaws.studies.sparsity.derived.surface import Surface, surfaces
from moelaws.tables.column import Column

SIZES = 41  # a budget: enough for a smooth line
UNMEASURED = "no run near: outside the sizes measured at this sparsity"


@table(
    Column("C", "float", "FLOPs", "training budget"),
    Column("size", "string", "1", "which parameters: total or active, with embeddings or without"),
    Column("N", "float", "parameters", "fixed model size"),
    Column("S_star", "float", "1", "sparsity of least loss within the grid's sparsities"),
    Column("S_low", "float", "1", "lower end of its interval, by the fit's draws", True),
    Column("S_high", "float", "1", "upper end of its interval, by the fit's draws", True),
    Column("L_star", "float", "nats/token", "loss at S_star by the surface"),
    Column("level", "float", "1", "coverage of the interval"),
    Column("inside", "bool", "1", "S_star is a minimum, or dense, near runs; else it is a bound"),
    Column("convex", "bool", "1", "the surface along S has a minimum at this N"),
    Column("note", "string", "1", "why S_star is not inside; empty where it is"),
)
def derive(inputs: FittedInputs) -> Rows:
    """Returns the optimal sparsities of every isoFLOP surface fit that the study's entry declares.

    Raises:
        UserError: where a fit is missing or not split by C.
    """
    return [
        optimum
        for fit in inputs.fits
        for surface in surfaces(inputs, fit)
        for optimum in optimal_sparsities(surface)
    ]


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Returns a line for each budget with sizes whose optimal sparsity is not inside the grid."""
    lines = []
    for (C, size), group in frame.groupby(["C", "size"]):
        outside = group[~group["inside"]]
        if len(outside):
            notes = "; ".join(sorted(set(outside["note"])))
            lines.append(
                f"C={C:.3g}: the optimal sparsity lies outside what was measured at "
                f"{len(outside)} of {len(group)} values of N_{size}: {notes}"
            )
    return lines


def optimal_sparsities(surface: Surface) -> Iterator[dict[str, Any]]:
    """Yields S* at ``SIZES`` sizes between the smallest and the largest measured at one budget."""
    if surface.one_sparsity:
        return
    u_low, u_high = surface.measured["u_low"].min(), surface.measured["u_high"].max()
    for u in np.linspace(u_low, u_high, SIZES):
        best, draws = surface.sparsity_minimum(u)
        v, inside, note = float(best.x[0]), bool(best.inside[0]), best.notes[0]
        if best.convex[0] and v == 0.0:  # dense is the end of the world, not of the grid
            inside, note = True, ""
        if inside and not surface.near_runs(float(u), v):
            inside, note = False, UNMEASURED
        S_low, S_high = percentile_interval(-np.expm1(-draws.x), surface.level)
        yield {
            "C": surface.C,
            "size": surface.size.removeprefix("N_"),
            "N": float(np.exp(u)),
            "S_star": -float(np.expm1(-v)),
            "S_low": S_low,
            "S_high": S_high,
            "L_star": float(best.y[0]),
            "level": surface.level,
            "inside": inside,
            "convex": bool(best.convex[0]),
            "note": note,
        }
