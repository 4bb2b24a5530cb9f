"""Worst-case regret over active size and sparsity, with the laws' choices and the robust one."""

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LogNorm

from moelaws.analysis.advice import Advice
from moelaws.analysis.advice.plans import Space, ideal
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.laws.base import Array

_LEVELS = [x * 10.0**d for d in range(-3, 3) for x in (1, 2, 5)]  # nats; one colour below them
_BEYOND = "#d0d0d0"
_SIZES, _SPARSITIES = 101, 51
_USUAL = (0.0, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99)  # sparsities on an axis
_MARKERS = "osD^vPX<>hd"


@mpl.rc_context(style.RC)
def draw(answers: Mapping[float, Advice]) -> Sheet:
    """Draws a panel for each answer; the key is its budget over the largest of the sweep."""
    sheet = Sheet(style.DOUBLE, 3.5, ["rectilinear"] * len(answers))
    fields = [_field(answer) for answer in answers.values()]
    top = max(float(np.nanmax(worst)) for _, _, worst in fields)
    low = min(float(np.nanmin(worst)) for _, _, worst in fields)
    lowest = max((x for x in _LEVELS if x <= low), default=_LEVELS[0])
    levels = [x for x in _LEVELS if lowest <= x < top] + [top]
    looks = {"levels": levels, "norm": LogNorm(levels[0], levels[-1])}
    every = [row.name for answer in answers.values() for row in answer.recommendations]
    markers = dict(zip(dict.fromkeys(every), _MARKERS, strict=False))
    for panel, (factor, answer), field in zip(sheet.panels, answers.items(), fields, strict=True):
        filled = _panel(panel, answer, field, looks)
        for row in answer.recommendations:
            _mark(panel, row.name, row.plan, marker=markers[row.name], markerfacecolor="white")
        robust = {"marker": "*", "markersize": 10, "markerfacecolor": style.WARN}
        _mark(panel, "robust", answer.robust.plan, **robust)
        if answer.as_configured:
            _mark(panel, "configuration", answer.as_configured.plan, marker="x")
        style.size_axis(panel.ax.xaxis, "active parameters $N_a$")
        left, right = panel.ax.get_xlim()
        stretch = (right / left) ** 0.03
        panel.ax.set_xlim(left / stretch, right * stretch)
        style.fixed_ticks(panel.ax.xaxis, style.round_ticks(left, right, 4), style.short)
        C = style.power(answer.limits.compute)
        title = f"({panel.name}) $C$ = {C} FLOPs, {factor:g} times the largest"
        panel.ax.set_title(title, loc="left")
    axes = [panel.ax for panel in sheet.panels]
    bar = sheet.figure.colorbar(filled, ax=axes, pad=0.02, format="%.2g")
    bar.set_label("worst-case regret (nats/token)")
    bar.outline.set_visible(False)
    pairs = [zip(*ax.get_legend_handles_labels(), strict=True) for ax in axes]
    handles = {text: mark for pair in pairs for mark, text in pair}
    sheet.figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4)
    return sheet


def _field(answer: Advice) -> tuple[Array, Array, Array]:
    """Returns active sizes, sparsities and worst-case regret there, NaN beyond the limits."""
    limits = answer.limits
    looked_at = Space(limits).plans([0.0, 1.0], 0.0).N_active
    sizes = np.array([float(row.plan.N_active) for row in answer.rows])
    low, high = np.clip([sizes.min() / 3, sizes.max() * 3], *looked_at)
    steepest = -np.log1p(-limits.max_sparsity)
    S = -np.expm1(-np.linspace(0, steepest, _SPARSITIES))
    N, S = np.meshgrid(np.geomspace(low, high, _SIZES), S)
    D = limits.tokens(N)
    plans = ideal(N, S, D, limits)
    allowed = (D > 0) & (plans.N <= limits.largest)
    return N, S, np.where(allowed, answer.minimax.worst(plans), np.nan)


def _panel(
    panel: Panel, answer: Advice, field: tuple[Array, Array, Array], looks: dict[str, Any]
) -> Any:
    (N, S, worst), ax = field, panel.ax
    panel.sheet.record(panel.name, "worst-case regret", x=N.ravel(), y=S.ravel(), z=worst.ravel())
    ceiling = answer.limits.max_sparsity
    style.sparsity_axis(ax, {*(S for S in _USUAL if ceiling > S), ceiling}, "y")
    ax.set_xscale("log")
    shown = np.maximum(worst, _LEVELS[0])
    filled = ax.contourf(N, S, shown, cmap=style.ORDERED.reversed(), **looks)
    if np.isnan(worst).any():
        ax.fill_between(N[0], 0.0, ceiling, color=_BEYOND, linewidth=0, zorder=0)
        ax.plot([], [], "s", color=_BEYOND, label="beyond the limits")
    # Only larger sizes spend the whole budget.
    spent = answer.limits.compute / (6 * answer.limits.max_tokens)
    if N.min() < spent < N.max():
        ax.axvline(spent, color=style.INK, linestyle=":", label="left of it tokens run out")
    ax.grid(False)
    return filled


def _mark(panel: Panel, name: str, plan: Any, **options: Any) -> None:
    edge = {"markeredgecolor": style.INK, "markeredgewidth": 0.8}
    look: dict[str, Any] = {"markersize": 5.5, "zorder": 4, **edge}
    panel.points(name, plan.N_active, plan.S, label=name, **(look | options))
