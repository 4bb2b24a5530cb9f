"""The speed of a run's training."""

import numpy as np

from moelaws.files.layout import Results
from moelaws.files.parquet import read_parquet


def seconds_a_step(results: Results, run_id: str) -> float | None:
    """Returns the median time of a run's steps, which interruptions do not change.

    It returns None if there is no history, or one of less than two steps.
    """
    path = results.run(run_id) / "history.parquet"
    if not path.is_file() or (history := read_parquet(path)).num_rows < 2:
        return None
    step, seconds = (history[name].to_numpy() for name in ("step", "seconds"))
    return float(np.median(np.diff(seconds) / np.diff(step)))
