"""Reduction factors over E: cost of E traditional experts over that of E sections."""

from __future__ import annotations

from typing import Any

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.studies.sectional.figures.common import EXPERTS_DRAWN, LOOKS, experts_axis
from moelaws.studies.sectional.model import CORRECTED, EXAMPLE, PRINTED, evaluate

RATIOS = (4, 1, 0.125)  # d0 / L, all that the factor of both depends on
DASHES: dict[str, Any] = {"color": style.GREY, **LOOKS[PRINTED]}


def draw(inputs: Inputs) -> Sheet:
    """Draws the factors of (a) projections, (b) attention, (c) both; above 1 sections pay."""
    sheet = Sheet(style.DOUBLE, 2.5, ["rectilinear"] * 3)
    E = EXPERTS_DRAWN
    printed = evaluate(PRINTED, E=E, **EXAMPLE)
    corrected = evaluate(CORRECTED, E=E, **EXAMPLE)
    projections, attention, total = sheet.panels
    projections.line(
        "Eq 15 as printed", E, printed["projection_factor"], label="published (Eq 15)", **DASHES
    )
    _corrected(projections, E, corrected["projection_factor"])
    for result, label in (
        ("attention_factor", "published (Eq 16,\n$L$ = 4.1k)"),
        ("attention_factor_eq14", "published (from\nEq 14)"),
    ):
        dotted = {**DASHES, "linestyle": (0, (1, 1.5))} if result.endswith("eq14") else DASHES
        attention.line(label.replace("\n", " "), E, printed[result], label=label, **dotted)
    _corrected(attention, E, corrected["attention_factor"])
    for ratio, colour in zip(RATIOS, style.ordered_colours(len(RATIOS)), strict=True):
        factor = evaluate(CORRECTED, E=E, L=1.0, d0=ratio, alpha=0.0)["total_factor"]
        name = f"$d_0/L$ = {ratio:g}"
        total.line(f"corrected, d0/L={ratio:g}", E, factor, color=colour, label=name)
    for panel, title in zip(sheet.panels, ("projections", "attention", "both"), strict=True):
        panel.ax.axhline(1, color=style.WARN, linewidth=0.8, linestyle=(0, (1, 1.5)))
        panel.ax.set_yscale("log")
        experts_axis(panel)
        panel.ax.set_title(f"({panel.name}) {title}", loc="left")
    projections.ax.set_ylabel("traditional / sectional cost")
    projections.ax.legend(loc="lower right", fontsize=6)
    attention.ax.legend(loc="lower left", bbox_to_anchor=(0.0, 0.1), fontsize=6)
    total.legend("corrected")
    return sheet


def _corrected(panel: Panel, E: Any, factor: Any) -> None:
    panel.line("corrected", E, factor, color=style.INK, linewidth=1.5, label="corrected")
