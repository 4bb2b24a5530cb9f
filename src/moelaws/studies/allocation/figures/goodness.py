"""F3 and F5 show losses predicted by Eq 2 and by its baselines against measured ones."""

from __future__ import annotations

import numpy as np

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array
from moelaws.analysis.predictions import Prediction, predicted
from moelaws.figures import style
from moelaws.figures.losses import ALONE, bars, equal_axes, error_lines, write_statistics
from moelaws.figures.sheet import Panel, Sheet, one_panel
from moelaws.laws.base import Mask
from moelaws.studies.allocation.figures.common import percent


def draw(inputs: FittedInputs, fit: str, held_out: bool, title: str) -> Sheet:
    """Draws the observed over the predicted loss of the runs fitted or held out."""
    prediction = predicted(inputs, fit, inputs.derived("runs"))
    sheet, panel = one_panel(style.SINGLE + 0.3, style.HEIGHT + 0.1)
    mask = prediction.held if held_out else prediction.used
    if not mask.any():
        panel.message("no held-out run" if held_out else "no fitted run")
        return sheet
    _scatter(panel, prediction, mask, "o")
    _finish(panel, prediction, mask, error_lines(*_losses(prediction, mask), ".4f"))
    panel.ax.set_title(title, loc="left")
    return sheet


def baseline(inputs: FittedInputs, fit: str, title: str) -> Sheet:
    """Draws a baseline's predictions of all runs: those fitted filled, those held out hollow."""
    prediction = predicted(inputs, fit, inputs.derived("runs"))
    sheet, panel = one_panel(style.SINGLE + 0.3, style.HEIGHT + 0.1)
    _scatter(panel, prediction, prediction.used, "o")
    first, *lines = error_lines(*_losses(prediction, prediction.used), ".4f")
    lines = [f"fitted: {first}", *lines]
    if prediction.held.any():
        _scatter(panel, prediction, prediction.held, "s", hollow=True)
        first, *others = error_lines(*_losses(prediction, prediction.held), ".4f")
        lines += [f"held out: {first}", *others]
    _finish(panel, prediction, prediction.used | prediction.held, lines)
    panel.ax.set_title(title, loc="left")
    return sheet


def _scatter(
    panel: Panel, prediction: Prediction, mask: Mask, marker: str, hollow: bool = False
) -> None:
    S = prediction.rows["S"].to_numpy(float)
    for value, colour in style.palette(S.round(9)).items():
        own = mask & np.isclose(S, value)
        if not own.any():
            continue
        rows = prediction.rows[own]
        panel.points(
            f"{'held out' if hollow else 'runs'}, S={value:.4g}",
            prediction.value[own],
            rows["L"],
            **bars(rows, ALONE),
            color=colour,
            marker=marker,
            markersize=3.2,
            markerfacecolor="white" if hollow else colour,
            markeredgewidth=0.7 if hollow else 0.0,
            label=percent(value) + (" (held out)" if hollow else ""),
        )


def _finish(panel: Panel, prediction: Prediction, mask: Mask, lines: list[str]) -> None:
    """Sets equal axes about the runs of ``mask``, with ``lines`` of text and a legend."""
    equal_axes(panel, *_losses(prediction, mask), 0.06, 5)
    write_statistics(panel, lines, size=6)
    panel.legend("sparsity $S$")


def _losses(prediction: Prediction, mask: Mask) -> tuple[Array, Array]:
    """The predicted and the observed losses of the runs of ``mask``."""
    return prediction.value[mask], prediction.rows["L"].to_numpy(float)[mask]
