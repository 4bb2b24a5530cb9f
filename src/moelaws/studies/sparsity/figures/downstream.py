"""Fig 5 and 10: scores on tasks over the loss, by sparsity, with the relation that was fitted."""

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.scores import MEASURES
from moelaws.figures import style
from moelaws.figures.losses import write_statistics
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sparsity.derived.scores import regress, regressors
from moelaws.studies.sparsity.figures.common import colours

MAX_SKILLS = 6  # on a page
ROW = 1.55  # inches of a task among several
FAR = 0.5  # of the range of errors, beyond which guessing is written and not drawn
ASIDE = 0.03  # of the range of losses, from the last run to the bar of its error


def draw(inputs: Inputs, by: str) -> Sheet:
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
        panel.ax.set_xlabel("loss (nats/token)")
    sheet.panels[len(MEASURES) - 1].legend("sparsity $S$")
    return sheet


def _draw(panel: Panel, rows: pd.DataFrame, measure: str, palette: style.Palette) -> None:
    """Draws the runs of one skill, the relation at each sparsity, and the middle of their errors.

    A bar at each run would hide the others, and most of the error is common to all runs.
    """
    fit = regress(rows, measure)
    for S, colour in palette.items():
        own = rows[np.isclose(rows["S"], S)].sort_values("L")
        if not len(own):
            continue
        look: dict[str, Any] = {"color": colour, "markersize": 2.8, "label": f"{S:.4g}"}
        look |= {"markeredgecolor": "white", "markeredgewidth": 0.3}
        panel.points(f"S={S:.4g}", own["L"], own[measure], **look)
        if fit is not None:
            L = np.linspace(own["L"].min(), own["L"].max(), 40)
            y = regressors(rows, L, np.full(len(L), S)) @ fit.coefficients
            panel.line(f"S={S:.4g}, fitted", L, y, color=colour, linewidth=0.8)
    least, most = rows[measure].min(), rows[measure].max()
    half, L = float(rows[f"{measure}_se"].median()), np.array([rows["L"].min(), rows["L"].max()])
    if np.isfinite(half):  # in the lower right, where few scores lie
        bar = {"low": least, "high": least + 2 * half, "color": style.INK, "marker": "_"}
        x = L[1] + ASIDE * np.ptp(L)
        panel.points("standard error", x, least + half, **bar, label="\u00b1 one error")
    chance = rows["chance"].iloc[0]
    if measure == "error" and chance < 1:
        text = f"guessing: {chance:.3g}"
        if chance - most < FAR * (most - least):
            panel.line("guessing", L, [chance, chance], **style.PUBLISHED, linewidth=0.8)
            panel.ax.text(L[0], chance, text, va="top", fontsize=6.5)
        else:
            write_statistics(panel, [text])
