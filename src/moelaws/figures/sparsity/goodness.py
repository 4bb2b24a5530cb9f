"""F6a, F6b: losses predicted by Eq 6 against measured ones, on fitted and on held-out runs."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from moelaws import laws
from moelaws.analysis.inputs import Inputs, at
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.figures.sparsity.common import bars, colours
from moelaws.fitting.rows import selected_rows
from moelaws.fitting.variables import read_variables

FIT = "loss"


def draw(inputs: Inputs, held_out: bool) -> Sheet:
    """Predicted loss over measured loss, coloured by budget, with the line of equality."""
    report, spec = inputs.fit(FIT), inputs.spec(FIT)
    law = laws.fittable(report.law)
    sheet = Sheet(style.SINGLE, style.HEIGHT)
    (panel,) = sheet.panels
    fitted, held = selected_rows(inputs.table, law, spec, {})
    rows = inputs.table[held if held_out else fitted]
    if not len(rows):
        panel.message(
            "no held-out run:\n"
            + (f"none has {spec.holdout}" if spec.holdout else "the fit holds nothing out")
        )
        return sheet
    params = report.part({}).estimates()
    rows = rows.assign(
        predicted=law.predict(params, read_variables(law, rows, spec, "table").values)
    )
    for C, colour in colours(inputs, "C").items():
        group = at(rows, "C", C)
        if len(group):
            panel.points(
                f"C={C:g}",
                group["predicted"],
                group["L"],
                **bars(group),
                color=colour,
                markeredgecolor="white",
                markeredgewidth=0.3,
                label=style.power(C),
            )
    _equality(panel, rows)
    _errors(panel, rows)
    panel.ax.set_xlabel("predicted loss (nats/token)")
    panel.ax.set_ylabel("observed loss (nats/token)")
    panel.ax.set_title(f"held-out runs ({spec.holdout})" if held_out else "fitted runs", loc="left")
    panel.legend("budget $C$ (FLOPs)")
    return sheet


def _equality(panel: Panel, rows: pd.DataFrame) -> None:
    both = rows[["predicted", "L"]].to_numpy(float)
    margin = 0.05 * float(np.ptp(both)) or 0.01
    ends = [float(both.min()) - margin, float(both.max()) + margin]
    panel.ax.plot(ends, ends, color=style.GREY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    panel.ax.set(xlim=ends, ylim=ends)
    panel.ax.yaxis.set_major_locator(MaxNLocator(6))
    panel.ax.xaxis.set_major_locator(MaxNLocator(6))


def _errors(panel: Panel, rows: pd.DataFrame) -> None:
    residual = (rows["L"] - rows["predicted"]).to_numpy(float)
    spread = float(np.sum((rows["L"] - rows["L"].mean()) ** 2))
    lines = [f"$n$ = {len(rows)}", f"RMSE = {np.sqrt(np.mean(residual**2)):.3g} nats"]
    if spread > 0 and len(rows) > 2:
        lines.append(f"$R^2$ = {1 - np.sum(residual**2) / spread:.3g}")
    panel.ax.text(
        0.04, 0.97, "\n".join(lines), transform=panel.ax.transAxes, va="top", fontsize=6.5
    )


FIGURES = {"F6a": partial(draw, held_out=False), "F6b": partial(draw, held_out=True)}
