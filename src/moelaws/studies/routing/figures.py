"""What figures of the published runs draw beside these: Eq 1 as fitted, and gains by routing."""

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.predictions import curve
from moelaws.figures import axes, style
from moelaws.figures.sheet import Sheet
from moelaws.studies.routing.routers import CUTOFF, DENSE, ROUTERS, main_runs

FIRST = 5e9  # tokens, before which all curves fall steeply
FITS = {router.name: router.fit for router in ROUTERS}
SHOWN = (2, 8, 32, 128, 512)  # numbers of experts whose gains are drawn
LARGEST = 2e13  # base parameters, where the axis of gains ends
BELOW = -0.03  # nats/token, below the line of no gain: where a second interval has room
SIZES = ("25M", "370M")  # the columns of architectures
# The rows of architectures: what varies, and the fit.
ROWS = (("k", "s_base_all"), ("routing_frequency", "s_base_all"), ("routing_frequency", "hash_all"))
# The fraction of routed layers in words; 25M models have 8 layers, 370M ones 12. A smaller fraction
# is one layer.
FRACTIONS = {0.25: "a quarter", 0.5: "half", 1.0: "all"}


def dense_law(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the power law of the dense runs over base and effective sizes ``N``."""
    least, largest = inputs.rows("dense")["N_dense"].min(), inputs.derived("gains")["N_effective"]
    N = np.geomspace(least / 1.3, largest.max() * 1.3, 80)
    law = curve(inputs, "dense", N=N)
    return pd.DataFrame({"N": N, "L": law.value, "low": law.low, "high": law.high})


def over_experts(inputs: FittedInputs) -> pd.DataFrame:
    """Returns Eq 1 over experts for each base size and router, and the dense model's loss."""
    dense = inputs.rows("dense").groupby("size")[["N_dense", "L"]].mean().sort_values("N_dense")
    E = np.geomspace(1, 512, 80)
    lines = []
    for size, N, L in dense.itertuples():
        lines.append(pd.DataFrame({"size": size, "router": DENSE, "E": E[[0, -1]], "L": L}))
        for router, fit in FITS.items():
            loss = inputs.predict(fit, N_active=N, E=E)
            lines.append(pd.DataFrame({"size": size, "router": router, "E": E, "L": loss}))
    return pd.concat(lines)


def curves(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the losses of S-Base and of the dense model over tokens, without the first ones."""
    rows = main_runs(inputs.derived("curves"))
    rows = rows[rows["router"].isin([ROUTERS[0].name, DENSE]) & (rows["D"] >= FIRST)]
    sizes = inputs.completed.sort_values("N_dense")["size"]
    return rows.assign(size=pd.Categorical(rows["size"], sizes.unique()))


def architectures(inputs: FittedInputs) -> pd.DataFrame:
    """Returns runs by k and by the fraction of routed layers, with their fitted ``law``."""
    tables = []
    for column, fit in ROWS:
        runs = inputs.rows(fit).sort_values(["size", column, "E"])
        fixed = runs["routing_frequency"] == 0.5 if column == "k" else runs["k"] == 1
        runs = runs[fixed & runs["E"].isin([8, 64, 256]) & runs["size"].isin(SIZES)]
        words = [f"{x:g}" if column == "k" else FRACTIONS.get(x, "one") for x in runs[column]]
        law = inputs.predict(fit, N_active=runs["N_active_nonemb"], E=runs["utilisation"])
        what = "active experts" if column == "k" else "routed layers"
        about = runs["router"] + ", " + runs["size"] + f": {what}"
        tables.append(runs.assign(architecture=words, law=law, panel=about))
    return pd.concat(tables)


def gains(inputs: FittedInputs) -> Sheet:
    """Draws gains over base size with Eq 1 and the cut-off's intervals, a panel for each router."""
    sheet = Sheet(style.DOUBLE, 2.7, 3)
    gains = inputs.derived("gains")
    cutoffs = inputs.derived("cutoffs", objective="squared").set_index("router")
    over_sizes = inputs.derived("sizes", quantity=CUTOFF).set_index("router")
    gains = gains[gains["E"].isin(SHOWN)]
    colours = style.palette(gains["E"])
    for panel, (router, fit) in zip(sheet.panels, FITS.items(), strict=True):
        panel.title(router)
        own = gains[gains["router"] == router]
        measured = float(own["N_dense"].max())
        for low, high, dashes in (
            (float(own["N_dense"].min()), measured, "-"),
            (measured, LARGEST, style.DASHES),
        ):
            N = np.geomspace(low, high, 60)
            dense = inputs.predict(fit, N_active=N, E=1)
            for E, colour in colours.items():
                gain = dense - inputs.predict(fit, N_active=N, E=E)
                panel.line(f"Eq 1, E={E:g}", N, gain, color=colour, lw=0.9, ls=dashes)
        for E, colour, rows in style.groups(own, "E", colours):
            panel.points(
                f"E={E:g}",
                rows["N_dense"],
                rows["gain"],
                color=colour,
                label=f"{E:g}",
                **style.EDGE,
            )
        panel.ax.axhline(0, color=style.GREY, lw=0.6, zorder=0)
        cut = cutoffs.loc[router]
        for name, label, interval, y, alpha in (
            ("independent residuals", "residuals", cut, 0.0, 0.5),
            ("base sizes left out", "sizes", over_sizes.loc[router], BELOW, 0.25),
        ):
            ends = 10 ** np.clip([interval["low"], interval["high"]], 0, np.log10(LARGEST))
            panel.line(
                f"cut-off, interval by {name}",
                ends,
                [y, y],
                color=style.WARN,
                lw=3,
                alpha=alpha,
                label=f"cut-off by\n{label}",
            )
        panel.points("cut-off", 10 ** cut["log10_N"], 0, color=style.WARN, marker="o", **style.EDGE)
        stated = 10 ** cut["stated"], 0
        panel.points("cut-off, stated", *stated, color=style.INK, marker="D", ms=3, **style.EDGE)
        panel.ax.set_ylim(-0.07, 0.62)
        axes.log(
            panel.ax.xaxis,
            "base parameters $N$",
            10.0 ** np.arange(7, 14),
            style.short,
            ends=(1e7, LARGEST),
        )
    sheet.panels[0].ax.set_ylabel("loss saved by routing (nats/token)")
    sheet.panels[-1].legend("experts")
    return sheet
