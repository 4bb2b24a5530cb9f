"""Figures with fits: what recipes and fits give beside the optima, and text that repeats."""

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.predictions import curve
from moelaws.figures import axes, style
from moelaws.figures.sheet import Sheet
from moelaws.laws import deepseek, holistic, marin
from moelaws.laws.base import Law
from moelaws.laws.leverage import allocation

SIZES = 4  # the most sizes of a panel of text that repeats, evenly chosen
# Recipe in print -> its law
RECIPES: dict[str, Law] = {
    "marin": marin.LAW,
    "leverage": allocation.LAW,
    "holistic": holistic.LAW,
    "deepseek (dense)": deepseek.VARIANTS["allocation"],
}


def recipes(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the best size and tokens over compute by recipes in print, of which few give both."""
    C = np.geomspace(inputs.derived("optima")["C"].min() / 1.5, 2e21, 40)
    own = {name: law.evaluate({}, {"C": C}) for name, law in RECIPES.items()}
    rows = [pd.DataFrame({**values, "C": C, "recipe": name}) for name, values in own.items()]
    return pd.concat(rows)


def sizes(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the optima of each group that the fit of sizes knows, with ``N`` on its line."""
    optima, law = inputs.derived("optima"), inputs.law("size")
    rows = []
    for part in inputs.fit("size").parts:
        own = optima[optima["group"] == part.where["group"]]
        rows.append(own.assign(N=law.predict(part.estimates(), {"C": own["C"]}) / 6.0))
    return pd.concat(rows)


def printed(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the least loss over compute that marin prints."""
    C = np.geomspace(inputs.rows("frontier")["C"].min() / 4, 1.3e21, 80)
    law = marin.VARIANTS["loss"]
    return pd.DataFrame({"C": C, **law.evaluate(law.published or {}, {"C": C})})


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
