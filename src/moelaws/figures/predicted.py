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

    The bar of a run is the interval that was predicted for it. A bar across the line is a loss
    inside its interval.
    """
    sheet = Sheet(style.DOUBLE / 2 * len(compared), style.HEIGHT, len(compared))
    for (fit, losses), panel in zip(compared, sheet.panels, strict=True):
        inside = losses["L"].between(losses["low"], losses["high"])
        for name, rows, colour in (
            (f"inside its {fit.level:.0%} interval", losses[inside], style.KINDS[0]),
            ("outside, or without one", losses[~inside], style.KINDS[1]),
        ):
            error, low, high = (rows["L"] - rows[end] for end in ("value", "high", "low"))
            look = {"markersize": 3, "color": colour, **style.TABLE["edge"]}
            panel.points(name, rows["value"], error, low, high, label=name, **look)
        panel.ax.axhline(0, **style.LOOKS["published"])
        panel.title(f"{fit.law}: {inside.sum()} of {len(losses)} inside")
        panel.ax.set(xlabel="predicted loss (nats/token)", ylabel="loss less predicted (nats)")
    sheet.align()
    sheet.legend()
    return sheet
