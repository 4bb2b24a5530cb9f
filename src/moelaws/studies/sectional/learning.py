"""How fast a run learned, read off its training loss: steps to a target, and spikes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.laws.base import Array

SMOOTH = 0.05  # of all steps: over so many the loss is averaged, for a batch's text is noise
TARGET = 0.8  # of its steps: the loss that the dense model has there is the target
SPIKE_WINDOW = 51  # steps around one, whose median is the usual loss there
SPIKE = 8.0  # standard deviations above the usual loss, by their median


def smoothed(loss: Array) -> Array:
    """Returns the mean of each step's loss and those before it, (steps,) nats/token."""
    width = max(1, round(SMOOTH * len(loss)))
    sums = np.concatenate([[0.0], np.cumsum(loss)])
    ends = np.arange(1, len(loss) + 1)
    starts = np.maximum(0, ends - width)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def target_loss(dense: Array) -> float:
    """Returns the loss to reach: the dense model's at a share of its steps, smoothed."""
    return float(smoothed(dense)[round(TARGET * len(dense)) - 1])


def steps_to_target(loss: Array, target: float) -> float:
    """Returns the first step whose smoothed loss is at most ``target``; infinity where none is."""
    below = np.flatnonzero(smoothed(loss) <= target)
    return float(below[0] + 1) if len(below) else np.inf


def spikes(loss: Array) -> int:
    """Returns the number of steps whose loss is far above the usual one around them.

    The first half window is left out: there the loss falls steeply, and is high without a spike.
    """
    around = pd.Series(loss).rolling(SPIKE_WINDOW, center=True, min_periods=1).median()
    excess = (loss - around.to_numpy(float))[SPIKE_WINDOW // 2 :]
    spread = 1.4826 * np.median(np.abs(excess))  # the deviation of a normal distribution
    return int((excess > SPIKE * spread).sum()) if spread > 0 else 0
