"""F6a, F6b: losses predicted by Eq 6 against measured ones; the same of the laws it is to beat."""

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

# Eq 6 and the laws that do not know sparsity, or know it as a number of experts.
FITS = {"loss": "Eq 6", "chinchilla": "Chinchilla ($N_a$)", "wang": "Wang ($N_a, E$)"}


def draw(inputs: Inputs, held_out: bool) -> Sheet:
    """Observed loss over the loss predicted by Eq 6, coloured by budget."""
    sheet = Sheet(style.SINGLE, style.HEIGHT)
    (panel,) = sheet.panels
    if _predictions(panel, inputs, "loss", held_out):
        holdout = inputs.spec("loss").holdout
        title = f"held-out runs ({holdout})" if held_out else "fitted runs"
        panel.ax.set_title(title, loc="left")
        panel.legend("budget $C$ (FLOPs)")
    return sheet


def baselines(inputs: Inputs) -> Sheet:
    """The held-out runs as Eq 6 and two baselines predict them, on the same axes."""
    sheet = Sheet(style.DOUBLE, 2.4, ["rectilinear"] * len(FITS))
    drawn = [
        panel
        for panel, fit in zip(sheet.panels, FITS, strict=True)
        if _predictions(panel, inputs, fit, True)
    ]
    limits = [panel.ax.get_xlim() for panel in drawn]
    for panel, name in zip(sheet.panels, FITS.values(), strict=True):
        if panel in drawn:
            panel.ax.set_title(f"({panel.name}) {name}", loc="left")
            ends = min(low for low, _ in limits), max(high for _, high in limits)
            panel.ax.set(xlim=ends, ylim=ends)
    for panel in drawn[1:]:
        panel.ax.set_ylabel("")
    if drawn:
        drawn[-1].legend("budget $C$ (FLOPs)")
    return sheet


def predicted_rows(inputs: Inputs, fit: str, held_out: bool) -> pd.DataFrame:
    """The rows that ``fit`` was fitted to, or that it holds out, with a column ``predicted``."""
    report, spec = inputs.fit(fit), inputs.spec(fit)
    law = laws.fittable(report.law)
    fitted, held = selected_rows(inputs.table, law, spec, {})
    rows = inputs.table[held if held_out else fitted]
    if not len(rows):
        return rows.assign(predicted=np.empty(0))
    values = read_variables(law, rows, spec).values
    return rows.assign(predicted=law.predict(report.part({}).estimates(), values))


def equality(panel: Panel, rows: pd.DataFrame) -> None:
    """Equal axes over ``predicted`` and ``L`` of ``rows``, with the line of equality."""
    both = rows[["predicted", "L"]].to_numpy(float)
    margin = 0.05 * float(np.ptp(both)) or 0.01
    ends = [float(both.min()) - margin, float(both.max()) + margin]
    panel.ax.axline((ends[0], ends[0]), slope=1, color=style.GREY, lw=0.8, ls=(0, (4, 2)), zorder=1)
    panel.ax.set(xlim=ends, ylim=ends)
    panel.ax.yaxis.set_major_locator(MaxNLocator(6))
    panel.ax.xaxis.set_major_locator(MaxNLocator(6))


def say(panel: Panel, lines: list[str]) -> None:
    """Numbers in the panel's upper left corner, where predictions above the losses do not lie."""
    panel.ax.text(
        0.04, 0.97, "\n".join(lines), transform=panel.ax.transAxes, va="top", fontsize=6.5
    )


def _predictions(panel: Panel, inputs: Inputs, fit: str, held_out: bool) -> bool:
    """Draw the rows; whether there are any."""
    rows = predicted_rows(inputs, fit, held_out)
    if not len(rows):
        holdout = inputs.spec(fit).holdout
        panel.message(
            "no held-out run:\n"
            + (f"none has {holdout}" if holdout else "the fit holds nothing out")
        )
        return False
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
    equality(panel, rows)
    residual = (rows["L"] - rows["predicted"]).to_numpy(float)
    spread = float(np.sum((rows["L"] - rows["L"].mean()) ** 2))
    lines = [f"$n$ = {len(rows)}", f"RMSE = {np.sqrt(np.mean(residual**2)):.3g} nats"]
    if spread > 0 and len(rows) > 2:
        lines.append(f"$R^2$ = {1 - np.sum(residual**2) / spread:.3g}")
    say(panel, lines)
    panel.ax.set_xlabel("predicted loss (nats/token)")
    panel.ax.set_ylabel("observed loss (nats/token)")
    return True


FIGURES = {
    "F6a": partial(draw, held_out=False),
    "F6b": partial(draw, held_out=True),
    "baselines": baselines,
}
