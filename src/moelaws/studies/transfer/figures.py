"""Losses over the learning rate and over training steps, of each shape of each ladder."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows
from moelaws.analysis.inputs import Inputs
from moelaws.studies.transfer.derived import ladders_of

WINDOW = 25  # logged steps whose losses are averaged, as single batches are noisy
POINTS = 100  # of a line


def runs(inputs: Inputs, ladders: Mapping[str, str]) -> Rows:
    """Yields the runs of each shape with their ladder and ``size``."""
    for about, shapes in ladders_of(inputs, ladders):
        for shape in shapes:
            yield shape.runs.assign(**about, size=shape.size)


def parabolas(inputs: Inputs, ladders: Mapping[str, str]) -> Rows:
    """Yields the parabola through the runs of each shape that are near its best rate."""
    for about, shapes in ladders_of(inputs, ladders):
        for shape in shapes:
            u = np.log(shape.near["lr"].to_numpy(float))
            line = np.linspace(u.min(), u.max(), POINTS)
            L = np.polynomial.Polynomial.fit(u, shape.near["L"], 2)(line)
            yield pd.DataFrame({**about, "size": shape.size, "lr": np.exp(line), "L": L})


def learning(inputs: Inputs, ladders: Mapping[str, str]) -> Rows:
    """Yields the training loss of a run of each shape at the rate next to the base's best one."""
    for about, shapes in ladders_of(inputs, ladders):
        for shape in shapes:
            runs = shape.runs[shape.runs["lr"] == shapes[0].tried]
            for run in runs["run_id"].head(1):
                means = inputs.history(run)[["tokens", "loss"]].rolling(WINDOW).mean().dropna()
                places = np.unique(np.linspace(0, len(means) - 1, POINTS).astype(int))
                yield means.iloc[places].assign(**about, size=shape.size)
