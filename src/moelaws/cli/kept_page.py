"""explore.html, written again and again while a sweep runs."""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from pathlib import Path

from moelaws.cli.explore import write_page
from moelaws.spec.errors import UserError
from moelaws.spec.project import Project

EVERY = 60.0  # seconds between the beginnings of two writings


class Page:
    """The page of a project's tier. It takes seconds to write, so a thread of its own does it.

    Whoever has it open sees the new one after a reload: it is replaced in one step.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self._thread = threading.Thread(target=self._write)  # of the last writing, or of none
        self._began = -math.inf

    def refresh(self) -> None:
        """Begins to write the page, where the last writing is over and began a minute ago."""
        if time.monotonic() - self._began >= EVERY and not self._thread.is_alive():
            self._began = time.monotonic()
            self._thread = threading.Thread(target=self._write, daemon=True)
            self._thread.start()

    def write_last(self) -> Path:
        """Writes the page of what there is at the end; returns where it is.

        Raises:
            UserError: where it cannot be written.
        """
        if self._thread.is_alive():
            self._thread.join()
        return write_page(self.project)[0]

    def _write(self) -> None:
        # Before the first run has ended there is little to show, and perhaps nothing.
        with suppress(UserError):
            write_page(self.project)
