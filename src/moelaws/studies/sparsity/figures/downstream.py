"""Fig 5 and 10: scores on tasks over the loss, by sparsity, with the relation that was fitted."""

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.scores import MEASURES
from moelaws.figures import style
from moelaws.figures.losses import bars
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sparsity.derived.scores import regress, regressors
from moelaws.studies.sparsity.figures.common import colours

MAX_SKILLS = 6  # on a page
PALE = 0.2  # opacity of errors


def draw(inputs: Inputs, by: str) -> Sheet:
    """Draws a column of panels for each task or group of tasks, and a row for each score."""
    table = inputs.derived("downstream", by=by)
    skills = list(dict.fromkeys(table["skill"]))
    shown = max(1, min(len(skills), MAX_SKILLS))
    width = style.SINGLE if shown == 1 else style.DOUBLE
    sheet = Sheet(width, 2 * style.HEIGHT, 2 * shown, shown)
    if not skills:
        return sheet.message("no completed run\nwas scored")
    if beyond := ", ".join(skills[MAX_SKILLS:]):
        sheet.warn(f"{beyond} are not shown: a page has room for {MAX_SKILLS}")
    palette = colours(inputs, "S")
    for row, (measure, label) in enumerate(MEASURES.items()):
        for column, skill in enumerate(skills[:MAX_SKILLS]):
            panel = sheet.panels[row * shown + column]
            rows = table[table["skill"] == skill]
            _draw(panel, rows, measure, palette)
            if row == 0:
                panel.title(f"{skill}".replace("_", " "))
            else:
                panel.ax.set_xlabel("loss (nats/token)")
            if column == 0:
                panel.ax.set_ylabel(label)
    sheet.panels[shown - 1].legend("sparsity $S$")
    return sheet


def _draw(panel: Panel, rows: pd.DataFrame, measure: str, palette: style.Palette) -> None:
    """Draws the runs of one skill with their errors, and the relation at each sparsity."""
    fit = regress(rows, measure)
    for S, colour in palette.items():
        own = rows[np.isclose(rows["S"], S)].sort_values("L")
        if not len(own):
            continue
        series, ends = f"S={S:.4g}", bars(own, f"{measure}_se", measure)
        pale = (*colour[:3], PALE)  # most of the error is common to all runs
        panel.points(f"{series}, errors", own["L"], own[measure], **ends, color=pale, marker="none")
        panel.points(series, own["L"], own[measure], color=colour, markersize=2.5, label=f"{S:.4g}")
        if fit is not None:
            L = np.linspace(own["L"].min(), own["L"].max(), 40)
            y = regressors(rows, L, np.full(len(L), S)) @ fit.coefficients
            panel.line(f"S={S:.4g}, fitted", L, y, color=colour, linewidth=0.8)
    chance = rows["chance"].iloc[0]
    if measure == "error" and chance < 1:
        L = np.array([rows["L"].min(), rows["L"].max()])
        look: dict[str, Any] = {"color": style.GREY, "linestyle": "--", "linewidth": 0.8}
        panel.line("guessing", L, [chance, chance], label="guessing", **look)
