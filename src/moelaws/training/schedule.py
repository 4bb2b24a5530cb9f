"""Learning-rate schedules: linear warm-up, then cosine, or constant and exponential decay (WSD)."""

import math

from moelaws.spec.run import Schedule


def rate(schedule: Schedule, step: int, steps: int) -> float:
    """Returns the fraction of the peak rate that step ``step`` (from 0) of ``steps`` uses.

    The warm-up rises linearly, and its last step is at the peak. The last step of all is at
    ``schedule.final``. WSD decays by equal ratios over the last fraction ``decay`` of the steps.
    """
    warmup = schedule.warming(steps)
    if step < warmup:
        return (step + 1) / warmup
    if schedule.kind == "cosine":
        done = (step + 1 - warmup) / (steps - warmup)
        return schedule.final + (1 - schedule.final) * (1 + math.cos(math.pi * done)) / 2
    decay = schedule.decaying(steps)
    left = steps - (step + 1)
    return 1.0 if left >= decay else float(schedule.final ** (1 - left / decay))
