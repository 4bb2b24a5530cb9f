"""Worst-case regret over active size and sparsity, with the laws' choices and the robust one.

An answer on one page has words, the regret of all models, and what the answer depends on.
"""

import io
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import BoundaryNorm

from moelaws.analysis.advice import Advice, Constraints
from moelaws.figures import axes, style
from moelaws.figures.sheet import Panel, Sheet
from moelaws.files.atomic import replacing
from moelaws.laws.base import Array
from moelaws.spec.errors import UserError

_LEVELS = [x * 10.0**d for d in range(-3, 3) for x in (1, 2, 5)]  # nats; one colour below them
_BEYOND = "#d0d0d0"
_AROUND, _CELL = np.log(3.0), 0.2  # of ln N_active: shown beyond the plans, and a cell's width
_USUAL = (0.0, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99)  # sparsities on an axis
_MARKERS = "osD^vPX<>hd"


@mpl.rc_context(style.RC)
def draw(answers: Mapping[float, Advice]) -> Sheet:
    """Draws a panel for each answer; the key is its budget over the largest of the sweep."""
    sheet = Sheet(style.DOUBLE, 3.5, ["rectilinear"] * len(answers))
    draw_regret(sheet.panels, list(answers.values()))
    for panel, (factor, answer) in zip(sheet.panels, answers.items(), strict=True):
        C = axes.power(answer.limits.compute)
        panel.title(f"$C$ = {C} FLOPs, {factor:g} times the largest")
    _legend(sheet, sheet.panels)
    return sheet


def _legend(sheet: Sheet, panels: Sequence[Panel], title: str = "") -> None:
    pairs = [zip(*panel.ax.get_legend_handles_labels(), strict=True) for panel in panels]
    marks = {text: mark for pair in pairs for mark, text in pair}
    sheet.figure.legend(
        list(marks.values()), list(marks), loc="outside lower center", ncols=5, title=title
    )


def draw_regret(panels: Sequence[Panel], answers: Sequence[Advice]) -> None:
    """Draws the regret of all models over size and sparsity, a panel an answer."""
    fields = [_field(answer) for answer in answers]
    top = max(float(np.nanmax(worst)) for _, _, worst in fields)
    low = min(float(np.nanmin(worst)) for _, _, worst in fields)
    lowest = max((x for x in _LEVELS if x <= low), default=_LEVELS[0])
    levels = [x for x in _LEVELS if lowest <= x < top] + [top]
    looks = {"norm": BoundaryNorm(levels, style.ORDERED.N)}
    every = [row.name for answer in answers for row in answer.recommendations]
    markers = dict(zip(dict.fromkeys(every), _MARKERS, strict=False))
    for panel, answer, field in zip(panels, answers, fields, strict=True):
        filled = _panel(panel, answer, field, looks)
        for row in answer.recommendations:
            _mark(panel, row.name, row.plan, marker=markers[row.name], markerfacecolor="white")
        robust = {"marker": "*", "markersize": 10, "markerfacecolor": style.WARN}
        _mark(panel, "robust", answer.robust.plan, **robust)
        axes.size(panel.ax.xaxis, "active parameters $N_a$")
        left, right = panel.ax.get_xlim()
        stretch = (right / left) ** 0.03
        panel.ax.set_xlim(left / stretch, right * stretch)
        axes.fixed_ticks(panel.ax.xaxis, axes.round_ticks(left, right, 4), style.short)
    drawn = [panel.ax for panel in panels]
    bar = panels[0].sheet.figure.colorbar(filled, ax=drawn, pad=0.02, format="%.2g")
    bar.set_label("worst-case regret (nats/token)")
    bar.outline.set_visible(False)


def _field(answer: Advice) -> tuple[Array, Array, Array]:
    """Returns edges of active sizes and of sparsities, and the least worst-case regret between.

    It is NaN where no model of that size and sparsity can be built within the limits.
    """
    plans = answer.minimax.space.plans
    worst, u = answer.minimax.worst(plans), np.log(plans.N_active)
    sizes = np.log([float(row.plan.N_active) for row in answer.rows])
    shown = np.isfinite(worst) & (u > sizes.min() - _AROUND) & (u < sizes.max() + _AROUND)
    v, row = np.unique(-np.log1p(-plans.S[shown]).round(9), return_inverse=True)
    column = ((u[shown] - u[shown].min()) / _CELL).astype(int)
    least = np.full((len(v), column.max() + 1), np.inf)
    np.minimum.at(least, (row, column), worst[shown])
    between = np.concatenate([[v[0]], (v[1:] + v[:-1]) / 2, [v[-1]]])
    edges = np.exp(u[shown].min() + _CELL * np.arange(least.shape[1] + 1))
    return edges, -np.expm1(-between), np.where(np.isfinite(least), least, np.nan)


