"""How the sectional paper's figures show shapes, experts and the two forms of the cost model."""

from __future__ import annotations

from typing import Any

import numpy as np

from moelaws.figures import style
from moelaws.figures.sheet import Panel
from moelaws.studies.sectional.model import CORRECTED, PRINTED

EXPERTS_DRAWN = np.geomspace(1, 64, 121)  # the number E along an axis
# As printed in grey dashes, as every published curve; corrected in ink.
LOOKS: dict[str, dict[str, Any]] = {
    PRINTED: {"linestyle": style.DASHES},
    CORRECTED: {"linestyle": "-"},
}


def shape_name(L: float, d0: float) -> str:
    """Returns the name of a shape in a legend."""
    return f"$L$ = {style.short(L)}, $d_0$ = {style.short(d0)}"


def explain_forms(panel: Panel) -> None:
    """Adds legend entries for the two line styles."""
    for form, look in LOOKS.items():
        label = f"published ({form})" if form == PRINTED else form
        panel.ax.plot([], [], color=style.GREY, label=label, **look)


def experts_axis(panel: Panel) -> None:
    """Gives the panel an axis of whole numbers of experts, a factor of two apart."""
    ax = panel.ax
    ax.set_xscale("log")
    ticks = [2.0**i for i in range(1 + int(np.log2(EXPERTS_DRAWN[-1])))]
    style.fixed_ticks(ax.xaxis, ticks)
    ax.set_xlabel("experts $E$")
