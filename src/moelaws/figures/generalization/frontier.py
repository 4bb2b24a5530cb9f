"""F7a, F7b: the loss at the best split of a budget, and its tokens per parameter, over experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from moelaws.analysis.generalization.draws import Estimates, estimates
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.generalization.axes import experts_axis, few_ticks
from moelaws.figures.sheet import Panel, Sheet
from moelaws.laws.joint.loss import VARIANTS, compute_optimal

PUBLISHED_BUDGETS = (1e20, 1e21, 1e22)
PUBLISHED_RANGE = (1e19, 1e23)  # where the published law is drawn: about that of its own runs
DASHED: dict[str, Any] = {"color": style.GREY, "linestyle": (0, (4, 2)), "linewidth": 0.8}


def losses(inputs: Inputs) -> Sheet:
    """F7a: L* over C, a line a number of experts with its interval."""
    sheet = Sheet(style.SINGLE + 0.6, style.HEIGHT)
    (panel,) = sheet.panels
    panel.ax.set(xscale="log", yscale="log")
    fits = estimates(inputs, "by_experts")
    low, high = _range(inputs)
    grid = np.geomspace(low, high, 41)
    if low < PUBLISHED_RANGE[1] and high > PUBLISHED_RANGE[0]:
        for i, law in enumerate(VARIANTS.values()):
            assert law.published is not None
            label = "published" if i == 0 else None
            panel.line(
                f"published {law.variant}",
                grid,
                compute_optimal(law.published, grid).L,
                **DASHED,
                label=label,
            )
    for fit, colour in zip(fits, style.ordered_colours(len(fits)), strict=True):
        best = compute_optimal(_reduced(fit.params), grid)
        if not np.isfinite(best.L).all():
            panel.sheet.warn(_flat(fit))
            continue
        drawn = compute_optimal(_reduced(fit.draws, 1), grid[None]).L
        band = _interval(drawn, fit.level)
        label = f"{fit.part.where['M']:g}"
        panel.line(f"E={label}", grid, best.L, **band, color=colour, label=label)
    if not panel.ax.lines:
        panel.message("no frontier: no fit falls with\nboth parameters and tokens")
        return sheet
    few_ticks(panel.ax.yaxis)
    panel.ax.set_xlabel("training budget $C = 6 N_a D$ (FLOPs)")
    panel.ax.set_ylabel("loss at the best split $L^*$ (nats/token)")
    panel.legend("experts $E$")
    return sheet


def ratios(inputs: Inputs) -> Sheet:
    """F7b: D*/N* over E, a line a budget; the published law's at its own budgets, dashed."""
    sheet = Sheet(style.SINGLE + 0.9, style.HEIGHT)
    (panel,) = sheet.panels
    panel.ax.set_yscale("log")
    published = {float(law.variant[1:]): law.published for law in VARIANTS.values()}
    for C in PUBLISHED_BUDGETS:
        y = [float(compute_optimal(values, C).ratio) for values in published.values() if values]
        panel.line(f"published {C:g}", list(published), y, **DASHED)
        exponent = rf"$10^{{{np.log10(C):.0f}}}$"
        panel.ax.annotate(exponent, (32, y[-1]), xytext=(3, 0), textcoords="offset points",
                          fontsize=5.5, color=style.GREY, va="center")  # fmt: skip
    panel.ax.plot([], [], **DASHED, label="published\n($C$ beside it)")
    fits = estimates(inputs, "by_experts")
    budgets = np.geomspace(*_range(inputs), 3)
    for C, colour in zip(budgets, style.ordered_colours(3), strict=True):
        _own_ratio(panel, fits, float(C), colour)
    experts = [*published, *(fit.part.where["M"] for fit in fits)]
    experts_axis(panel.ax, experts)
    panel.ax.set_xlim(0.85 * min(experts), 1.7 * max(experts))  # room for the budgets' names
    few_ticks(panel.ax.yaxis)
    panel.ax.set_ylabel(r"$D^*/N_a^*$ (tokens/parameter)")
    panel.legend("own: budget $C$ (FLOPs)")
    return sheet


def _own_ratio(panel: Panel, fits: list[Estimates], C: float, colour: Any) -> None:
    E, y, low, high = [], [], [], []
    for fit in fits:
        ratio = float(compute_optimal(_reduced(fit.params), C).ratio)
        if not np.isfinite(ratio):
            panel.sheet.warn(_flat(fit))
            continue
        band = _interval(compute_optimal(_reduced(fit.draws), C).ratio[:, None], fit.level)
        E.append(fit.part.where["M"])
        y.append(ratio)
        low.append(float(band["low"][0]))
        high.append(float(band["high"][0]))
    if E:
        label = style.power(C)
        panel.ax.plot(E, y, color=colour, linewidth=0.9)
        panel.points(f"C={C:g}", E, y, low, high, color=colour, label=label)


def _range(inputs: Inputs) -> tuple[float, float]:
    """The least and the largest 6 N_active D of the fitted runs."""
    rows = inputs.rows("by_experts")
    C = 6 * rows["N_active"] * rows["D"]
    return float(C.min()), float(C.max())


def _reduced(params: Mapping[str, Any], more_axes: int = 0) -> dict[str, Array]:
    """A Chinchilla law's parameters, or draws of them, as ``compute_optimal`` takes them."""
    p = {name: np.asarray(value, float) for name, value in params.items()}
    p = {name: value.reshape(value.shape + (1,) * more_axes) for name, value in p.items()}
    return {"m": p["A"], "mu": -p["alpha"], "n": p["B"], "nu": -p["beta"], "c": p["E"]}


def _interval(drawn: Array, level: float) -> dict[str, Array]:
    """Ends (n,) over draws (B, n); missing where more draws than beyond an end have no optimum."""
    if not len(drawn):
        nothing = np.full(drawn.shape[1], np.nan)
        return {"low": nothing, "high": nothing}
    known = np.mean(~np.isfinite(drawn), axis=0) <= (1 - level) / 2 + 1e-9
    filled = np.where(known & np.isfinite(drawn), drawn, np.nan)
    filled[:, ~known] = 0.0  # any number: hidden below
    low, high = np.nanquantile(filled, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return {"low": np.where(known, low, np.nan), "high": np.where(known, high, np.nan)}


def _flat(fit: Estimates) -> str:
    return f"E={fit.part.where['M']:g}: the fit does not fall with both parameters and tokens"


FIGURES = {"F7a": losses, "F7b": ratios}
