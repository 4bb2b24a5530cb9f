"""What the leverage paper's figures share: axes, points of leverage, and the published leverage."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from moelaws.figures import axes, style
from moelaws.figures.sheet import Panel
from moelaws.studies.leverage.laws import joint

LEVERAGE = "efficiency leverage EL"
RATIO = "activation ratio $A = E_a/E$"
PUBLISHED_BUDGETS = (1e18, 3e20)  # FLOP: the least and the largest of the paper's isoFLOP curves


def leverage_axis(panel: Panel, estimates: ArrayLike) -> None:
    """Makes the y axis one of leverage that shows the estimates; intervals may run off it."""
    values = np.asarray(estimates, float)
    values = values[np.isfinite(values) & (values > 0)]
    values = np.append(values, 1.0)
    axes.log(panel.ax.yaxis, LEVERAGE, ends=(values.min() / 1.3, values.max() * 1.5))
    panel.ax.axhline(1, color=style.INK, linewidth=0.5, zorder=0.5)


def leverage_points(
    panel: Panel, series: str, x: ArrayLike, rows: pd.DataFrame, **options: Any
) -> None:
    """Draws EL of ``rows`` over ``x``, with ``plot``'s options; infinite ends run off the axis."""
    EL, low, high = (rows[name].to_numpy(float) for name in ("EL", "EL_low", "EL_high"))
    x = np.asarray(x, float)
    panel.sheet.record(panel.name, series, x=x, y=EL, low=low, high=high)
    shown = np.isfinite(EL)
    options = {"marker": "o", "linestyle": "none", **options}
    (marks,) = panel.ax.plot(x[shown], EL[shown], **options)
    top = np.where(np.isfinite(high), np.minimum(high, 1e6), 1e6)
    bars = shown & ~np.isnan(low)
    panel.ax.vlines(
        x[bars],
        np.maximum(low[bars], 1e-6),
        top[bars],
        color=marks.get_color(),
        linewidth=0.7,
        alpha=0.7,
        zorder=marks.get_zorder() - 0.1,
    )


def published_leverage(A: ArrayLike, G: ArrayLike, C: ArrayLike) -> NDArray[np.float64]:
    """Returns EL by Eq 4 with Table 6 at A = E_a / E, granularity G and compute C (FLOP)."""
    return joint.LAW.predict(joint.LAW.published or {}, {"A": A, "G": G, "C": C})
