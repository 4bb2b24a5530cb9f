"""F4 shows a training curve beside what Eq 2 predicts from the tokens seen so far."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array
from moelaws.figures import style
from moelaws.figures.sheet import Sheet, one_panel
from moelaws.spec.errors import UserError
from moelaws.studies.allocation.figures.common import percent

WINDOW = 0.02  # of the steps, for the running mean of the training loss


def draw(inputs: FittedInputs) -> Sheet:
    """Draws the training loss of one run over its tokens, and Eq 2 at its N, r and S as D grows.

    The run is that of the middle sparsity and the largest budget whose r is nearest to r*. R is
    that of the whole run, for r* is defined at the budget that a run is trained with.
    """
    run = representative(inputs.derived("runs"))
    report, spec = inputs.fit("loss"), inputs.spec("loss")
    law = laws.fittable(report.law)
    sheet, panel = one_panel()
    try:
        history = inputs.history(str(run["run_id"]))
    except UserError:
        panel.message("the run has no training curve here")
        return sheet
    history = history[np.isfinite(history["loss"])]
    if len(history) < 2:
        panel.message("the run logged no training loss")
        return sheet
    tokens = history["tokens"].to_numpy(float)
    smooth = running_mean(history["loss"].to_numpy(float), max(1, round(WINDOW * len(history))))
    D = np.geomspace(max(tokens[-1] / 50, tokens[0]), tokens[-1], 80)
    at_end = {name: float(run[column]) for name, column in spec.mapping.items() if name != "L"}
    fitted = law.predict(report.part({}).estimates(), {**at_end, "D": D})
    panel.line(
        "training loss, running mean", tokens, smooth, color=style.ORDERED(0.3), linewidth=0.9,
        label="training loss, mean\nof 2 % of the steps",
    )  # fmt: skip
    shown = fitted <= 1.05 * smooth.max()  # a law of final losses is lost at the first steps
    panel.line(
        "Eq 2", D[shown], fitted[shown], color=style.INK,
        label="Eq 2 as fitted",
    )  # fmt: skip
    panel.points(
        "validation loss", run["D"], run["L"], color=style.WARN, marker="D", zorder=4,
        label="validation loss\nat the end",
    )  # fmt: skip
    panel.ax.set(xlabel="training tokens $D$", ylabel="loss (nats/token)", xscale="log")
    panel.ax.set_title(
        f"$N_a$ = {style.short(run['N_active'])}, $N$ = {style.short(run['N_total'])}, "
        f"$S$ = {percent(run['S'])}, $r$ = {run['r']:.2f}",
        loc="left",
    )
    panel.ax.legend(loc="lower left")  # where neither curve ever is
    return sheet


def representative(runs: pd.DataFrame) -> pd.Series[float]:
    """Returns the run nearest to r* at the middle sparsity (the upper of two), largest budget."""
    known = sorted(runs["S"].unique())
    own = runs[np.isclose(runs["S"], known[len(known) // 2])]
    own = own[own["C"] == own["C"].max()]
    away = (np.log(own["r"]) - np.log(own["r_star"])).abs()
    nearest: pd.Series[float] = own.loc[away.idxmin()]
    return nearest


def running_mean(values: Array, window: int) -> Array:
    """Returns the mean over the last ``window`` values (fewer at the start), shape (n,)."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    end = np.arange(1, len(values) + 1)
    start = np.maximum(end - window, 0)
    return np.asarray((total[end] - total[start]) / (end - start))
