"""Figures of published runs that read no fit: isoFLOP curves, ladder, best rates and batches."""

from typing import Any

import numpy as np

from moelaws.analysis.inputs import Inputs
from moelaws.figures import axes, style
from moelaws.figures.axes import COMPUTE
from moelaws.figures.sheet import Sheet, one_panel
from moelaws.studies.public.derived import budgets, near

SIZE = "active parameters $N$"
STAR: dict[str, Any] = {"marker": "*", "ms": 8, "mec": style.INK, "mew": 0.4, "zorder": 4}
# Law of the table of rates -> its name, colour and mark
LAWS = {
    "step_law": ("Step Law", "#0b5fa5", "s"),
    "leverage": ("leverage", "#d1730f", "^"),
    "marin": ("marin", "#4b8b3b", "D"),
    "joint": ("joint", "#8a6fb0", "v"),
    "deepseek": ("DeepSeek", "#a8324a", "P"),
}
# Quantity of the table of rates -> the label and the ends of its axis
AXES = {"lr": ("peak learning rate", (1e-4, 1.2e-2)), "batch": ("batch (tokens)", (5e4, 4e6))}
SIZES = (5e7, 1e8, 3e8, 1e9, 3e9)
SHOWN = 8  # the most budgets of a panel


def isoflop(inputs: Inputs, groups: list[str]) -> Sheet:
    """Draws the losses of budgets over size with their parabolas and optima, a panel a group."""
    optima, runs = inputs.derived("optima"), inputs.derived("runs")
    here = [group for group in groups if group in set(runs["group"])]
    sheet = Sheet(style.DOUBLE, 2.6, len(here))
    for panel, group in zip(sheet.panels, here, strict=True):
        every = [rows for rows in budgets(runs[runs["group"] == group]) if len(rows) > 2]
        shown = every[:: -(-len(every) // SHOWN)]  # of many budgets every so many
        colours = style.ordered_colours(len(shown))
        for rows, colour in zip(shown, colours, strict=True):
            C = float(rows["C"].mean())
            best = optima[(optima["group"] == group) & np.isclose(optima["C"], C, rtol=1e-9)]
            # Hollow where there are too few sizes for a parabola.
            look = style.EDGE if len(best) else {"mfc": "none", "mec": colour, "mew": 0.9}
            label = axes.power(C)
            panel.points(f"C={C:.3g}", rows["N"], rows["loss"], color=colour, label=label, **look)
            for N_star in best[best["inside"]]["N_star"].astype(float):
                fitted = near(rows)
                curve = np.polyfit(np.log(fitted["N"]), np.log(fitted["loss"]), 2)
                N = np.geomspace(fitted["N"].min(), fitted["N"].max(), 60)
                loss = np.exp(np.polyval(curve, np.log(N)))
                panel.line(f"parabola, C={C:.3g}", N, loss, color=colour, lw=0.9)
                value = np.exp(np.polyval(curve, np.log(N_star)))
                panel.points(f"optimum, C={C:.3g}", N_star, value, color=colour, **STAR)
        panel.title(group)
        axes.log(panel.ax.xaxis, SIZE, SIZES, style.short)
        panel.ax.set_ylabel(f"loss ({runs[runs['group'] == group]['unit'].iloc[0]})")
        low, high = panel.ax.get_ylim()
        panel.ax.set_ylim(low, high + 0.35 * (high - low))  # room for the legend
        panel.legend(
            axes.BUDGET,
            loc="upper right",
            bbox_to_anchor=(1.03, 1.03),
            ncols=3,
            fontsize=5.5,
            title_fontsize=6,
            handlelength=0.8,
            handletextpad=0.2,
            columnspacing=0.8,
            labelspacing=0.2,
        )
    return sheet


def ladder(inputs: Inputs, dataset: str, floor: float) -> Sheet:
    """Draws the losses of dense models and mixtures over compute, with the leverage between."""
    sheet, panel = one_panel(1.2 * style.SINGLE, 2.7)
    leverage = inputs.derived("leverage").query("floor == @floor")
    rows = inputs.completed[inputs.completed["dataset"] == dataset].sort_values("C")
    if not len(leverage):
        return panel.message(f"the runs of {dataset} are not here; run moelaws import {dataset}")
    own = leverage.iloc[0]
    C = np.geomspace(rows["C"].min() / 2, rows["C"].max() * 2, 60)
    looks = {"dense": ("#d1730f", "D", 1.0), "moe": ("#0b5fa5", "o", own["leverage"])}
    for kind, (colour, mark, factor) in looks.items():
        name = {"dense": "dense models", "moe": "mixtures"}[kind]
        runs = rows[rows["kind"] == kind]
        loss = floor + own["coefficient"] * (factor * C) ** -own["alpha"]
        panel.line(f"{name}, line", C, loss, color=colour, lw=1.0)
        panel.points(
            name, runs["C"], runs["L"], color=colour, marker=mark, label=name, **style.EDGE
        )
    level = float(np.median(rows["L"]))
    dense = ((level - floor) / own["coefficient"]) ** (-1 / own["alpha"])
    ends = [dense / own["leverage"], dense]
    panel.line("equal loss", ends, [level] * 2, color=style.INK, lw=0.8, marker="|")
    words = f"{own['leverage']:.1f} times ({own['low']:.1f} to {own['high']:.1f})"
    panel.ax.text(dense * 1.25, level, words, va="bottom", fontsize=7)
    panel.ax.set(xscale="log", xlabel=COMPUTE, ylabel=axes.LOSS)
    panel.legend(loc="upper right", bbox_to_anchor=(1.0, 1.0))
    return sheet


def beside_laws(inputs: Inputs, groups: dict[str, list[str]], quantity: str) -> Sheet:
    """Draws the best ``quantity``, lr or batch, over compute, a panel a data set.

    Beside it stands what those published laws give that the data set's group names.
    """
    label_y, ends_y = AXES[quantity]
    every = inputs.derived("rates")
    here = [name for name in groups if name in set(every["dataset"])]
    if not here:
        return one_panel()[0].message("no runs of several learning rates are here")
    sheet = Sheet(style.DOUBLE, 2.6, len(here))
    for panel, dataset in zip(sheet.panels, here, strict=True):
        rows = every[every["dataset"] == dataset].sort_values("C")
        panel.points(
            "best of the runs",
            rows["C"],
            rows[quantity],
            low=rows[f"{quantity}_low"],
            high=rows[f"{quantity}_high"],
            color=style.INK,
            label="best of the runs",
            zorder=3,
            **style.EDGE,
        )
        for law in groups[dataset]:
            label, colour, mark = LAWS[law]
            known = rows[rows[f"{quantity}_{law}"].notna()]
            panel.points(
                f"by {label}",
                known["C"],
                known[f"{quantity}_{law}"],
                color=colour,
                marker=mark,
                label=label,
                ms=3,
                mfc="none",
                mew=0.8,
            )
        panel.title(dataset)
        panel.ax.set(xscale="log", xlabel=COMPUTE)
        axes.log(panel.ax.yaxis, "", text=axes.power, ends=ends_y)
    sheet.panels[0].ax.set_ylabel(label_y)
    sheet.panels[-1].legend()
    return sheet
