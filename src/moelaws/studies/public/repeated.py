"""The figure of runs whose text repeats, with the law fitted to them and the law in print."""

from typing import Any

import numpy as np

from moelaws import laws
from moelaws.analysis.fitted import FittedInputs
from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.fitting.prediction import predict
from moelaws.fitting.report import group_draws
from moelaws.studies.public.figures import DOT

SIZES = 4  # the most sizes of a panel, evenly chosen


def repeated(inputs: FittedInputs, fit: str, unique: list[float]) -> Sheet:
    """Draws losses over epochs, a panel a number of ``unique`` tokens, a colour a size."""
    report, sheet = inputs.fit(fit), Sheet(style.DOUBLE, 2.6, len(unique))
    law, result = laws.fittable(report.law), report.group({})
    draws = group_draws(inputs.fits[fit], report, result)
    for panel, U in zip(sheet.panels, unique, strict=True):
        runs = inputs.rows(fit)
        runs = runs[np.isclose(runs["unique_tokens"], U)]
        sizes = runs["N_active"].value_counts().loc[lambda counts: counts > 2].index.sort_values()
        shown = sizes[:: -(-len(sizes) // SIZES)]
        for N, colour in zip(shown, style.ordered_colours(len(shown)), strict=True):
            own = runs[runs["N_active"] == N].sort_values("D")
            D = np.geomspace(own["D"].min(), own["D"].max(), 60)
            at = {"N": np.full(60, float(N)), "D": D, "U": np.full(60, U)}
            line = predict(law, result, draws, at, report.level)
            label: dict[str, Any] = {"color": colour, "label": style.short(float(N)), **DOT}
            panel.points(f"N={N:.3g}", own["D"] / U, own["L"], **label)
            panel.line(f"law, N={N:.3g}", D / U, line.value, line.low, line.high, color=colour)
            printed = law.predict(law.published or {}, at)
            look: dict[str, Any] = {"color": colour, "lw": 0.7, "ls": style.DASHES}
            panel.line(f"in print, N={N:.3g}", D / U, printed, **look)
        panel.title(f"{style.short(U)} unique tokens")
        panel.ax.set(xscale="log", yscale="log", xlabel="epochs $D/U$")
        style.fixed_ticks(panel.ax.yaxis, (2.6, 2.8, 3, 3.3, 3.6, 4, 5, 6, 8), "{:g}".format)
        low, high = panel.ax.get_ylim()
        panel.ax.set_ylim(low, high * (high / low) ** 0.4)  # room for the legend
        panel.legend("parameters $N$", loc="upper right", bbox_to_anchor=(1.03, 1.03))
    sheet.panels[0].ax.set_ylabel("loss (nats/token)")
    return sheet
