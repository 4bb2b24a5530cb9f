"""F6a, F6b: the data exponent over the one that the model exponent implies, over experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet, one_panel
from moelaws.studies.generalization.derived.consistency import OWN, PUBLISHED
from moelaws.studies.generalization.figures.axes import experts_axis, few_ticks
from moelaws.studies.generalization.laws import kappa

FORMS = (
    (kappa.LAW, r"own $\kappa_1 E^{\rho}$", "-"),
    (kappa.VARIANTS["log2"], r"own $c_0 + c_1 \log_2 E$", ":"),
)


def draw(inputs: Inputs, lines: bool) -> Sheet:
    """Draws kappa over E, with ``lines`` the lines of both forms through the own points."""
    table = inputs.derived("identities")
    own, published = (table[table["origin"] == origin] for origin in (OWN, PUBLISHED))
    sheet, panel = one_panel(style.SINGLE + 0.9)
    published = published.sort_values("E")
    marks: dict[str, Any] = {"color": style.GREY, "linestyle": style.DASHES, "linewidth": 0.9}
    if not lines:
        marks |= {"marker": "s", "markersize": 2.5}
        name = "published (Table 5)"
        panel.line(name, published["E"], published["kappa"], **marks, label=name)
    seen = own[own["kappa"].notna()]
    if len(seen):
        low, high = seen["kappa_low"], seen["kappa_high"]
        colour = style.ordered_colours(3)[0]
        panel.points("own", seen["E"], seen["kappa"], low, high, color=colour, label="own runs")
    else:
        panel.sheet.warn("no own kappa: no exponents above 0 for any number of experts")
    if lines:
        _lines(panel, inputs, np.asarray(seen["E"], float), marks)
    panel.ax.axhline(1, color=style.INK, linewidth=0.6, linestyle=(0, (1, 1.5)))
    panel.ax.set_yscale("log")
    experts_axis(panel.ax, [*seen["E"], *published["E"]])
    few_ticks(panel.ax.yaxis)
    panel.ax.set_ylabel(r"$\kappa = \alpha_D\,/\,\alpha_D^{pred}$")
    panel.legend()
    return sheet


def _lines(panel: Panel, inputs: Inputs, E: Any, dashed: dict[str, Any]) -> None:
    """Draws the published line, and both forms through the own points."""
    assert kappa.LAW.published is not None
    span, name = np.geomspace(1, 32, 41), "published\n(line over Table 5)"
    published = kappa.LAW.predict(kappa.LAW.published, {"E": span})
    panel.line(name, span, published, **dashed, label=name)
    table = inputs.derived("amplification")
    for (law, name, linestyle), colour in zip(FORMS, style.ordered_colours(3), strict=False):
        own = table[(table["origin"] == OWN) & (table["law"] == law.ref)]
        params = dict(zip(own["name"], own["value"], strict=True))
        if own["value"].isna().any() or len(E) < 2:
            continue
        grid = np.geomspace(E.min(), E.max(), 41)
        y = law.predict(params, {"E": grid})
        y = np.where(y > 0, y, np.nan)
        panel.line(name, grid, y, color=colour, linestyle=linestyle, label=name)
