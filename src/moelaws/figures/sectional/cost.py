"""The cost S(E) of E sections, its parts, and what a second expert adds."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sectional.common import (
    CORRECTED,
    EXAMPLE,
    FORMS,
    LOOKS,
    PRINTED,
    SHAPES,
    evaluate,
    explain_forms,
    shape_name,
)
from moelaws.figures.sheet import Panel, Sheet
from moelaws.laws.base import Array

MOST = 64.0  # experts
PARTS = {
    "projections": "projections",
    "attention_before": "attention before",
    "attention_experts": "attention in experts",
    "overhead": "overhead",
    "S": "whole cost $S$",
}


def draw(inputs: Inputs) -> Sheet:
    """(a) S and its parts in one example; (b) S over that of a single expert, several shapes."""
    sheet = Sheet(style.DOUBLE, 2.9, ["rectilinear"] * 2)
    E = np.geomspace(1, MOST, 121)
    _parts(sheet.panels[0], E)
    _relative(sheet.panels[1], E)
    return sheet


def _parts(panel: Panel, E: Array) -> None:
    for form in FORMS:
        found = evaluate(form, E=E, **EXAMPLE)
        for (part, name), colour in zip(PARTS.items(), style.ordered_colours(5), strict=True):
            if form == PRINTED and part not in ("attention_before", "S"):
                continue  # the same in both
            whole = part == "S"
            panel.line(
                f"{part}, {FORMS[form]}",
                E,
                found[part],
                color=style.GREY if form == PRINTED else style.INK if whole else colour,
                linewidth=1.6 if whole else 1.0,
                label=name if form == CORRECTED else None,
                **LOOKS[form],
            )
    panel.ax.set_yscale("log")
    panel.ax.set_ylabel("cost (multiply-adds)")
    experts_axis(panel)
    panel.ax.set_title(
        f"({panel.name}) {shape_name(EXAMPLE['L'], EXAMPLE['d0'])}, "
        rf"$\alpha$ = {style.power(EXAMPLE['alpha'])}",
        loc="left",
    )
    explain_forms(panel)
    panel.ax.legend(loc="upper left", fontsize=6)
    panel.ax.set_ylim(top=panel.ax.get_ylim()[1] * 30)  # room for the legend


def _relative(panel: Panel, E: Array) -> None:
    for (L, d0), colour in zip(SHAPES, style.ordered_colours(len(SHAPES)), strict=True):
        for form in FORMS:
            found = evaluate(form, E=E, L=L, d0=d0, alpha=EXAMPLE["alpha"])["S"]
            panel.line(
                f"L={L}, d0={d0}, {FORMS[form]}",
                E,
                found / found[0],
                color=style.GREY if form == PRINTED else colour,
                label=shape_name(L, d0) if form == CORRECTED else None,
                **LOOKS[form],
            )
    # Without overhead S(1) is twice the cost of one traditional expert, for any shape.
    panel.line(
        "E traditional experts, no overhead",
        E,
        E / 2,
        color=style.WARN,
        linewidth=0.9,
        linestyle=(0, (1, 1.5)),
        label="$E$ traditional experts",
    )
    panel.ax.set_yscale("log")
    panel.ax.set_ylabel("$S(E)$ / $S(1)$")
    experts_axis(panel)
    explain_forms(panel)
    panel.legend()


def experts_axis(panel: Panel) -> None:
    """Whole numbers of experts, a factor of two apart."""
    ax = panel.ax
    ax.set_xscale("log")
    ticks = [2.0**i for i in range(1 + int(np.log2(MOST)))]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("experts $E$")


FIGURES = {"cost": draw}
