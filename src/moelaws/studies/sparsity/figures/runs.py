"""The gain from sparsity at equal budget, width and seed, and over the time that training took."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.transforms import offset_copy

from moelaws.analysis.inputs import Inputs, at
from moelaws.figures import style
from moelaws.figures.losses import bars, error_among
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sparsity.figures.common import BUDGET, colours

COLUMNS = 3
MARGIN = 0.1  # of the range of sparsities, beyond its ends
APART = 1.7  # points between the marks of two widths at one sparsity
REWEIGHTED = 50  # times, after which a trend of speeds stays
LONG = 360.0  # seconds, above which times are shown in hours


def contrasts(inputs: Inputs) -> Sheet:
    """Draws a panel for each budget: each sparse run's loss less that of the densest one."""
    table = inputs.derived("contrasts")
    densest = table["S_against"] == table["S_against"].min()
    table = table[densest]
    budgets = sorted(table["C"].unique())
    panels = max(1, len(budgets))
    width = style.DOUBLE if panels > 1 else style.SINGLE
    height = style.HEIGHT * -(-panels // COLUMNS)
    sheet = Sheet(width, height, panels, min(panels, COLUMNS))
    if not budgets:
        return sheet.message("no two completed runs of a budget\ndiffer in sparsity alone")
    if not densest.all():
        sheet.warn(f"{(~densest).sum()} contrasts are left out: their densest run is missing")
    palette = style.palette(table["d_model"])
    for panel, C in zip(sheet.panels, budgets, strict=True):
        _draw_budget(panel, at(table, "C", C), palette)
        panel.title(f"$C$ = {style.power(C)}")
    for panel in sheet.panels[::COLUMNS]:
        panel.ax.set_ylabel("loss less that of the\ndensest run (nats/token)")
    for d, colour in palette.items():
        sheet.panels[-1].ax.plot([], [], "o", color=colour, label=f"{d:g}")
    sheet.panels[-1].legend("width $d$")
    return sheet


def _draw_budget(panel: Panel, rows: pd.DataFrame, palette: dict[float, style.Colour]) -> None:
    """Draws one budget: the spread between seeds as a band, and runs by width and seed."""
    S = np.array(sorted({*rows["S"], *rows["S_against"]}))
    style.sparsity_axis(panel.ax, S)
    v = -np.log1p(-S[[0, -1]]) + np.array([-MARGIN, MARGIN]) * np.ptp(-np.log1p(-S))
    panel.ax.set_xlim(-np.expm1(-v))  # room for the marks beside the ends
    spread = float(rows["seed_se"].max())
    zero = np.zeros(len(S))
    band = {"low": zero - spread, "high": zero + spread} if np.isfinite(spread) else {}
    panel.line("spread between seeds", S, zero, **band, color=style.GREY, linewidth=0.8)
    # A panel shows one kind of error, as unpaired ones may be ten times as large.
    error = error_among(rows, "paired_se", "unpaired_se")
    groups = list(rows.groupby(["d_model", "seed"]))
    for place, (_, group) in enumerate(groups):
        d, seed = (float(group[name].iloc[0]) for name in ("d_model", "seed"))
        shift = APART * (place - (len(groups) - 1) / 2)
        aside = offset_copy(panel.ax.transData, panel.sheet.figure, shift, units="points")
        look: dict[str, Any] = {"color": palette[d], "markersize": 3, "transform": aside}
        look["markerfacecolor"] = palette[d] if seed == rows["seed"].min() else "white"
        ends = bars(group, error, "difference")
        panel.points(f"d={d:g}, seed {seed:g}", group["S"], group["difference"], **ends, **look)


def time(inputs: Inputs) -> Sheet:
    """Draws the best run of each budget and sparsity: its loss over FLOPs, and over time.

    The time leaves out evaluation, starts of processes, and what else the machine did.
    """
    runs = inputs.completed[inputs.completed["C"].notna()]
    best = runs.loc[runs.groupby(["C", "S"])["L"].idxmin()].sort_values(["S", "C"])
    seconds = best["D"] / usual_speed(runs)[best.index]
    hours = seconds.max() > LONG
    best["time"] = seconds / (3600 if hours else 1)
    time_label = f"training time ({'hours' if hours else 'seconds'})"
    sheet = Sheet(style.DOUBLE, style.HEIGHT, 2)
    palette = colours(inputs, "S")
    for panel, x, label in zip(sheet.panels, ("C", "time"), (BUDGET, time_label), strict=True):
        for S, colour in palette.items():
            rows = best[best["S"] == S]
            ends = bars(rows, error_among(best))
            panel.line(f"S={S:.4g}", rows[x], rows["L"], color=colour, linewidth=0.8)
            panel.points(f"S={S:.4g}", rows[x], rows["L"], **ends, color=colour, label=f"{S:.4g}")
        panel.ax.set(xscale="log", xlabel=label)
    budgets = sorted(best["C"].unique())
    style.fixed_ticks(sheet.panels[0].ax.xaxis, budgets, style.power)
    if best["time"].notna().any():
        ticks = style.round_ticks(float(best["time"].min()), float(best["time"].max()), 4)
        style.fixed_ticks(sheet.panels[1].ax.xaxis, ticks, "{:.3g}".format)
    sheet.panels[0].ax.set_ylabel("loss (nats/token)")
    sheet.panels[-1].legend("sparsity $S$")
    if best["time"].isna().any():
        sheet.warn("some runs have no tokens_per_second; their training time is not shown")
    return sheet


def usual_speed(runs: pd.DataFrame) -> pd.Series:
    """Returns tokens per second (n,), a power law of FLOPs a token and of 1 - S; NaN if unknown.

    It has the least sum of absolute errors, for a run beside other work is slower by factors. That
    is least squares, reweighted.
    """
    known = runs[runs["tokens_per_second"] > 0]
    y, one = np.log(known["tokens_per_second"].to_numpy(float)), np.ones(len(known))
    X = np.column_stack([np.log(known["C"] / known["D"]), np.log1p(-known["S"]), one])
    fitted, root = y, one
    for _ in range(REWEIGHTED):
        fitted = X @ np.linalg.lstsq(X * root[:, None], y * root, rcond=None)[0]
        root = np.maximum(np.abs(y - fitted), 1e-4) ** -0.5
    return pd.Series(np.exp(fitted), known.index).reindex(runs.index)
