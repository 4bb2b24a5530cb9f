"""The cost S(E) of E sections, its parts, and what a second expert adds."""

from __future__ import annotations

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sectional.figures.common import (
    EXPERTS_DRAWN,
    LOOKS,
    experts_axis,
    explain_forms,
    shape_name,
)
from moelaws.studies.sectional.model import CORRECTED, EXAMPLE, PRINTED, SHAPES, evaluate

TERMS = {
    "projections": "projections",
    "attention_before": "attention before",
    "attention_experts": "attention in experts",
    "overhead": "overhead",
    "S": "whole cost $S$",
}


def draw(inputs: Inputs) -> Sheet:
    """Draws (a) S and its terms in one example and (b) S over S(1) at several shapes."""
    sheet = Sheet(style.DOUBLE, 2.9, ["rectilinear"] * 2)
    _terms(sheet.panels[0])
    _relative(sheet.panels[1])
    return sheet


def _terms(panel: Panel) -> None:
    for form, look in LOOKS.items():
        costs = evaluate(form, E=EXPERTS_DRAWN, **EXAMPLE)
        for (term, name), colour in zip(TERMS.items(), style.ordered_colours(5), strict=True):
            if form == PRINTED and term not in ("attention_before", "S"):
                continue  # the same in both
            whole = term == "S"
            panel.line(
                f"{term}, {form}",
                EXPERTS_DRAWN,
                costs[term],
                color=style.GREY if form == PRINTED else style.INK if whole else colour,
                linewidth=1.6 if whole else 1.0,
                label=name if form == CORRECTED else None,
                **look,
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


def _relative(panel: Panel) -> None:
    for (L, d0), colour in zip(SHAPES, style.ordered_colours(len(SHAPES)), strict=True):
        for form, look in LOOKS.items():
            cost = evaluate(form, E=EXPERTS_DRAWN, L=L, d0=d0, alpha=EXAMPLE["alpha"])["S"]
            panel.line(
                f"L={L}, d0={d0}, {form}",
                EXPERTS_DRAWN,
                cost / cost[0],
                color=style.GREY if form == PRINTED else colour,
                label=shape_name(L, d0) if form == CORRECTED else None,
                **look,
            )
    # Without overhead S(1) is twice the cost of one traditional expert, for any shape.
    panel.line(
        "E traditional experts, no overhead",
        EXPERTS_DRAWN,
        EXPERTS_DRAWN / 2,
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
