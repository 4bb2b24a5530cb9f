"""The gain from sparsity at equal budget, width and seed, and over the time that training took.

Fig 5 and 10 show scores on tasks over the loss, by sparsity, with the relation that was fitted.
"""

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.scores import MEASURES
from moelaws.figures import style
from moelaws.figures.axes import LOSS, SPARSITY
from moelaws.figures.losses import write_statistics
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sparsity.derived.scores import regress, regressors
from moelaws.studies.sparsity.figures.common import colours

COLUMNS = 3
MARGIN = 0.1  # of the range of sparsities, beyond its ends
APART = 1.7  # points between the marks of two widths at one sparsity
REWEIGHTED = 50  # times, after which a trend of speeds stays
LONG = 360.0  # seconds, above which times are shown in hours


def contrasts(inputs: Inputs) -> pd.DataFrame:
    """Returns the contrasts with the densest model."""
    table = inputs.derived("contrasts")
    densest: pd.DataFrame = table[table["S_against"] == table["S_against"].min()]
    return densest


def seed_spread(inputs: Inputs) -> pd.DataFrame:
    """Returns the ends of one standard error by the spread between seeds, for each budget."""
    rows = contrasts(inputs)
    every = pd.concat([rows, rows.assign(S=rows["S_against"])])
    band = every.groupby(["C", "S"])["seed_se"].max().reset_index()
    band["high"] = band.groupby("C")["seed_se"].transform("max")
    return band.assign(zero=0.0, low=-band["high"])


def fastest(inputs: Inputs) -> pd.DataFrame:
    """Returns the best run of each budget and sparsity with the ``time`` that it takes, seconds.

    The time leaves out evaluation, starts of processes, and what else the machine did.
    """
    runs = inputs.completed[inputs.completed["C"].notna()]
    best = runs.loc[runs.groupby(["C", "S"])["L"].idxmin()]
    return best.assign(time=best["D"] / usual_speed(runs)[best.index])


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
