"""Loss-optimal ratio r* of expert to attention FLOPs for each budget C and sparsity S.

The same runs are read in three ways: the measured ratio of least loss (raw); that after the paper's
rule B.3 (adjusted), which keeps r* from falling as C grows where this costs less than 0.001 nats;
and the minimum of a parabola in ln r, which shows whether the grid's ratios limit r*.

The adjusted r* partly imposes the trend that it is used to show, so tests of the trend belong on
the raw one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moelaws.analysis.derive import Row, Rows, of_runs, table
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array, parabola_minima
from moelaws.analysis.regression import LEVEL, of_draws
from moelaws.tables.column import COVERAGE, NOTE, RUNS, Column, estimated

MIN_RATIOS = 3  # that determine a parabola
TOLERATED = 0.001  # nats: the loss that rule B.3 gives up for an r* that does not fall
DRAWS = 1000
TOO_FEW = "fewer than three ratios"
AT_LOW_END = "at the least ratio measured"
AT_HIGH_END = "at the largest ratio measured"


@dataclass(frozen=True)
class Cell:
    """The runs of one budget and sparsity, sorted by ratio."""

    C: float
    S: float
    rows: pd.DataFrame  # completed runs
    r: Array  # (m,) ratios measured
    L: Array  # (m,) the mean loss over the seeds of each ratio
    seeds: Array  # (m,) the number of runs behind each mean


def cells_of(runs: pd.DataFrame) -> list[Cell]:
    """Groups the ``runs`` that name a budget by (C, S), sorted by S and then C."""
    cells = []
    for _, rows in runs.groupby([runs["S_shared"].round(12), "C"]):  # without missing budgets
        means = rows.groupby("r")["L"].agg(["mean", "size"])
        C, S = (float(rows[name].iloc[0]) for name in ("C", "S_shared"))
        L, seeds = (means[name].to_numpy(float) for name in ("mean", "size"))
        cells.append(Cell(C, S, rows, means.index.to_numpy(float), L, seeds))
    return cells


@table(
    *of_runs("C"),
    Column("S", "float", "sparsity with shared experts in E and k, 1 - A"),
    Column("E", "int", "experts a layer, shared ones included", "experts"),
    Column("N_active", "float", "active, without embeddings: median over ratios", "parameters"),
    RUNS,
    Column("r_least", "float", "least ratio measured"),
    Column("r_most", "float", "largest ratio measured"),
    *estimated("r_raw", "ratio of least loss, mean over seeds", "1", "raw"),
    *estimated("r_adjusted", "r* by rule B.3 of the allocation paper", "1", "adjusted"),
    Column("adjusted", "bool", "rule B.3 took another ratio than the raw one"),
    *estimated("r_parabola", "least point of a parabola of L in ln r, in range", "1", "parabola"),
    Column("parabola_note", "string", "why its minimum is not inside; empty where it is"),
    Column("noise", "float?", "spread of runs about the parabolas, pooled", "nats/token"),
    COVERAGE,
    NOTE,
    told={"note != ''": "C={C:.3g}, S={S:.4g}: r* = {r_raw:.3g} is {note}"},
)
def derive(inputs: Inputs) -> Rows:
    """Reads r* of each budget and sparsity, with 90 % intervals from the runs' own noise.

    The noise is the spread about each cell's parabola in ln r, pooled over all cells. Losses are
    drawn about the parabolas with that noise, and the raw and the adjusted r* are chosen among them
    by the same rules: the percentiles of these choices are the intervals. Source: allocation, B.3.
    """
    cells = cells_of(inputs.completed)
    noise = pooled_noise(cells)
    rng = np.random.default_rng(0)
    return [
        row
        for S in sorted({cell.S for cell in cells})
        for row in _of_sparsity([cell for cell in cells if cell.S == S], noise, rng)
    ]


def pooled_noise(cells: Sequence[Cell]) -> float:
    """Returns the spread (nats) of single runs about their cell's parabola; NaN if unknown."""
    squares, freedom = 0.0, 0
    for cell in cells:
        if len(cell.rows) > MIN_RATIOS and len(cell.r) >= MIN_RATIOS:
            u, L = np.log(cell.rows["r"].to_numpy(float)), cell.rows["L"].to_numpy(float)
            squares += float(np.sum((L - _smooth(u, L, u)) ** 2))
            freedom += len(cell.rows) - MIN_RATIOS
    return float(np.sqrt(squares / freedom)) if freedom else np.nan


