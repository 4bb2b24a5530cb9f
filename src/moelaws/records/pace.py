"""The speed of a run's training."""

import math

import numpy as np

from moelaws.files.layout import Results
from moelaws.files.parquet import read_parquet

# A GPU lags behind the host, which waits for it after so many steps (``training.loop.SETTLE``).
TOGETHER = 20


def seconds_a_step(results: Results, run_id: str) -> float | None:
    """Returns the median time of a run's steps, which interruptions do not change.

    Steps are timed ``TOGETHER``, because the time of a single one is that of the host alone; in a
    history of few rows, fewer are. It returns None if there is no history, or one of less than two
    steps.
    """
    path = results.run(run_id) / "history.parquet"
    if not path.is_file() or (history := read_parquet(path)).num_rows < 2:
        return None
    step, seconds = (history[name].to_numpy() for name in ("step", "seconds"))
    rows = math.ceil(TOGETHER / float(np.median(np.diff(step))))
    rows = max(1, min(rows, len(step) // 5))
    return float(np.median(np.diff(seconds[::rows]) / np.diff(step[::rows])))
