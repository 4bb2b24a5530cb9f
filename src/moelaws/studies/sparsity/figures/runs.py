"""The gain from sparsity at equal budget, width and seed, and over the time that training took.

Fig 5 and 10 show scores on tasks over the loss, by sparsity, with the relation that was fitted.
"""

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs, at
from moelaws.analysis.scores import MEASURES
from moelaws.figures import axes, style
from moelaws.figures.axes import BUDGET, LOSS, SPARSITY
from moelaws.figures.losses import bars, error_among, write_statistics
from moelaws.figures.sheet import Panel, Sheet, two_panels
from moelaws.studies.sparsity.derived.scores import regress, regressors
from moelaws.studies.sparsity.figures.common import colours

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
        panel.title(f"$C$ = {axes.power(C)}")
    for panel in sheet.panels[::COLUMNS]:
        panel.ax.set_ylabel("loss less that of the\ndensest run (nats/token)")
    for d, colour in palette.items():
        sheet.panels[-1].key(f"{d:g}", color=colour, marker="o", ls="none")
    sheet.panels[-1].legend("width $d$")
    return sheet


def _draw_budget(panel: Panel, rows: pd.DataFrame, palette: dict[float, style.Colour]) -> None:
    """Draws one budget: the spread between seeds as a band, and runs by width and seed."""
    S = np.array(sorted({*rows["S"], *rows["S_against"]}))
    axes.sparsity(panel.ax, S)
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
        panel.points(
            f"d={d:g}, seed {seed:g}",
            group["S"],
            group["difference"],
            **bars(group, error, "difference"),
            color=palette[d],
            markersize=3,
            markerfacecolor=palette[d] if seed == rows["seed"].min() else "white",
            transform=panel.beside(place, len(groups), APART * (len(groups) - 1)),
        )


def time(inputs: Inputs) -> Sheet:
    """Draws the best run of each budget and sparsity: its loss over FLOPs, and over time.

    The time leaves out evaluation, starts of processes, and what else the machine did.
    """
    runs = inputs.completed[inputs.completed["C"].notna()]
    best = runs.loc[runs.groupby(["C", "S"])["L"].idxmin()].sort_values(["S", "C"])
    seconds = best["D"] / usual_speed(runs)[best.index]
    hours = seconds.max() > LONG
    best["time"] = seconds / (3600 if hours else 1)
    sheet = two_panels()
    palette = colours(inputs, "S")
    for panel, x in zip(sheet.panels, ("C", "time"), strict=True):
        for S, colour, rows in style.groups(best, "S", palette):
            ends = bars(rows, error_among(best))
            panel.line(f"S={S:.4g}", rows[x], rows["L"], color=colour, linewidth=0.8)
            panel.points(f"S={S:.4g}", rows[x], rows["L"], **ends, color=colour, label=f"{S:.4g}")
    flops, durations = sheet.panels
    axes.compute(flops.ax.xaxis, best["C"], BUDGET)
    axes.log(durations.ax.xaxis, f"training time ({'hours' if hours else 'seconds'})")
    flops.ax.set_ylabel(LOSS)
    durations.legend(SPARSITY)
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


MAX_SKILLS = 6  # on a page
ROW = 1.55  # inches of a task among several
FAR = 0.5  # of the range of errors, beyond which guessing is written and not drawn
ASIDE = 0.03  # of the range of losses, from the last run to the bar of its error


def downstream(inputs: Inputs, by: str) -> Sheet:
    """Draws a row of panels for each task or group of tasks, and a column for each score."""
    table = inputs.derived("downstream", by=by)
    skills = list(dict.fromkeys(table["skill"]))
    shown = skills[:MAX_SKILLS]
    rows = max(1, len(shown))
    height = style.HEIGHT if rows == 1 else ROW * rows + 0.4
    sheet = Sheet(style.DOUBLE, height, len(MEASURES) * rows, len(MEASURES))
    if not shown:
        return sheet.message("no completed run\nwas scored")
    if beyond := ", ".join(skills[MAX_SKILLS:]):
        sheet.warn(f"{beyond} are not shown: a page has room for {MAX_SKILLS}")
    palette = colours(inputs, "S")
    for i, panel in enumerate(sheet.panels):
        skill, (measure, label) = shown[i // len(MEASURES)], [*MEASURES.items()][i % len(MEASURES)]
        _draw(panel, table[table["skill"] == skill], measure, palette)
        panel.title(f"{skill}, {label}".replace("_", " "))
    for panel in sheet.panels[-len(MEASURES) :]:
        panel.ax.set_xlabel(LOSS)
    sheet.panels[len(MEASURES) - 1].legend(SPARSITY)
    return sheet


def _draw(panel: Panel, rows: pd.DataFrame, measure: str, palette: style.Palette) -> None:
    """Draws the runs of one skill, the relation at each sparsity, and the middle of their errors.

    A bar at each run would hide the others, and most of the error is common to all runs.
    """
    fit = regress(rows, measure)
    for S, colour, own in style.groups(rows.sort_values("L"), "S", palette):
        panel.points(
            f"S={S:.4g}",
            own["L"],
            own[measure],
            color=colour,
            markersize=2.8,
            label=f"{S:.4g}",
            **style.EDGE,
        )
        if fit is not None:
            L = np.linspace(own["L"].min(), own["L"].max(), 40)
            y = regressors(rows, L, np.full(len(L), S)) @ fit.coefficients
            panel.line(f"S={S:.4g}, fitted", L, y, color=colour, linewidth=0.8)
    least, most = rows[measure].min(), rows[measure].max()
    half, L = float(rows[f"{measure}_se"].median()), np.array([rows["L"].min(), rows["L"].max()])
    if np.isfinite(half):  # in the lower right, where few scores lie
        panel.points(
            "standard error",
            L[1] + ASIDE * np.ptp(L),
            least + half,
            low=least,
            high=least + 2 * half,
            color=style.INK,
            marker="_",
            label="\u00b1 one error",
        )
    chance = rows["chance"].iloc[0]
    if measure == "error" and chance < 1:
        text = f"guessing: {chance:.3g}"
        if chance - most < FAR * (most - least):
            panel.line("guessing", L, [chance, chance], **style.PUBLISHED, linewidth=0.8)
            panel.ax.text(L[0], chance, text, va="top", fontsize=6.5)
        else:
            write_statistics(panel, [text])
