"""Figures with fits: best size and tokens over compute, the frontier, and text that repeats."""

from typing import Any

import numpy as np

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.predictions import curve
from moelaws.figures import axes, style
from moelaws.figures.axes import COMPUTE
from moelaws.figures.sheet import Sheet, one_panel
from moelaws.laws import deepseek, holistic, marin
from moelaws.laws.base import Law
from moelaws.laws.leverage import allocation
from moelaws.studies.public.figures import STAR

# Group -> a colour and a mark that all eyes tell from the others
LOOKS: dict[str, dict[str, Any]] = {
    "marin-v16": {"color": "#0b5fa5", "marker": "o"},
    "marin-it02 gatednorm": {"color": "#4b8b3b", "marker": "s"},
    "marin-it02 adamh": {"color": "#8a6fb0", "marker": "^"},
    "farseer": {"color": "#d1730f", "marker": "D"},
}
SIZES = 4  # the most sizes of a panel of text that repeats, evenly chosen
# Recipe in print -> its law and the dashes of its line
RECIPES: dict[str, tuple[Law, Any]] = {
    "marin": (marin.LAW, style.DASHES),
    "leverage": (allocation.LAW, "-."),
    "holistic": (holistic.LAW, ":"),
    "deepseek (dense)": (deepseek.VARIANTS["allocation"], (0, (1, 3))),
}


def optima(inputs: FittedInputs) -> Sheet:
    """Draws the best size and tokens over compute with their intervals, beside recipes in print."""
    sheet = Sheet(style.DOUBLE, 2.8, 2)
    optima = inputs.derived("optima")
    optima = optima[optima["inside"] & optima["group"].isin([*LOOKS])]
    C = np.geomspace(optima["C"].min() / 1.5, 2e21, 40)
    for panel, name, fit in zip(sheet.panels, ("N", "D"), ("size", "tokens"), strict=True):
        for recipe, (law, dashes) in RECIPES.items():
            values = law.evaluate({}, {"C": C})
            variable = "N_active" if name == "N" else "D"
            if variable in values:
                look = {**style.PUBLISHED, "linestyle": dashes, "lw": 1.0, "label": recipe}
                panel.line(f"in print: {recipe}", C, values[variable], **look)
        for group, own in LOOKS.items():
            rows = optima[optima["group"] == group].sort_values("C")
            if not len(rows):
                continue
            panel.points(
                group,
                rows["C"],
                rows[f"{name}_star"],
                low=rows[f"{name}_low"],
                high=rows[f"{name}_high"],
                label=group,
                **own,
                **style.EDGE,
            )
            for result in (part for part in inputs.fit(fit).parts if part.where["group"] == group):
                line = inputs.law(fit).predict(result.estimates(), {"C": rows["C"]})
                line = line / (6.0 if name == "N" else 1.0)
                panel.line(f"{group}, line", rows["C"], line, color=own["color"], lw=0.8)
        panel.ax.set(xscale="log", yscale="log", xlabel=COMPUTE)
    sheet.panels[0].title("the best size")
    sheet.panels[1].title("the best number of tokens")
    sheet.panels[0].ax.set_ylabel("best active parameters $N^*$")
    sheet.panels[1].ax.set_ylabel("best training tokens $D^*$")
    sheet.panels[1].legend("runs and recipes")
    return sheet


def frontier(inputs: FittedInputs) -> Sheet:
    """Draws the loss at the optimum over compute, and the runs of 1e21 that no fit has seen."""
    sheet, panel = one_panel(1.35 * style.SINGLE, 2.9)
    predictions, optima = inputs.derived("predictions"), inputs.rows("frontier")
    C = np.geomspace(optima["C"].min() / 1.3, predictions["C"].max() * 1.3, 80)
    own = curve(inputs, "frontier", C=C)
    panel.line(
        "frontier", C, own.value, own.low, own.high, color="#0b5fa5", label="law and interval"
    )
    marin_law = marin.VARIANTS["loss"]
    printed = marin_law.evaluate(marin_law.published or {}, {"C": C})["L"]
    panel.line("in print: marin", C, printed, **style.PUBLISHED, lw=0.9, label="marin, in print")
    panel.points(
        "optima",
        optima["C"],
        optima["L_star"],
        low=optima["L_low"],
        high=optima["L_high"],
        color="#0b5fa5",
        label="optima, fitted",
        **STAR,
    )
    new = predictions.drop_duplicates("run_id")
    panel.points(
        "runs not fitted",
        new["C"],
        new["observed"],
        color=style.WARN,
        mfc="none",
        mew=0.9,
        label="runs, not fitted",
    )
    panel.ax.set(xscale="log", xlabel=COMPUTE)
    axes.log(panel.ax.yaxis, axes.LOSS)
    panel.legend(loc="upper right", bbox_to_anchor=(1.0, 1.0))
    inset = panel.ax.inset_axes((0.09, 0.1, 0.36, 0.4))
    inset.fill_between(C, own.low, own.high, color="#0b5fa5", alpha=0.14, linewidth=0)
    inset.plot(C, own.value, color="#0b5fa5", lw=0.9)
    inset.plot(C, printed, **style.PUBLISHED, lw=0.8)
    inset.plot(new["C"], new["observed"], "o", color=style.WARN, mfc="none", mew=0.9)
    top = float(new["C"].max())
    inset.set_ylim(2.56, 2.67)
    axes.log(inset.xaxis, "", [top], axes.power, ends=(0.6 * top, 1.5 * top))
    axes.fixed_ticks(inset.yaxis, (2.58, 2.62, 2.66), "{:.2f}".format)
    inset.tick_params(labelsize=5.5)
    return sheet


def repeated(inputs: FittedInputs, fit: str, unique: list[float]) -> Sheet:
    """Draws losses over epochs, a panel a number of ``unique`` tokens, a colour a size."""
    law, sheet = inputs.law(fit), Sheet(style.DOUBLE, 2.6, len(unique))
    for panel, U in zip(sheet.panels, unique, strict=True):
        runs = inputs.rows(fit)
        runs = runs[np.isclose(runs["unique_tokens"], U)]
        sizes = runs["N_active"].value_counts().loc[lambda counts: counts > 2].index.sort_values()
        shown = sizes[:: -(-len(sizes) // SIZES)]
        for N, colour, own in style.groups(runs.sort_values("D"), "N_active", style.palette(shown)):
            D = np.geomspace(own["D"].min(), own["D"].max(), 60)
            at = {"N": np.full(60, N), "D": D, "U": np.full(60, U)}
            line = curve(inputs, fit, **at)
            panel.points(
                f"N={N:.3g}",
                own["D"] / U,
                own["L"],
                color=colour,
                label=style.short(N),
                **style.EDGE,
            )
            panel.line(f"law, N={N:.3g}", D / U, line.value, line.low, line.high, color=colour)
            printed = law.predict(law.published or {}, at)
            panel.line(
                f"in print, N={N:.3g}", D / U, printed, color=colour, lw=0.7, ls=style.DASHES
            )
        panel.title(f"{style.short(U)} unique tokens")
        panel.ax.set(xscale="log", xlabel="epochs $D/U$")
        axes.log(panel.ax.yaxis, "")
        low, high = panel.ax.get_ylim()
        panel.ax.set_ylim(low, high * (high / low) ** 0.4)  # room for the legend
        panel.legend("parameters $N$", loc="upper right", bbox_to_anchor=(1.03, 1.03))
    sheet.panels[0].ax.set_ylabel(axes.LOSS)
    return sheet
