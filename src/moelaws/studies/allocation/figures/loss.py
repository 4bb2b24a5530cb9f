"""F3 and F5 show losses as Eq 2 and its baselines predict them, F4 a training curve beside Eq 2."""

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array
from moelaws.analysis.predictions import Prediction, predicted
from moelaws.figures import style
from moelaws.figures.losses import ALONE, bars, equal_axes, error_lines, write_statistics
from moelaws.figures.sheet import Panel, Sheet, one_panel
from moelaws.laws.base import Mask
from moelaws.spec.errors import UserError
from moelaws.studies.allocation.figures.ratio import percent

PRINTED = (30e6, 550e6)  # active parameters without embeddings, and all, of Fig 4's model
NEAR = 0.2  # the relative difference up to which a run is of that model
WINDOW = 0.02  # fraction of the steps over which the training loss is averaged


def goodness(inputs: FittedInputs, fit: str, held_out: bool, title: str) -> Sheet:
    """Draws the observed over the predicted loss of the fitted or of the held-out runs."""
    prediction = predicted(inputs, fit, inputs.derived("runs"))
    _, panel = one_panel(style.SINGLE + 0.3, style.HEIGHT + 0.1)
    mask = prediction.held if held_out else prediction.used
    if not mask.any():
        return panel.message("no held-out run" if held_out else "no fitted run")
    _scatter(panel, prediction, mask)
    lines = error_lines(*_losses(prediction, mask), ".4f")
    return _finish(panel, prediction, mask, lines, title)


def baseline(inputs: FittedInputs, fit: str, title: str) -> Sheet:
    """Draws a baseline's predictions: fitted runs as filled marks, held-out runs as hollow ones."""
    prediction = predicted(inputs, fit, inputs.derived("runs"))
    _, panel = one_panel(style.SINGLE + 0.3, style.HEIGHT + 0.1)
    lines: list[str] = []
    for mask, runs in ((prediction.used, "fitted"), (prediction.held, "held out")):
        if mask.any():
            _scatter(panel, prediction, mask, hollow=runs == "held out")
            first, *others = error_lines(*_losses(prediction, mask), ".4f")
            lines += [f"{runs}: {first}", *others]
    return _finish(panel, prediction, prediction.used | prediction.held, lines, title)


def _scatter(panel: Panel, prediction: Prediction, mask: Mask, hollow: bool = False) -> None:
    """Draws the observed over the predicted loss of the runs of ``mask``, coloured by sparsity."""
    S = prediction.rows["S"].to_numpy(float)
    for value, colour in style.palette(S.round(9)).items():
        own = mask & np.isclose(S, value)
        if not own.any():
            continue
        rows, label = prediction.rows[own], percent(value) + (" (held out)" if hollow else "")
        look: dict[str, Any] = {"color": colour, "markersize": 3.2, "label": label}
        marker, face, edge = ("s", "white", 0.7) if hollow else ("o", colour, 0.0)
        look |= {"marker": marker, "markerfacecolor": face, "markeredgewidth": edge}
        series = f"{'held out' if hollow else 'runs'}, S={value:.4g}"
        panel.points(series, prediction.value[own], rows["L"], **bars(rows, ALONE), **look)


def _finish(
    panel: Panel, prediction: Prediction, mask: Mask, lines: list[str], title: str
) -> Sheet:
    """Sets equal axes about the runs of ``mask``, ``lines`` of text, a legend and the title."""
    equal_axes(panel, *_losses(prediction, mask), 0.06, 5)
    write_statistics(panel, lines, size=6)
    panel.legend("sparsity $S$")
    panel.ax.set_title(title, loc="left")
    return panel.sheet


def _losses(prediction: Prediction, mask: Mask) -> tuple[Array, Array]:
    return prediction.value[mask], prediction.rows["L"].to_numpy(float)[mask]


def curve(inputs: FittedInputs) -> Sheet:
    """Draws the training loss of one run over its tokens, and Eq 2 at its N, r and S as D grows.

    The run is of the paper's model (30M active of 550M parameters) where there is one, else of the
    middle sparsity at the largest budget, with the r that is nearest to r*. R is that of the whole
    run, since r* is defined at the budget that a run is trained with.
    """
    run = representative(inputs.derived("runs"))
    sheet, panel = one_panel()
    try:
        history = inputs.history(str(run["run_id"]))
    except UserError:
        return panel.message("the run has no training curve here")
    history = history[np.isfinite(history["loss"])]
    if len(history) < 2:
        return panel.message("the run logged no training loss")
    tokens = history["tokens"].to_numpy(float)
    window = max(1, round(WINDOW * len(history)))
    smooth = history["loss"].rolling(window, min_periods=1).mean().to_numpy(float)
    D = np.geomspace(max(tokens[-1] / 50, tokens[0]), tokens[-1], 80)
    mapping = inputs.spec("loss").mapping
    at_end = {name: float(run[column]) for name, column in mapping.items() if name not in "LD"}
    fitted = inputs.predict("loss", **at_end, D=D)
    colour, label = style.ORDERED(0.3), "training loss, mean\nof 2 % of the steps"
    series = "training loss, running mean"
    panel.line(series, tokens, smooth, color=colour, linewidth=0.9, label=label)
    shown = fitted <= 1.05 * smooth.max()  # at the first steps a law of final losses is far off
    panel.line("Eq 2", D[shown], fitted[shown], color=style.INK, label="Eq 2 as fitted")
    look: dict[str, Any] = {"color": style.WARN, "marker": "D", "zorder": 4}
    look["label"] = "validation loss\nat the end"
    panel.points("validation loss", run["D"], run["L"], **look)
    panel.ax.set(xlabel="training tokens $D$", ylabel="loss (nats/token)", xscale="log")
    panel.ax.set_title(
        f"$N_a$ = {style.short(run['N_active'])}, $N$ = {style.short(run['N_total'])}, "
        f"$S$ = {percent(run['S'])}, $r$ = {run['r']:.2f}",
        loc="left",
    )
    panel.ax.legend(loc="lower left")  # no curve comes there
    return sheet


def representative(runs: pd.DataFrame) -> pd.Series:
    """Returns the run nearest to r* among those of the paper's model, which Fig 4 shows.

    Where no run is that model, it is of the middle sparsity (upper of two) at the largest budget.
    """
    away = (np.log(runs["r"]) - np.log(runs["r_star"])).abs()
    own = runs[(runs[["N_active", "N_total"]] / list(PRINTED) - 1).abs().max(axis=1) < NEAR]
    if own.empty:
        known = sorted(runs["S"].unique())
        own = runs[np.isclose(runs["S"], known[len(known) // 2])]
        own = own[own["C"] == own["C"].max()]
    nearest: pd.Series = own.loc[away[own.index].idxmin()]
    return nearest