def adjust(r: Sequence[Array], L: Sequence[Array]) -> list[NDArray[np.intp]]:
    """Chooses the ratio of each budget, in rising order of C, that rule B.3 takes as r*.

    The rule takes the ratio of least loss. Where that lies below the r* of the budget before, it
    takes the best ratio that does not, if this costs less than 0.001 nats. Each budget has ratios
    (m,) and their losses (B, m) in B draws; the result has indices (B,) among its ratios.
    """
    chosen: list[NDArray[np.intp]] = []
    previous: Array = np.zeros(len(L[0]))
    for ratio, loss_Bm in zip(r, L, strict=True):
        draws = np.arange(len(loss_Bm))
        best = loss_Bm.argmin(axis=1)
        allowed = ratio >= previous[:, None]
        other = np.where(allowed, loss_Bm, np.inf).argmin(axis=1)
        cheap = loss_Bm[draws, other] - loss_Bm[draws, best] < TOLERATED
        best = np.where((ratio[best] < previous) & allowed.any(axis=1) & cheap, other, best)
        previous = ratio[best]
        chosen.append(best)
    return chosen


def _of_sparsity(cells: Sequence[Cell], noise: float, rng: np.random.Generator) -> Iterator[Row]:
    """Yields the rows of one sparsity's cells, which are sorted by C."""
    adjusted = adjust([cell.r for cell in cells], [cell.L[None] for cell in cells])
    raw_draws, adjusted_draws = _chosen_draws(cells, noise, rng)
    for i, cell in enumerate(cells):
        best, chosen, n = int(np.argmin(cell.L)), int(adjusted[i][0]), len(cell.r)
        note = {0: AT_LOW_END, n - 1: AT_HIGH_END}.get(best, "")
        least = parabola_minima(np.log(cell.rows["r"]), cell.rows["L"])
        yield {
            "C": cell.C,
            "S": cell.S,
            "E": int(cell.rows["E"].iloc[0] + cell.rows["E_s"].iloc[0]),
            "N_active": float(cell.rows["N_active_nonemb"].median()),
            "n": len(cell.rows),
            "r_least": cell.r[0],
            "r_most": cell.r[-1],
            "r_raw": of_draws(np.append(cell.r[best], raw_draws[i])),
            "r_adjusted": of_draws(np.append(cell.r[chosen], adjusted_draws[i])),
            "adjusted": chosen != best,
            "r_parabola": of_draws(np.exp(least.x)) if least else np.nan,
            "parabola_note": least.notes[0] if least else TOO_FEW,
            "noise": noise,
            "level": LEVEL,
            "note": TOO_FEW if n < MIN_RATIOS else note,
        }


def _chosen_draws(
    cells: Sequence[Cell], noise: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Returns the raw and adjusted r*, (cells, draws) each, of losses drawn about the parabolas."""
    raw, adjusted = np.full((2, len(cells), DRAWS), np.nan)
    known = [i for i, cell in enumerate(cells) if len(cell.r) >= MIN_RATIOS]
    if not known or not np.isfinite(noise):
        return raw, adjusted
    drawn = []
    for i in known:
        u = np.log(cells[i].r)
        spread = noise / np.sqrt(cells[i].seeds)
        drawn.append(_smooth(u, cells[i].L, u) + spread * rng.standard_normal((DRAWS, len(u))))
    chosen = adjust([cells[i].r for i in known], drawn)
    for i, loss, best in zip(known, drawn, chosen, strict=True):
        raw[i] = cells[i].r[loss.argmin(axis=1)]
        adjusted[i] = cells[i].r[best]
    return raw, adjusted


def _smooth(u: Array, L: Array, at: Array) -> Array:
    """Returns the values (m,) ``at`` points (m,) of the parabola fitted to ``L`` (n,) in ``u``."""
    return np.polyval(np.polyfit(u - u.mean(), L, 2), at - u.mean())
