"""How many of a call's runs are trained, by FLOPs, and how long the rest takes."""

from __future__ import annotations

import time
from collections.abc import Mapping

from moelaws.records.layout import Results
from moelaws.records.progress import duration

EVERY = 5.0  # seconds between two looks


class Trained:
    """Counts the runs (id -> training FLOPs) that have a summary, since this object was made."""

    def __init__(self, results: Results, flops: Mapping[str, float]) -> None:
        self.results, self.flops = results, flops
        self.pending = set(flops)
        self.left: float | None = None  # seconds, at the time of the last change
        self.began = self.looked = self.changed = time.monotonic()
        self._find()
        self.idle = not self.pending
        self.at_first = self._spent()

    def look(self) -> None:
        """Looks for finished runs, where the last look was some seconds ago."""
        now = time.monotonic()
        if self.pending and now - self.looked >= EVERY:
            before, self.looked = len(self.pending), now
            self._find()
            if len(self.pending) < before:
                self.changed = now
                self.left = (now - self.began) * self._rest() / (self._spent() - self.at_first)

    def words(self) -> list[str]:
        """Returns runs, FLOPs and time left; nothing where all was trained before."""
        if self.idle:
            return []
        total, done = sum(self.flops.values()), len(self.flops) - len(self.pending)
        words = [f"{done}/{len(self.flops)} runs", f"{self._spent() / total:.0%} of the FLOPs"]
        if self.left and self.pending:
            passed = time.monotonic() - self.changed
            words.append(f"{duration(max(0.0, self.left - passed))} left")
        return words

    def _find(self) -> None:
        self.pending -= {run for run in self.pending if self.results.summary(run).exists()}

    def _rest(self) -> float:
        return sum(self.flops[run] for run in self.pending)

    def _spent(self) -> float:
        return sum(self.flops.values()) - self._rest()
