"""Progress of long work on standard error: bars on a terminal, else a line every few seconds."""

import math
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

LINES = 5.0  # seconds between the lines of a stage
DRAWINGS = 0.1  # seconds between the drawings of a bar
Show = Callable[[str, float, float | None, str], None]  # takes stage, done, total and a text


class Report(Protocol):
    """Takes the progress of a stage, which begins with its first report."""

    def __call__(
        self, stage: str, done: float, total: float | None, note: str = "", **amounts: float
    ) -> None:
        """Takes how much is ``done`` of ``total``, which is None if it is unknown.

        ``note`` says what is done, by default DONE/TOTAL. ``amounts`` are name -> amount so far, as
        ``tokens``; they are shown per second.
        """


@contextmanager
def reporting(lines: bool = True) -> Iterator[Report]:
    """Yields a report for as long as the block runs; without ``lines`` only a terminal shows it."""
    if not sys.stderr.isatty():
        yield _Stages(_print, LINES if lines else math.inf)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False) as bars:
        tasks: dict[str, Any] = {}

        def draw(stage: str, done: float, total: float | None, text: str) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total, text="")
            bars.update(tasks[stage], completed=done, total=total, text=text, refresh=True)

        yield _Stages(draw, DRAWINGS, at_once=True)


class _Stages:
    """A report that shows a stage at intervals, and also the end of a stage that was shown."""

    def __init__(self, show: Show, interval: float, at_once: bool = False) -> None:
        self.show, self.interval, self.at_once = show, interval, at_once
        self.first: dict[str, tuple[float, float, dict[str, float]]] = {}
        self.last: dict[str, float] = {}

    def __call__(
        self, stage: str, done: float, total: float | None, note: str = "", **amounts: float
    ) -> None:
        now = time.monotonic()
        if stage not in self.first:
            self.first[stage] = now, done, amounts
            self.last[stage] = -math.inf if self.at_once else now
        began, done_before, amounts_before = self.first[stage]
        ended = done == total and (self.at_once or self.last[stage] > began)
        if now - self.last[stage] < self.interval and not ended:
            return
        self.last[stage], seconds = now, now - began
        texts = [note or (f"{done:g}" if total is None else f"{done:g}/{total:g}")]
        if seconds > 0:
            for name, amount in amounts.items():
                if speed := (amount - amounts_before[name]) / seconds:
                    texts.append(f"{speed:,.{0 if speed >= 100 else 1}f} {name}/s")
        if total is not None and done_before < done < total:
            texts.append(f"{duration(seconds * (total - done) / (done - done_before))} left")
        self.show(stage, done, total, ", ".join(texts))


def _print(stage: str, done: float, total: float | None, text: str) -> None:
    print(f"{stage}: {text}", file=sys.stderr, flush=True)


def ended_by(number: int) -> str:
    """Returns words for the end of a process by a signal."""
    # Where memory is short, the kernel sends it.
    usual = ", usually for lack of memory" if number == signal.SIGKILL else ""
    name = signal.Signals(number).name if number in [*signal.Signals] else "a signal"
    return f"was ended by {name} ({number}){usual}"


def last_lines(log: Path, limit: int) -> list[str]:
    """Returns the last lines of a log that are not empty, or none if it cannot be read."""
    with suppress(OSError), log.open(encoding="utf-8", errors="replace") as file:
        return list(deque((line.rstrip() for line in file if line.strip()), limit))
    return []


def duration(seconds: float) -> str:
    """Returns a time as people say it: 80 s, 12 min, 3.5 h, 2 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:,.0f} days"
