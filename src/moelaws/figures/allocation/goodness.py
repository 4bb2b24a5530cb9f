"""F3a, F3b, F5a, F5b: losses predicted by Eq 2 and by its baselines against measured ones."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from moelaws.analysis.allocation.comparison import Predicted, predicted, rmse
from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.allocation.common import DASHES, bars, colours, percent
from moelaws.figures.sheet import Panel, Sheet

Mask = NDArray[np.bool_]


def draw(inputs: Inputs, fit: str, held_out: bool, words: str) -> Sheet:
    """Predicted against observed loss of the rows fitted or held out, coloured by sparsity."""
    found = predicted(inputs, fit)
    sheet = Sheet(style.SINGLE + 0.3, style.HEIGHT + 0.1)
    (panel,) = sheet.panels
    mask = found.held if held_out else found.used
    if not mask.any():
        panel.message("no held-out run" if held_out else "no fitted run")
        return sheet
    _scatter(panel, found, mask, "o")
    _finish(panel, found, mask, [_errors(found, mask, "")])
    panel.ax.set_title(words, loc="left")
    return sheet


def baseline(inputs: Inputs, fit: str, words: str) -> Sheet:
    """A baseline's predictions of all rows: those fitted filled, those held out hollow."""
    found = predicted(inputs, fit)
    sheet = Sheet(style.SINGLE + 0.3, style.HEIGHT + 0.1)
    (panel,) = sheet.panels
    _scatter(panel, found, found.used, "o")
    lines = [_errors(found, found.used, "fitted: ")]
    if found.held.any():
        _scatter(panel, found, found.held, "s", hollow=True)
        lines.append(_errors(found, found.held, "held out: "))
    _finish(panel, found, found.used | found.held, lines)
    panel.ax.set_title(words, loc="left")
    return sheet


def _scatter(panel: Panel, found: Predicted, mask: Mask, marker: str, hollow: bool = False) -> None:
    S = found.rows["S"].to_numpy(float)
    for value, colour in colours(S).items():
        own = mask & np.isclose(S, value)
        if not own.any():
            continue
        rows = found.rows[own]
        panel.points(
            f"{'held out' if hollow else 'runs'}, S={value:.4g}",
            found.value[own],
            rows["L"],
            **bars(rows),
            color=colour,
            marker=marker,
            markersize=3.2,
            markerfacecolor="white" if hollow else colour,
            markeredgewidth=0.7 if hollow else 0.0,
            label=percent(value) + (" (held out)" if hollow else ""),
        )


def _finish(panel: Panel, found: Predicted, mask: Mask, lines: list[str]) -> None:
    both = np.concatenate([found.value[mask], found.rows["L"].to_numpy(float)[mask]])
    margin = 0.06 * float(np.ptp(both)) or 0.01
    ends = [float(both.min()) - margin, float(both.max()) + margin]
    panel.ax.plot(ends, ends, color=style.GREY, linewidth=0.8, linestyle=DASHES, zorder=1)
    panel.ax.set(xlim=ends, ylim=ends)
    for axis in (panel.ax.xaxis, panel.ax.yaxis):
        axis.set_major_locator(MaxNLocator(5))
    panel.ax.text(0.04, 0.97, "\n".join(lines), transform=panel.ax.transAxes, va="top", fontsize=6)
    panel.ax.set_xlabel("predicted loss (nats/token)")
    panel.ax.set_ylabel("observed loss (nats/token)")
    panel.legend("sparsity $S$")


def _errors(found: Predicted, mask: Mask, words: str) -> str:
    L = found.rows["L"].to_numpy(float)[mask]
    spread = float(np.sum((L - L.mean()) ** 2))
    lines = [f"{words}$n$ = {mask.sum()}", f"RMSE = {rmse(found, mask):.3g} nats"]
    if spread > 0 and len(L) > 2:
        lines.append(f"$R^2$ = {1 - len(L) * rmse(found, mask) ** 2 / spread:.4f}")
    return "\n".join(lines)


FIGURES = {
    "F3a": partial(draw, fit="loss", held_out=False, words="Eq 2, fitted runs"),
    "F3b": partial(draw, fit="loss", held_out=True, words="Eq 2, held-out runs"),
    "F5a": partial(baseline, fit="wang", words="Eq 5 (Wang et al.)"),
    "F5b": partial(baseline, fit="abnar", words="Eq 6 (Abnar et al.)"),
}
