"""Figures of the published runs with the fits of Eq 1."""

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.predictions import curve
from moelaws.figures import axes, style
from moelaws.figures.axes import VALIDATION_LOSS
from moelaws.figures.losses import observed_over_predicted
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.routing.curves import EXPERTS, expert_label, label_sizes
from moelaws.studies.routing.routers import CUTOFF, ROUTERS, main_runs

SIZE = "base parameters $N$"
EFFECTIVE = "effective parameters $\\bar{N}$"
# Router -> a colour that all eyes tell from the others, and a mark.
COLOURS = {"S-Base": "#0b5fa5", "RL-R": "#d1730f", "Hash": "#4b8b3b"}
MARKS = {"S-Base": "o", "RL-R": "s", "Hash": "^"}
# The axes of losses are the same for all routers: of a panel's runs, and of predictions.
LOSS_ENDS = (1.94, 3.3)
EQUAL_ENDS = (1.9, 3.25)
SHOWN = (2, 8, 32, 128, 512)  # numbers of experts whose gains are drawn
LARGEST = 2e13  # base parameters, where the axis of gains ends
BELOW = -0.03  # nats/token, below the line of no gain: where a second interval has room
SIZES = ("25M", "370M")  # the columns of architectures
# The rows of architectures: what varies, and the fit.
ROWS = (("k", "s_base_all"), ("routing_frequency", "s_base_all"), ("routing_frequency", "hash_all"))
NAMES = {"s_base_all": "S-Base", "hash_all": "Hash"}
# The fraction of routed layers in words; 25M models have 8 layers, 370M ones 12. A smaller fraction
# is one layer.
FRACTIONS = {0.25: "a quarter", 0.5: "half", 1.0: "all"}


def of_router(inputs: FittedInputs, fit: str) -> pd.DataFrame:
    """Returns the runs that a router's law was fitted to, with the dense ones."""
    return main_runs(inputs.rows(fit)).sort_values(["N_dense", "E"])


def router_panels(sheet: Sheet) -> list[tuple[Panel, str, str]]:
    """Returns (panel, router, fit) for a sheet of three panels, with their titles set."""
    triples = [(p, r.name, r.fit) for p, r in zip(sheet.panels, ROUTERS, strict=True)]
    for panel, router, _ in triples:
        panel.title(f"{router}")
    return triples


def losses(inputs: FittedInputs) -> Sheet:
    """Draws the runs of each router with Eq 1, a colour for each number of experts."""
    sheet = Sheet(style.DOUBLE, 2.7, 3)
    for panel, _, fit in router_panels(sheet):
        runs = of_router(inputs, fit)
        N = np.geomspace(runs["N_dense"].min() / 1.25, runs["N_dense"].max() * 1.25, 60)
        for E, colour, rows in style.groups(runs, "E"):
            line = curve(inputs, fit, N_active=N, E=E)
            panel.line(f"Eq 1, E={E:g}", N, line.value, line.low, line.high, color=colour, lw=0.9)
            panel.points(
                f"E={E:g}",
                rows["N_dense"],
                rows["L"],
                color=colour,
                label=expert_label(E),
                **style.EDGE,
            )
        axes.size(panel.ax.xaxis, SIZE)
        axes.log(panel.ax.yaxis, "", ends=LOSS_ENDS)
    sheet.panels[0].ax.set_ylabel(VALIDATION_LOSS)
    sheet.panels[-1].legend(EXPERTS)
    return sheet


def effective(inputs: FittedInputs) -> Sheet:
    """Draws the losses over base size and over effective size, with the dense power law."""
    sheet = Sheet(style.DOUBLE, 2.8, 2)
    gains, dense = inputs.derived("gains"), inputs.rows("dense")
    ends = dense["N_dense"].min(), gains["N_effective"].max()
    N = np.geomspace(ends[0] / 1.3, ends[1] * 1.3, 80)
    law = curve(inputs, "dense", N=N)
    shown = {"N_dense": ("base size", SIZE), "N_effective": ("effective size", EFFECTIVE)}
    for panel, (column, (title, label)) in zip(sheet.panels, shown.items(), strict=True):
        panel.line("dense law", N, law.value, law.low, law.high, color=style.INK, lw=0.9, zorder=1)
        for router, colour in COLOURS.items():
            rows = gains[gains["router"] == router]
            panel.points(
                router,
                rows[column],
                rows["L"],
                color=colour,
                marker=MARKS[router],
                mfc="none",  # as marks lie on each other
                mew=0.8,
                label=router,
            )
        panel.points(
            "dense",
            dense["N_dense"],
            dense["L"],
            color=style.INK,
            marker="D",
            label="dense",
            **style.EDGE,
        )
        panel.title(f"over the {title}")
        panel.ax.set_xlim(N[0], N[-1])
        axes.size(panel.ax.xaxis, label)
        axes.log(panel.ax.yaxis, "", ends=LOSS_ENDS)
    sheet.panels[0].ax.set_ylabel(VALIDATION_LOSS)
    sheet.panels[-1].legend("router")
    return sheet


