"""The cost model: S(E) and its terms, E_opt over the overhead, and reduction factors over E."""

from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter

from moelaws.analysis.inputs import Inputs
from moelaws.figures import axes, style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sectional.laws.cost import CORRECTED, PRINTED, evaluate

# (L, d0): the example of the text, a shorter and a longer sequence, a narrower and a wider model.
SHAPES = ((512, 512), (4096, 512), (4096, 4096), (4096, 16384), (32768, 4096))
COLOURS = dict(zip(SHAPES, style.ordered_colours(len(SHAPES)), strict=True))
EXAMPLE = {"L": 4096.0, "d0": 4096.0, "alpha": 1e8}
EXPERTS_DRAWN = np.geomspace(1, 64, 121)  # the values of E along an axis
TICKS = 2.0 ** np.arange(7)
TERMS = {
    "projections": "projections",
    "attention_before": "attention before",
    "attention_experts": "attention in experts",
    "overhead": "overhead",
    "S": "whole cost $S$",
}
BOUND = 2 ** (1 / 3)
# The panels of ``optimum``: the form, its result, the title.
VARIANTS = (
    (PRINTED, "E_opt_eq21", "published (Eq 21)"),
    (PRINTED, "E_opt", "published cost"),
    (CORRECTED, "E_opt", "corrected cost"),
)
RATIOS = (4, 1, 0.125)  # d0 / L, on which alone the factor of both depends
DOTTED: dict[str, Any] = {"color": style.WARN, "linestyle": (0, (1, 1.5))}


def shape_name(L: float, d0: float) -> str:
    return f"$L$ = {style.short(L)}, $d_0$ = {style.short(d0)}"


def _look(form: str, **corrected: Any) -> dict[str, Any]:
    """Returns how a form is drawn: the printed one as every published curve, without a label."""
    return corrected if form == CORRECTED else corrected | style.PUBLISHED | {"label": ""}


def finish(panel: Panel) -> None:
    """Explains the forms and makes both axes logarithmic, the x axis with numbers of experts."""
    panel.ax.plot([], [], label=f"published ({PRINTED})", **style.PUBLISHED)
    panel.ax.plot([], [], color=style.GREY, label=CORRECTED)
    panel.ax.set_yscale("log")
    axes.experts(panel.ax, TICKS)


def cost(inputs: Inputs) -> Sheet:
    """Draws (a) S and its terms in one example and (b) S over S(1) at several shapes."""
    sheet = Sheet(style.DOUBLE, 2.9, 2)
    _terms(sheet.panels[0])
    _relative(sheet.panels[1])
    return sheet


def _terms(panel: Panel) -> None:
    colours = [*style.ordered_colours(len(TERMS))[:-1], style.INK]
    for form in (PRINTED, CORRECTED):
        costs = evaluate(form, E=EXPERTS_DRAWN, **EXAMPLE)
        for (term, name), colour in zip(TERMS.items(), colours, strict=True):
            if form == PRINTED and term not in ("attention_before", "S"):
                continue  # the same in both
            look = _look(form, color=colour, label=name, linewidth=1.6 if term == "S" else 1.0)
            panel.line(f"{term}, {form}", EXPERTS_DRAWN, costs[term], **look)
    panel.ax.set_ylabel("cost (multiply-adds)")
    finish(panel)
    shape = shape_name(EXAMPLE["L"], EXAMPLE["d0"])
    panel.title(rf"{shape}, $\alpha$ = {axes.power(EXAMPLE['alpha'])}")
    panel.ax.legend(loc="upper left", fontsize=6)
    panel.ax.set_ylim(top=panel.ax.get_ylim()[1] * 30)  # room for the legend


