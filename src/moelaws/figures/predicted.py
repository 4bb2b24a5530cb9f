"""The figure of losses that fits predicted before a sweep, and of those that came."""

from collections.abc import Sequence

import matplotlib as mpl
import pandas as pd

from moelaws.figures import style
from moelaws.figures.sheet import Sheet
from moelaws.records.registration import Predicted


@mpl.rc_context(style.RC)
def draw(compared: Sequence[tuple[Predicted, pd.DataFrame]]) -> Sheet:
    """Draws by how much each loss differs from the predicted one, a panel a fit.

    The bar of a run is its interval: a mark inside its bar is a loss inside it.
    """
    sheet = Sheet(style.DOUBLE / 2 * len(compared), style.HEIGHT, len(compared))
    for (fit, losses), panel in zip(compared, sheet.panels, strict=True):
        value, inside = losses["value"], losses["L"].between(losses["low"], losses["high"])
        panel.points(
            "interval",
            value,
            0 * value,
            losses["low"] - value,
            losses["high"] - value,
            marker="none",
            color=style.GREY,
        )
        for name, rows, colour in (
            ("inside its interval", losses[inside], style.KINDS[0]),
            ("outside, or without one", losses[~inside], style.KINDS[1]),
        ):
            error = rows["L"] - rows["value"]
            look = {"markersize": 3, "color": colour, **style.EDGE}
            panel.points(name, rows["value"], error, label=name, **look)
        panel.key(f"{fit.level:.0%} interval of one run", color=style.GREY)
        panel.ax.axhline(0, **style.LOOKS["published"])
        panel.title(f"{fit.law}: {inside.sum()} of {len(losses)} inside")
        panel.ax.set(xlabel="predicted loss (nats/token)", ylabel="loss less predicted (nats)")
    sheet.align()
    sheet.legend()
    return sheet
