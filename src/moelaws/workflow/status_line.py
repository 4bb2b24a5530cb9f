"""A line at the end of a terminal that changes in place; in a log, a line now and then."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time

BETWEEN = 5.0  # seconds between two lines of a log, at the least
AGAIN = 60.0  # seconds after which a log gets a line though nothing changed
ERASE = "\r\x1b[K"


class StatusLine:
    """The line, and the messages above it, on standard error.

    ``is_alone`` tells that nobody else writes there but through this object: the line then changes
    in place on a terminal.
    """

    def __init__(self) -> None:
        self.is_alone = False
        self._lock = threading.RLock()
        self._shown = self._printed = ""
        self._time = time.monotonic()

    @property
    def _in_place(self) -> bool:
        return self.is_alone and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, text: str, last: bool = False) -> None:
        """Shows ``text`` as the line; the ``last`` one stays."""
        with self._lock:
            if self._in_place:
                if text == self._shown and not last:
                    return
                width = shutil.get_terminal_size().columns - 1
                self._write(ERASE + text[:width] + ("\n" if last else ""))
                self._shown = "" if last else text
                return
            waited = time.monotonic() - self._time
            if text == self._printed and (last or waited < AGAIN):
                return
            if last or waited >= BETWEEN:
                self._printed, self._time = text, time.monotonic()
                self._write(text + "\n")

    def say(self, text: str) -> None:
        """Prints lines that stay, above the line."""
        with self._lock:
            self.clear()
            self._write(text + "\n")

    def clear(self) -> None:
        """Makes room for what somebody else prints; the next ``show`` brings the line back."""
        with self._lock:
            if self._shown:
                self._write(ERASE)
                self._shown = ""

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
