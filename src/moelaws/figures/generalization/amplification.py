"""F6a, F6b: the data exponent over the one that the model exponent implies, over experts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from moelaws import laws
from moelaws.analysis.generalization.amplification import LAWS
from moelaws.analysis.generalization.identities import OWN, PUBLISHED
from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.generalization.axes import experts_axis, few_ticks
from moelaws.figures.sheet import Panel, Sheet

NAMES = {LAWS[0]: r"own $\kappa_1 E^{\rho}$", LAWS[1]: r"own $c_0 + c_1 \log_2 E$"}
DASHES = (0, (4, 2))


def draw(inputs: Inputs, lines: bool) -> Sheet:
    """kappa over E; with ``lines`` those of both forms through the own points."""
    table = inputs.derived("identities")
    own, published = (table[table["origin"] == origin] for origin in (OWN, PUBLISHED))
    sheet = Sheet(style.SINGLE + 0.9, style.HEIGHT)
    (panel,) = sheet.panels
    published = published.sort_values("E")
    marks: dict[str, Any] = {"color": style.GREY, "linestyle": DASHES, "linewidth": 0.9}
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
    table = inputs.derived("amplification")
    for i, ref in enumerate(LAWS):
        law = laws.fittable(ref)
        span = np.geomspace(1, 32, 41)
        assert law.published is not None
        if i == 0:
            name = "published\n(line over Table 5)"
            panel.line(name, span, law.predict(law.published, {"E": span}), **dashed, label=name)
        rows = table[(table["origin"] == OWN) & (table["law"] == ref)].set_index("name")["value"]
        if rows.isna().any() or len(E) < 2:
            continue
        grid = np.geomspace(E.min(), E.max(), 41)
        y = law.predict({str(name): float(v) for name, v in rows.items()}, {"E": grid})
        style_of = {"color": style.ordered_colours(3)[i], "linestyle": "-" if i == 0 else ":"}
        panel.line(NAMES[ref], grid, np.where(y > 0, y, np.nan), **style_of, label=NAMES[ref])


FIGURES = {"F6a": partial(draw, lines=False), "F6b": partial(draw, lines=True)}
