"""IsoFLOP optima: the model size of least loss for each budget C and sparsity S.

Two ways that share nothing but the data: the surface fitted to all sparsities of a budget (Eq 8,
sparsity) and a parabola in ln N for each (C, S) alone (D.4, sparsity).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs, at
from moelaws.analysis.minimum import Array, abscissae, minima, percentile_interval
from moelaws.analysis.surface import Surface, surfaces
from moelaws.tables.column import Column

DRAWS = 1000  # of a parabola's coefficients: the ends of a 90 % interval to about 1 % of its mass
TOO_FEW = "fewer than three sizes"

COLUMNS = (
    Column("C", "float", "FLOPs", "training budget"),
    Column("S", "float", "1", "sparsity, (E - k) / E"),
    Column("size", "string", "1", "which parameters: total or active, with embeddings or without"),
    Column("method", "string", "1", "surface: Eq 8 over all S of a budget; parabola: each (C, S)"),
    Column("N_star", "float", "parameters", "size of least loss in the measured range", True),
    Column("N_low", "float", "parameters", "lower end of its interval", True),
    Column("N_high", "float", "parameters", "upper end of its interval", True),
    Column("L_star", "float", "nats/token", "loss at N_star by the fitted curve", True),
    Column("L_low", "float", "nats/token", "lower end of its interval", True),
    Column("L_high", "float", "nats/token", "upper end of its interval", True),
    Column(
        "interval",
        "string",
        "1",
        "how: fit: percentiles of the surface's draws, whose report says how they were made; "
        "student: of draws from a parabola's Student-t distribution, n - 3 degrees of freedom",
    ),
    Column("level", "float", "1", "coverage of the intervals"),
    Column("inside", "bool", "1", "the minimum is inside the measured range; else it is a bound"),
    Column("convex", "bool", "1", "the fitted curve has a minimum"),
    Column("n", "int", "1", "completed runs at this (C, S)"),
    Column("note", "string", "1", "why the minimum is not inside; empty where it is"),
)


def derive(inputs: Inputs) -> pd.DataFrame:
    """The table ``COLUMNS`` from every isoFLOP surface fit that the study's entry declares.

    Raises:
        UserError: where a fit is missing or not split by C.
    """
    records: list[dict[str, Any]] = []
    for fit in inputs.fits:
        for surface in surfaces(inputs, fit):
            records += surface_optima(surface)
            records += parabola_optima(surface.rows, surface.size, surface.C, surface.level)
    frame = pd.DataFrame(records, columns=[c.name for c in COLUMNS])
    return frame.sort_values(["size", "method", "C", "S"], ignore_index=True)


def warnings(frame: pd.DataFrame) -> list[str]:
    """A line for each optimum of the derived table that is not one."""
    return [
        f"C={row.C:.3g}, S={row.S:g}: no minimum of the loss in N_{row.size} inside the sizes "
        f"measured ({row.method}): {row.note}"
        for row in frame[frame["note"] != ""].itertuples()
    ]


def surface_optima(surface: Surface) -> Iterator[dict[str, Any]]:
    """The optimum at each measured S of one budget's surface."""
    for S, rows in _by_sparsity(surface.rows):
        base = _base(surface.C, S, surface.size, "surface", surface.level, rows)
        if rows[surface.size].nunique() < 3:
            yield {**base, "note": TOO_FEW}
            continue
        u_3 = _log_range(rows[surface.size])
        at_S = np.exp(u_3), np.full(3, S)
        yield {
            **base,
            **_optimum(surface.loss(*at_S), surface.loss_draws(*at_S), u_3, surface.level),
        }


def parabola_optima(
    rows: pd.DataFrame, size: str, C: float, level: float
) -> Iterator[dict[str, Any]]:
    """The optimum at each S of one budget's ``rows`` by a parabola of L in ln N."""
    for S, group in _by_sparsity(rows):
        base = _base(C, S, size, "parabola", level, group)
        if group[size].nunique() < 3:
            yield {**base, "note": TOO_FEW}
            continue
        u_3 = _log_range(group[size])
        values, drawn = parabola(np.log(group[size].to_numpy(float)), group["L"].to_numpy(), u_3)
        yield {**base, **_optimum(values, drawn, u_3, level)}


def parabola(
    u: Array, L: Array, u_3: Array, draws: int = DRAWS, seed: int = 0
) -> tuple[Array, Array]:
    """Least-squares parabola of ``L`` (n,) on ``u`` (n,), read at ``u_3`` (3,).

    Returns its values (3,) and ``draws`` rows (draws, 3) from their sampling distribution under
    independent normal errors: Student t with n - 3 degrees of freedom. With n = 3 the fit is exact,
    nothing is known of the error, and the draws are empty.
    """
    centre, half = u_3[1], (u_3[2] - u_3[0]) / 2
    design = np.vander((u - centre) / half, 3)
    coefficients, *_ = np.linalg.lstsq(design, L, rcond=None)
    at_3 = np.vander((u_3 - centre) / half, 3)
    freedom = len(u) - 3
    if freedom < 1:
        return at_3 @ coefficients, np.empty((0, 3))
    scale = np.sqrt(np.sum((L - design @ coefficients) ** 2) / freedom)
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal((draws, 3)) @ np.linalg.inv(np.linalg.qr(design).R).T
    student = scale * normal / np.sqrt(rng.chisquare(freedom, (draws, 1)) / freedom)
    return at_3 @ coefficients, (coefficients + student) @ at_3.T


def _by_sparsity(rows: pd.DataFrame) -> Iterator[tuple[float, pd.DataFrame]]:
    for S in sorted(float(value) for value in rows["S"].unique()):
        yield S, at(rows, "S", S)


def _base(
    C: float, S: float, size: str, method: str, level: float, rows: pd.DataFrame
) -> dict[str, Any]:
    nan = float("nan")
    return {
        "C": C,
        "S": S,
        "size": size.removeprefix("N_"),
        "method": method,
        **dict.fromkeys(("N_star", "N_low", "N_high", "L_star", "L_low", "L_high"), nan),
        "interval": "fit" if method == "surface" else "student",
        "level": level,
        "inside": False,
        "convex": False,
        "n": len(rows),
    }


def _log_range(sizes: pd.Series[float]) -> Array:
    return abscissae(float(np.log(sizes.min())), float(np.log(sizes.max())))


def _optimum(values: Array, drawn: Array, u_3: Array, level: float) -> dict[str, Any]:
    low, high = float(u_3[0]), float(u_3[2])
    best, spread = minima(values, low, high), minima(drawn, low, high)
    N_low, N_high = percentile_interval(np.exp(spread.x), level)
    L_low, L_high = percentile_interval(spread.y, level)
    return {
        "N_star": float(np.exp(best.x[0])),
        "N_low": N_low,
        "N_high": N_high,
        "L_star": float(best.y[0]),
        "L_low": L_low,
        "L_high": L_high,
        "inside": bool(best.inside[0]),
        "convex": bool(best.convex[0]),
        "note": best.notes[0],
    }
