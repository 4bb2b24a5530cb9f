"""The slopes of the coordinate check: how what first steps change depends on the size."""

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.effect import Effect
from moelaws.analysis.regression import of_mean, slope_weights

CHECKED = "completep"  # all else is a control
NEAR, WIDEST = 0.15, 0.25  # of a slope: its farthest distance from 0, and that of its interval
# What must grow over the width under the control, at this step, by this slope
BITING, JUDGED, BITES = ("router logits", "logits"), 3, 0.5


def slopes(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Returns a row for each arm, step and quantity: d ln RMS / d ln size, and whether it passes.

    ``runs`` are rows of ``probing.coordinates``. A slope is the mean of those of the seeds, with an
    interval of 90 % by Student's t. One that is checked must lie within .15 of 0, and its interval
    within .25. A random start of logits has -1/2 over the width. Of other slopes nothing is asked,
    and ``passes`` is None.
    """
    rows = []
    columns = ["ladder", "parameterization", "step", "quantity"]
    for key, own in runs.groupby(columns, sort=False):
        place: dict[str, Any] = dict(zip(columns, key, strict=True))
        rms = own.pivot_table("rms", "seed", "size")
        weights = slope_weights(np.log(rms.columns.to_numpy(float)))
        effect = of_mean(np.log(rms.to_numpy()) @ weights)
        number = {"slope": effect.value, "low": effect.low, "high": effect.high}
        rows.append({**place, **number, "passes": _passes(effect, **place)})
    return rows


def _passes(
    effect: Effect, ladder: str, parameterization: str, step: int, quantity: str
) -> bool | None:
    """Returns whether a slope is as predicted; None where nothing is."""
    wide = ladder == "width"
    if parameterization == CHECKED:
        if not wide and (quantity != "stream" or not step):
            return None
        predicted = -0.5 if not step and quantity.endswith("logits") else 0.0
        low, high = effect.low - predicted, effect.high - predicted
        return abs(effect.value - predicted) < NEAR and -WIDEST < low and high < WIDEST
    grows = quantity in BITING if wide else quantity == "stream"
    return effect.value > BITES if grows and step == JUDGED else None
