"""The effects of choices, the load of the experts, and losses over compute."""

from typing import Any

import numpy as np

from moelaws.analysis.inputs import Inputs
from moelaws.figures import axes, style
from moelaws.figures.sheet import Sheet, two_panels
from moelaws.studies.routing_choices.arms import (
    ARMS,
    BASE,
    BEST,
    MUON,
    SHUFFLED,
    TOP_K,
    Arms,
    means,
)

LOOKS: dict[str, tuple[str, dict[str, Any]]] = {
    BASE: ("AdamW", {"color": style.INK, "marker": "o"}),
    MUON: ("Muon", {"color": style.ORDERED(0.7), "marker": "s"}),
    SHUFFLED: ("AdamW, shuffled text", {"color": style.GREY, "marker": "^"}),
}


def effects(inputs: Inputs) -> Sheet:
    """Draws each arm's loss beside the base's, and how unevenly it uses its experts."""
    sheet, arms = Sheet(style.DOUBLE, 3.0, 2), Arms(inputs)
    shown = [arm for arm in ARMS if arm in set(arms.runs["arm"]) - {BASE, SHUFFLED}]
    loads = means(arms.runs[arms.runs["arm"].isin(ARMS)])
    loads = loads[loads["C"] == loads["C"].mode().max()]
    names = [f"{ARMS[arm]}, $k$ = {k}" for arm, k in zip(loads["arm"], loads["k"], strict=True)]
    drawn = (
        ("higher loss than the base's (%)", [ARMS[arm] for arm in shown],
         np.array([arms.effect(arm).interval for arm in shown])),
        ("variation of tokens per expert", names, loads[["balance_cv"] * 3].to_numpy(float)),
    )  # fmt: skip
    for panel, (label, ticks, ends) in zip(sheet.panels, drawn, strict=True):
        (value, low, high), y = ends.T, -np.arange(len(ends))
        sheet.record(panel.name, label, x=y, y=value, low=low, high=high)
        panel.ax.axvline(0, color=style.INK, linewidth=0.8)
        panel.ax.plot([low, high], [y, y], color=style.INK, linewidth=1.2)
        panel.ax.plot(value, y, "o", color=style.INK)
        panel.ax.set_yticks(y, ticks)
        panel.ax.set_xlabel(label)
        panel.ax.grid(axis="y", visible=False)
    return sheet


def compute(inputs: Inputs) -> Sheet:
    """Draws the loss over compute of both optimizers, and of text and shuffled text."""
    sheet, arms = two_panels(), Arms(inputs)
    runs = arms.runs[arms.runs["k"] == TOP_K]
    for panel, shown in zip(sheet.panels, ((BASE, MUON), (BASE, SHUFFLED)), strict=True):
        for arm in shown:
            label, look = LOOKS[arm]
            own = runs[runs["arm"] == (BEST[arm] if MUON in shown else arm)]
            mean = own.groupby("C")["L"].mean()
            if MUON in shown:
                tried, shift = arms.tried(arm), panel.aside(-7 if arm == BASE else 7)
                hollow = look | {"mfc": "white", "transform": shift}
                panel.points(f"{label}, rates tried", tried["C"], tried["L"], **hollow)
            panel.points(f"{label}, runs", own["C"], own["L"], **look)
            panel.line(label, mean.index, mean, **look, label=label)
        axes.compute(panel.ax.xaxis, runs["C"])
        panel.ax.set_ylabel("held-out loss (nats/token)")
        panel.ax.legend()
    return sheet
