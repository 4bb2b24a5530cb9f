"""F7a, F7b: the loss at the best split of a budget, and its tokens per parameter, over experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.sheet import Panel, Sheet, one_panel
from moelaws.laws.joint.loss import VARIANTS, compute_optimal
from moelaws.studies.generalization.derived.draws import Estimates, estimates, interval
from moelaws.studies.generalization.figures.axes import experts_axis, few_ticks

# Number of experts -> the published law's parameters there.
PUBLISHED = {float(law.variant[1:]): law.published for law in VARIANTS.values() if law.published}
PUBLISHED_BUDGETS = (1e20, 1e21, 1e22)
PUBLISHED_RANGE = (1e19, 1e23)  # where the published law is drawn: about that of its own runs
DASHED: dict[str, Any] = {"color": style.GREY, "linestyle": style.DASHES, "linewidth": 0.8}


def losses(inputs: FittedInputs) -> Sheet:
    """Draws F7a: L* over C, a line for each number of experts, with its interval."""
    sheet, panel = one_panel(style.SINGLE + 0.6)
    panel.ax.set(xscale="log", yscale="log")
    low, high = _budgets(inputs)
    grid = np.geomspace(low, high, 41)
    if low < PUBLISHED_RANGE[1] and high > PUBLISHED_RANGE[0]:
        label: str | None = "published"
        for E, values in PUBLISHED.items():
            y = compute_optimal(values, grid).L
            panel.line(f"published E{E:g}", grid, y, **DASHED, label=label)
            label = None  # one name for all
    fits = estimates(inputs, "by_experts")
    for fit, colour in zip(fits, style.ordered_colours(len(fits)), strict=True):
        best = compute_optimal(_reduced(fit.params), grid)
        if not np.isfinite(best.L).all():
            panel.sheet.warn(_flat(fit))
            continue
        drawn_Bn = compute_optimal(_reduced(fit.draws, 1), grid[None]).L
        ends = np.transpose([interval(drawn, fit.level) for drawn in drawn_Bn.T])
        label = f"{fit.result.where['M']:g}"
        panel.line(f"E={label}", grid, best.L, *ends, color=colour, label=label)
    if not panel.ax.lines:
        panel.message("no frontier: no fit falls with\nboth parameters and tokens")
        return sheet
    few_ticks(panel.ax.yaxis)
    panel.ax.set_xlabel("training budget $C = 6 N_a D$ (FLOPs)")
    panel.ax.set_ylabel("loss at the best split $L^*$ (nats/token)")
    panel.legend("experts $E$")
    return sheet


def ratios(inputs: FittedInputs) -> Sheet:
    """Draws F7b: D*/N* over E, a line for each budget, and the published law's own, dashed."""
    sheet, panel = one_panel(style.SINGLE + 0.9)
    panel.ax.set_yscale("log")
    for C in PUBLISHED_BUDGETS:
        y = [float(compute_optimal(values, C).ratio) for values in PUBLISHED.values()]
        panel.line(f"published {C:g}", list(PUBLISHED), y, **DASHED)
        exponent = rf"$10^{{{np.log10(C):.0f}}}$"
        panel.ax.annotate(exponent, (32, y[-1]), xytext=(3, 0), textcoords="offset points",
                          fontsize=5.5, color=style.GREY, va="center")  # fmt: skip
    panel.ax.plot([], [], **DASHED, label="published\n($C$ beside it)")
    fits = estimates(inputs, "by_experts")
    budgets = np.geomspace(*_budgets(inputs), 3)
    for C, colour in zip(budgets, style.ordered_colours(3), strict=True):
        _own_ratio(panel, fits, float(C), colour)
    experts = [*PUBLISHED, *(fit.result.where["M"] for fit in fits)]
    experts_axis(panel.ax, experts)
    panel.ax.set_xlim(0.85 * min(experts), 1.7 * max(experts))  # room for the budgets' names
    few_ticks(panel.ax.yaxis)
    panel.ax.set_ylabel(r"$D^*/N_a^*$ (tokens/parameter)")
    panel.legend("own: budget $C$ (FLOPs)")
    return sheet


def _own_ratio(panel: Panel, fits: list[Estimates], C: float, colour: Any) -> None:
    """Draws the best ratios at one budget of the fits that have one."""
    points = []
    for fit in fits:
        ratio = float(compute_optimal(_reduced(fit.params), C).ratio)
        if not np.isfinite(ratio):
            panel.sheet.warn(_flat(fit))
            continue
        ends = interval(compute_optimal(_reduced(fit.draws), C).ratio, fit.level)
        points.append((fit.result.where["M"], ratio, *ends))
    if points:
        E, y, low, high = np.transpose(points)
        label = style.power(C)
        panel.ax.plot(E, y, color=colour, linewidth=0.9)
        panel.points(f"C={C:g}", E, y, low, high, color=colour, label=label)


def _budgets(inputs: FittedInputs) -> tuple[float, float]:
    """Returns the least and the largest 6 N_active D of the fitted runs."""
    rows = inputs.rows("by_experts")
    C = 6 * rows["N_active"] * rows["D"]
    return float(C.min()), float(C.max())


def _reduced(params: Mapping[str, Any], more_axes: int = 0) -> dict[str, Array]:
    """Renames a Chinchilla law's parameters, or draws of them, for ``compute_optimal``."""
    p = {name: np.asarray(value, float) for name, value in params.items()}
    p = {name: value.reshape(value.shape + (1,) * more_axes) for name, value in p.items()}
    return {"m": p["A"], "mu": -p["alpha"], "n": p["B"], "nu": -p["beta"], "c": p["E"]}


def _flat(fit: Estimates) -> str:
    return f"E={fit.result.where['M']:g}: the fit does not fall with both parameters and tokens"