def goodness(inputs: FittedInputs) -> Sheet:
    """Draws each router's losses over those that Eq 1 predicts, coloured by experts."""
    sheet = Sheet(style.DOUBLE, 2.4, 3)
    for panel, _, fit in router_panels(sheet):
        runs = of_router(inputs, fit)
        runs["predicted"] = inputs.predict(fit, N_active=runs["N_dense"], E=runs["E"])
        observed_over_predicted(panel, {"": runs}, "E", style.palette(runs["E"]), expert_label)
        panel.ax.axis([*EQUAL_ENDS, *EQUAL_ENDS])
    for panel in sheet.panels[1:]:
        panel.ax.set_ylabel("")
    sheet.panels[-1].legend(EXPERTS)
    return sheet


def gains(inputs: FittedInputs) -> Sheet:
    """Draws gains over base size with Eq 1 and the cut-off's intervals, a panel for each router."""
    sheet = Sheet(style.DOUBLE, 2.7, 3)
    gains = inputs.derived("gains")
    cutoffs = inputs.derived("cutoffs", objective="squared").set_index("router")
    over_sizes = inputs.derived("sizes", quantity=CUTOFF).set_index("router")
    gains = gains[gains["E"].isin(SHOWN)]
    colours = style.palette(gains["E"])
    for panel, router, fit in router_panels(sheet):
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
        axes.log(panel.ax.xaxis, SIZE, 10.0 ** np.arange(7, 14), style.short, ends=(1e7, LARGEST))
    sheet.panels[0].ax.set_ylabel("loss saved by routing (nats/token)")
    sheet.panels[-1].legend(EXPERTS)
    return sheet


def routers(inputs: FittedInputs) -> Sheet:
    """Draws the losses of the routers over experts with Eq 1, a panel for each size."""
    runs = {router: of_router(inputs, router.fit) for router in ROUTERS}
    dense = next(iter(runs.values())).query("E == 1")
    sizes = dense.groupby("size")["N_dense"].first().sort_values()
    sheet = Sheet(style.DOUBLE, 4.2, len(sizes), columns=3)
    E = np.geomspace(1, 512, 80)
    for panel, (size, N) in zip(sheet.panels, sizes.items(), strict=True):
        for router, rows in runs.items():
            own = rows[(rows["size"] == size) & (rows["E"] > 1)]
            colour = COLOURS[router.name]
            losses = inputs.predict(router.fit, N_active=N, E=E)
            panel.line(f"Eq 1, {router.name}", E, losses, color=colour, lw=0.9)
            panel.points(
                router.name,
                own["E"],
                own["L"],
                color=colour,
                marker=MARKS[router.name],
                label=router.name,
                **style.EDGE,
            )
        level = float(dense[dense["size"] == size]["L"].mean())
        panel.line("dense", [1, 512], [level] * 2, color=style.INK, lw=0.8, ls=style.DASHES)
        axes.experts(panel.ax, (1, 4, 16, 64, 256), "")
    label_sizes(sheet, sizes.index, "experts $E$", "router")
    return sheet


def architectures(inputs: FittedInputs) -> Sheet:
    """Draws losses over experts by k and by the fraction of routed layers, with the fitted law."""
    sheet = Sheet(style.DOUBLE, 5.6, 6, columns=2)
    for i, (column, fit) in enumerate(ROWS):
        runs = inputs.rows(fit)
        runs = runs[runs["router"] != "Dense"]
        fixed = runs["routing_frequency"] == 0.5 if column == "k" else runs["k"] == 1
        runs = runs[fixed & runs["E"].isin([8, 64, 256])].sort_values("E")
        for panel, size in zip(sheet.panels[2 * i : 2 * i + 2], SIZES, strict=True):
            rows = runs[runs["size"] == size]
            for value, colour, own in style.groups(rows, column):
                label = f"{value:g}" if column == "k" else FRACTIONS.get(value, "one")
                law = inputs.predict(fit, N_active=own["N_active_nonemb"], E=own["utilisation"])
                panel.line(f"law, {label}", own["E"], law, color=colour, lw=0.9)
                panel.points(label, own["E"], own["L"], color=colour, label=label, **style.EDGE)
            axes.experts(panel.ax, (8, 64, 256), "")
            panel.title(f"{NAMES[fit]}, {size} base parameters")
        what = "active experts $k$" if column == "k" else "routed layers"
        sheet.panels[2 * i + 1].legend(what)
        sheet.panels[2 * i].ax.set_ylabel(VALIDATION_LOSS)
    for panel in sheet.panels[-2:]:
        panel.ax.set_xlabel("experts $E$")
    return sheet