def _panel(
    panel: Panel, answer: Advice, field: tuple[Array, Array, Array], looks: dict[str, Any]
) -> Any:
    (edges, S, worst), ax = field, panel.ax
    middle = np.meshgrid(np.sqrt(edges[1:] * edges[:-1]), (S[1:] + S[:-1]) / 2)
    x, y = (values.ravel() for values in middle)
    panel.sheet.record(panel.name, "worst-case regret", x=x, y=y, z=worst.ravel())
    ceiling = answer.limits.max_sparsity
    axes.sparsity(ax, {*(S for S in _USUAL if ceiling > S), ceiling}, "y")
    ax.set_xscale("log")
    shown = np.maximum(worst, _LEVELS[0])
    filled = ax.pcolormesh(edges, S, shown, cmap=style.ORDERED.reversed(), **looks)
    if np.isnan(worst).any():
        ax.fill_between(edges, 0.0, S[-1], color=_BEYOND, linewidth=0, zorder=0)
        ax.plot([], [], "s", color=_BEYOND, label="no such model")
    ax.grid(False)
    return filled


def _mark(panel: Panel, name: str, plan: Any, **options: Any) -> None:
    edge = {"markeredgecolor": style.INK, "markeredgewidth": 0.8}
    look: dict[str, Any] = {"markersize": 5.5, "zorder": 4, **edge}
    panel.points(name, plan.N_active, plan.S, label=name, **(look | options))


_BUDGETS = 10 ** np.linspace(-1, 1, 9)  # factors of the budget, and of the model's parameters below
_MEMORIES = 2.0 ** np.arange(-4, 2)
_COLUMNS = 118  # characters of a line of words

Ask = Callable[[Constraints], Advice]


@mpl.rc_context(style.RC)
def one_page(
    both: Mapping[str, Advice], ask: Ask, lines: Sequence[str], limits: Constraints
) -> Sheet:
    """Draws the page of answers ``side_by_side``; ``ask`` answers by other limits than these."""
    wrapped = [part for line in lines for part in textwrap.wrap(line, _COLUMNS)]
    above = 0.2 + 0.16 * len(wrapped)  # inches
    sheet = Sheet(style.DOUBLE, 6.2 + above, len(both) + 2, columns=2)
    top = 1 - above / (6.2 + above)
    sheet.figure.set_layout_engine("constrained", rect=(0, 0, 1, top))
    sheet.figure.text(0.01, 0.995, "\n".join(wrapped), va="top", fontsize=7.5, linespacing=1.4)
    *regrets, budgets, memories = sheet.panels
    draw_regret(regrets, [*both.values()])
    for panel, name in zip(regrets, both, strict=True):
        panel.title(f"worst regret, {name}")
    computes = {x * limits.compute: {"compute": x * limits.compute} for x in _BUDGETS}
    _sensitivity(budgets, ask, limits, computes)
    budgets.title("over the budget")
    budgets.ax.set_xlabel("budget (FLOP)")
    total = max(float(answer.robust.plan.N) for answer in both.values())
    held = {x * total: {"max_parameters": {"a limit": x * total}} for x in _MEMORIES}
    _sensitivity(memories, ask, limits, held)
    memories.title("over a limit of total parameters")
    axes.size(memories.ax.xaxis, "parameters that memory holds")
    memories.ax.legend(loc="upper left")
    _legend(sheet, regrets, "(a) and (b)")
    return sheet


def _sensitivity(
    panel: Panel, ask: Ask, limits: Constraints, changes: Mapping[float, dict[str, Any]]
) -> None:
    """Draws total and active parameters of the answer by other limits, where there is one."""
    points = []
    for x, change in changes.items():
        with suppress(UserError):  # no law judges it, or no model keeps to it
            plan = ask(replace(limits, **change)).robust.plan
            points.append((x, float(plan.N), float(plan.N_active)))
    at, *sizes = np.array(points, float).reshape(-1, 3).T
    looks = (("total", style.INK, "o"), ("active", style.WARN, "s"))
    for (name, colour, mark), y in zip(looks, sizes, strict=True):
        panel.line(f"{name} parameters", at, y, color=colour, marker=mark, ms=3, lw=0.9, label=name)
    panel.ax.set(xscale="log", yscale="log", ylabel="parameters of the answer")
    axes.size(panel.ax.yaxis, "parameters of the answer")


def write_page(sheet: Sheet, out: Path) -> None:
    """Writes the page as PDF, or as HTML with the picture in it."""
    with replacing(out) as path, mpl.rc_context({**style.RC, "svg.fonttype": "none"}):
        if out.suffix == ".pdf":
            sheet.figure.savefig(path, format="pdf", metadata={"CreationDate": None})
            return
        picture = io.StringIO()
        sheet.figure.savefig(picture, format="svg", metadata={"Date": None})
        path.write_text(
            f"<!doctype html><meta charset=utf-8><title>How to spend the budget</title>\n"
            f"<style>svg {{ width: 100%; max-width: 60em; height: auto }}</style>\n"
            f"{picture.getvalue().partition('?>')[2]}\n"
        )
