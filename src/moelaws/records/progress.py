"""Progress of long work on standard error: one line on a terminal, else a line now and then."""

import os
import shutil
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from moelaws.spec.words import visible

DRAWINGS = 0.1  # the fewest seconds between two texts on a terminal
BETWEEN = 5.0  # ... and between two lines of a log
AGAIN = 60.0  # seconds after which a log gets a line even if nothing changed
ERASE = "\r\x1b[K"


class StatusLine:
    """The line of progress, and the messages above it, on standard error.

    If all output goes through this object (``is_alone``), a terminal's line changes in place.
    """

    def __init__(self, is_alone: bool = False) -> None:
        self.is_alone = is_alone
        self._lock = threading.RLock()
        self._shown = self._printed = ""
        self._time = time.monotonic()

    @property
    def in_place(self) -> bool:
        return self.is_alone and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, text: str, last: bool = False) -> None:
        """Shows ``text`` as the line, unless another was shown just now; the ``last`` one stays."""
        text = visible(text)
        with self._lock:
            waited = time.monotonic() - self._time
            if last and text == self._printed:
                return
            if self.in_place:
                if not last and (text == self._shown or (self._shown and waited < DRAWINGS)):
                    return
                width = shutil.get_terminal_size().columns - 1
                self._write(ERASE + text[:width] + "\n" * last)
                self._shown, self._printed = ("", text) if last else (text, self._printed)
            elif last or waited >= (AGAIN if text == self._printed else BETWEEN):
                self._write(text + "\n")
                self._printed = text
            else:
                return
            self._time = time.monotonic()

    def say(self, text: str) -> None:
        """Prints lines that stay, above the line."""
        with self._lock:
            self.clear()
            self._write(text + "\n")

    def clear(self) -> None:
        """Erases the line for other output; the next ``show`` brings it back."""
        with self._lock:
            if self._shown:
                self._write(ERASE)
                self._shown = ""

    def _write(self, text: str) -> None:
        # A stream that shows control sequences as text has the terminal beneath.
        stream = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
        stream.write(text)
        stream.flush()


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
    line = StatusLine(is_alone=True)
    first: dict[str, tuple[float, float, dict[str, float]]] = {}

    def report(
        stage: str, done: float, total: float | None, note: str = "", **amounts: float
    ) -> None:
        now = time.monotonic()
        began, done_before, amounts_before = first.setdefault(stage, (now, done, amounts))
        seconds = now - began
        texts = [note or (f"{done:g}" if total is None else f"{done:g}/{total:g}")]
        if seconds > 0:
            for name, amount in amounts.items():
                if speed := (amount - amounts_before[name]) / seconds:
                    texts.append(f"{speed:,.{0 if speed >= 100 else 1}f} {name}/s")
        if total is not None and done_before < done < total:
            texts.append(f"{duration(seconds * (total - done) / (done - done_before))} left")
        if lines or line.in_place:
            # A log gets the end of what took long alone.
            ended = done == total and (line.in_place or seconds > BETWEEN)
            line.show(f"{stage}: {', '.join(texts)}", last=ended)

    yield report
    line.clear()


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
