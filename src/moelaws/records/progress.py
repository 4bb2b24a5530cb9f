"""How far a sweep is: runs done of all, and the time left weighted by FLOPs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from moelaws.records.layout import Results


@dataclass
class Progress:
    """Progress of the runs of ``flops`` (run id -> training FLOPs) since this was made."""

    results: Results
    flops: Mapping[str, float]
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.before = self._done()

    def _done(self) -> set[str]:
        return {run for run in self.flops if self.results.summary(run).exists()}

    def line(self) -> tuple[int, str]:
        """Number of runs done, and a line that says so with the time left."""
        done = self._done()
        total = sum(self.flops.values())
        spent = sum(self.flops[run] for run in done)
        fresh = sum(self.flops[run] for run in done - self.before)
        text = f"{len(done)}/{len(self.flops)} runs, {spent / total:.0%} of the FLOPs"
        if fresh and spent < total:
            left = (total - spent) * (time.monotonic() - self.started) / fresh
            text += f", about {_duration(left)} left"
        return len(done), text


def watch(results: Results, flops: Mapping[str, float], every: float = 5.0) -> None:
    """Print a line on standard error whenever runs were finished, from a thread of its own.

    Ends with the process, or when all is done. Silent where nothing is left to train.
    """
    progress = Progress(results, flops)
    if len(progress.before) == len(flops):
        return

    def report() -> None:
        last = -1
        while last < len(flops):
            count, text = progress.line()
            if count != last:
                print(f"moelaws: {text}", file=sys.stderr, flush=True)
                last = count
            time.sleep(every)

    threading.Thread(target=report, daemon=True).start()


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
