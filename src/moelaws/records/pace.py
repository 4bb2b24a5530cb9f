"""The speed of a run's training."""

import numpy as np

from moelaws.files.layout import Results
from moelaws.files.parquet import read_parquet
from moelaws.spec.errors import UserError


def seconds_a_step(results: Results, run_id: str) -> float | None:
    """Returns the median time of a run's steps, which interruptions do not change.

    It returns None if the history is missing or damaged, or has less than two steps.
    """
    path = results.run(run_id) / "history.parquet"
    try:
        history = read_parquet(path) if path.is_file() else None
    except UserError:
        return None
    if history is None or history.num_rows < 2:
        return None
    step, seconds = (history[name].to_numpy() for name in ("step", "seconds"))
    return float(np.median(np.diff(seconds) / np.diff(step)))
