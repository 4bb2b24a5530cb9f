"""The allocation paper's figures write sparsities in percent and share an axis of r."""

from __future__ import annotations

from moelaws.figures import style
from moelaws.figures.sheet import Panel


def percent(S: float) -> str:
    """Returns a sparsity as the paper writes it: 95.38%."""
    return f"{100 * S:.2f}%"


def ratio_axis(panel: Panel, which: str, low: float, high: float, label: str) -> None:
    """Sets a logarithmic axis of ratios r from ``low`` to ``high`` with round ticks."""
    axis = getattr(panel.ax, f"{which}axis")
    panel.ax.set(**{f"{which}scale": "log"})
    getattr(panel.ax, f"set_{which}lim")(low / 1.12, high * 1.12)
    style.fixed_ticks(axis, style.round_ticks(low / 1.12, high * 1.12))
    axis.set_label_text(label)
