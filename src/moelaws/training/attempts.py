"""Notes of what a process tries that may take more memory than there is, read if it died of it.

Lack of memory raises an error where torch allocates; elsewhere it may end the process at any place
and without a word: by the kernel's SIGKILL, or in a library that prints a riddle and exits. What
such a process was trying stands in a file beside the checkpoint, and the next one tries less.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

from moelaws.records.files import read_json, remove, write_json
from moelaws.spec.base import Frozen, parse
from moelaws.spec.errors import UserError

FILE = "attempt.json"

Stage = Literal["training", "evaluation"]


class Attempt(Frozen):
    """What was being tried, and how many processes in a row have begun it and not come to its end.

    ``lacked`` says that more sequences had lacked memory before.
    """

    stage: Stage
    sequences: int
    lacked: bool
    processes: int

    def lacks_memory(self, smallest: int) -> bool:
        """Tells whether these deaths are taken as lack of memory.

        A process may be killed for any reason, and one kill must change no bit of the result: so
        it takes a second death at the same place, or one after memory had lacked for more. The
        smallest attempt is always made twice: there is no other.
        """
        return self.processes > 1 or (self.lacked and self.sequences > smallest)


class Attempts:
    """The attempts of one run at a path of its own, whose lock the caller holds.

    Of several processes of a run the first one keeps them; those of the others (``keeps`` is
    false) say nothing and are not written.
    """

    def __init__(self, path: Path, keeps: bool = True) -> None:
        self.path, self.keeps = path, keeps
        self._noted = keeps and path.exists()
        self._of_the_dead: Attempt | None = None
        with suppress(UserError):  # a note that cannot be read says nothing
            self._of_the_dead = parse(Attempt, read_json(path), path) if self._noted else None

    def died(self, stage: Stage) -> Attempt | None:
        """Returns what the processes before this one died of in ``stage``."""
        died = self._of_the_dead
        return died if died and died.stage == stage else None

    def begin(self, stage: Stage, sequences: int, lacked: bool) -> None:
        """Notes an attempt; without room on the disk it goes on without a note."""
        died = self.died(stage)
        before = died.processes if died and died.sequences == sequences else 0
        attempt = Attempt(stage=stage, sequences=sequences, lacked=lacked, processes=before + 1)
        if self.keeps:
            self._noted = True
            self._write(attempt)

    def fail(self, stage: Stage, sequences: int) -> None:
        """Notes that so many sequences lacked memory in this process, whichever of the run's it
        is: the next start tries less."""
        self._write(Attempt(stage=stage, sequences=sequences, lacked=True, processes=2))

    def _write(self, attempt: Attempt) -> None:
        with suppress(UserError):
            write_json(self.path, attempt.model_dump())

    def end(self) -> None:
        """Forgets what was tried: the process lives on, or ends with a word."""
        if self._noted:
            remove(self.path)
            self._noted = False
