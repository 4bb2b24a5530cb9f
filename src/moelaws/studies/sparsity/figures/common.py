"""What the sparsity paper's figures share: colours and the marks of bounds."""

import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import AT_HIGH_END, AT_LOW_END, NOT_CONVEX
from moelaws.figures import style
from moelaws.figures.sheet import Panel

# The marker of a bound, which is hollow and points to where the optimum must lie, and its legend.
BOUNDS = {
    AT_LOW_END: ("v", "bound: at or below the\nsmallest size measured"),
    AT_HIGH_END: ("^", "bound: at or above the\nlargest size measured"),
    NOT_CONVEX: ("s", "curve not convex:\nleast end shown"),
}


def colours(inputs: Inputs, column: str) -> dict[float, style.Colour]:
    """Returns a colour for each value of ``column`` in the table, the same in every figure."""
    return style.palette(inputs.completed[column].dropna())


def explain_bounds(panel: Panel, optima: pd.DataFrame) -> None:
    """Adds legend entries for the hollow marks among ``optima`` and for those that are missing."""
    notes, missing = set(optima["note"]), int(optima["N_star"].isna().sum())
    for note, (marker, label) in BOUNDS.items():
        if note in notes:
            panel.key(label, ls="none", color=style.GREY, marker=marker, mfc="white")
    if missing:
        panel.key(f"{missing} without optimum:\nfewer than 3 sizes", ls="none")