def _relative(panel: Panel) -> None:
    for (L, d0), colour in COLOURS.items():
        for form in (PRINTED, CORRECTED):
            cost = evaluate(form, E=EXPERTS_DRAWN, L=L, d0=d0, alpha=EXAMPLE["alpha"])["S"]
            look = _look(form, color=colour, label=shape_name(L, d0))
            panel.line(f"L={L}, d0={d0}, {form}", EXPERTS_DRAWN, cost / cost[0], **look)
    # Without overhead S(1) is twice the cost of one traditional expert, for any shape.
    series, label = "E traditional experts, no overhead", "$E$ traditional experts"
    panel.line(series, EXPERTS_DRAWN, EXPERTS_DRAWN / 2, linewidth=0.9, label=label, **DOTTED)
    panel.ax.set_ylabel("$S(E)$ / $S(1)$")
    finish(panel)
    panel.legend()


def optimum(inputs: Inputs) -> Sheet:
    """Draws E_opt over the overhead, a panel for each variant, a line for each shape."""
    sheet = Sheet(style.DOUBLE, 2.5, 3)
    alpha = np.geomspace(1e6, 1e15, 181)
    for panel, (form, result, title) in zip(sheet.panels, VARIANTS, strict=True):
        for (L, d0), colour in COLOURS.items():
            y = evaluate(form, L=L, d0=d0, alpha=alpha)[result]
            panel.line(
                f"{title}, L={L}, d0={d0}",
                alpha,
                y,
                color=colour,
                linestyle=style.DASHES if form == PRINTED else "-",
                label=shape_name(L, d0),
            )
        for height, name in ((BOUND, "$2^{1/3}$"), (1.0, "$E$ = 1")):
            panel.ax.axhline(height, linewidth=0.8, **DOTTED)
            panel.ax.text(
                1e15, height + 0.012, name, fontsize=6, color=style.WARN, va="bottom", ha="right"
            )
        panel.ax.set_xscale("log")
        panel.ax.xaxis.set_major_formatter(FuncFormatter(axes.power))
        panel.ax.set(ylim=(0.0, 1.42), xlabel=r"overhead $\alpha$ (multiply-adds)")
        panel.title(title)
    sheet.panels[0].ax.set_ylabel("optimal number of experts $E_{opt}$")
    sheet.panels[-1].legend()
    return sheet


def reduction(inputs: Inputs) -> Sheet:
    """Draws the factors of (a) projections, (b) attention, (c) both; above 1 sections cost less."""
    sheet = Sheet(style.DOUBLE, 2.5, 3)
    E = EXPERTS_DRAWN
    printed, corrected = (evaluate(form, E=E, **EXAMPLE) for form in (PRINTED, CORRECTED))
    projections, attention, total = sheet.panels
    factor, label = printed["projection_factor"], "published (Eq 15)"
    ink: dict[str, Any] = {"color": style.INK, "linewidth": 1.5, "label": "corrected"}
    projections.line("Eq 15 as printed", E, factor, label=label, **style.PUBLISHED)
    projections.line("corrected", E, corrected["projection_factor"], **ink)
    for result, label in (
        ("attention_factor", "published (Eq 16,\n$L$ = 4.1k)"),
        ("attention_factor_eq14", "published (from\nEq 14)"),
    ):
        look = DOTTED if result.endswith("eq14") else {"linestyle": style.DASHES}
        look = look | {"color": style.GREY, "label": label}
        attention.line(label.replace("\n", " "), E, printed[result], **look)
    attention.line("corrected", E, corrected["attention_factor"], **ink)
    for ratio, colour in zip(RATIOS, style.ordered_colours(len(RATIOS)), strict=True):
        factor = evaluate(CORRECTED, E=E, L=1.0, d0=ratio, alpha=0.0)["total_factor"]
        name = f"$d_0/L$ = {ratio:g}"
        total.line(f"corrected, d0/L={ratio:g}", E, factor, color=colour, label=name)
    for panel, title in zip(sheet.panels, ("projections", "attention", "both"), strict=True):
        panel.ax.axhline(1, linewidth=0.8, **DOTTED)
        panel.ax.set_yscale("log")
        axes.experts(panel.ax, TICKS)
        panel.title(title)
    projections.ax.set_ylabel("traditional / sectional cost")
    projections.ax.legend(loc="lower right", fontsize=6)
    attention.ax.legend(loc="lower left", bbox_to_anchor=(0.0, 0.1), fontsize=6)
    total.legend("corrected")
    return sheet
