"""Notes of what a process tries that may take more memory than there is, read if it died of it.

Lack of memory raises an error where torch allocates; elsewhere it may end the process at any place
and without a word: by the kernel's SIGKILL, or in a library that prints a riddle and exits. What
such a process was trying stands in a file beside the checkpoint, and the next one tries less.
"""

from contextlib import suppress
from typing import Literal

from moelaws.files.atomic import read_json, remove, write_json
from moelaws.spec.base import Frozen, parse
from moelaws.spec.errors import UserError
from moelaws.training.loop import Callback, Trainer, halved
from moelaws.training.plan import TrainingPlan

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


class NoRoomError(MemoryError):
    """Earlier processes died of the least that can be tried; all processes of the run know it."""


class Attempts(Callback):
    """What this process tries, and what those before it died of.

    Of several processes of a run the first one keeps the note; what the others begin is not noted.
    """

    def __init__(self, plan: TrainingPlan) -> None:
        self.plan, self.path = plan, plan.folders.checkpoint.with_name(FILE)
        self.stage: Stage = "training"  # what is tried now, ...
        self.sequences = 0  # ... with so many at a time
        self._noted = plan.ranks.is_first and self.path.exists()
        self._before: Attempt | None = None  # of the dead
        with suppress(UserError):  # a note that cannot be read says nothing
            self._before = parse(Attempt, read_json(self.path), self.path) if self._noted else None

    def died(self, stage: Stage) -> Attempt | None:
        """Returns what the processes before this one died of in ``stage``."""
        return self._before if self._before and self._before.stage == stage else None

    def largest(self, stage: Stage, whole: int, smallest: int) -> int:
        """Returns the most sequences to try at a time: fewer than processes before this died of.

        Raises:
            NoRoomError: where they died of ``smallest``.
        """
        sequences, died = whole, self.died(stage)
        if died is not None and died.lacks_memory(smallest):
            tried = died.sequences
            sequences = min(whole, halved(tried, smallest)) if tried > smallest else 0
        sequences = self.plan.ranks.broadcast(sequences)
        if not sequences:
            count = died.processes if died else 0
            raise NoRoomError(f"{count} processes in a row ended without a word")
        if died is not None and sequences < whole:
            self.plan.log(
                f"the process before this one ended without a word in {stage}, with "
                f"{died.sequences} sequences at a time, as lack of memory may end it: going on "
                f"with {sequences}"
            )
        return sequences

    def begin(self, stage: Stage, sequences: int, lacked: bool) -> None:
        """Notes what is tried now; without room on the disk it goes on without a note."""
        self.stage, self.sequences = stage, sequences
        died = self.died(stage)
        before = died.processes if died and died.sequences == sequences else 0
        if self.plan.ranks.is_first:
            self._noted = True
            self._write(lacked, before + 1)

    def fail(self) -> None:
        """Notes that memory lacked in this process, whichever of the run's it is: the next start
        tries less."""
        self._write(lacked=True, processes=2)

    def _write(self, lacked: bool, processes: int) -> None:
        attempt = Attempt(
            stage=self.stage, sequences=self.sequences, lacked=lacked, processes=processes
        )
        with suppress(UserError):
            write_json(self.path, attempt.model_dump())

    def end(self) -> None:
        """Forgets what was tried: the process lives on, or ends with a word."""
        if self._noted:
            remove(self.path)
            self._noted = False

    def after_step(self, trainer: Trainer) -> None:
        self.end()

    def after_lack(self, trainer: Trainer) -> None:
        self.plan.check_lock()
        self.begin("training", trainer.micro_batch, lacked=True)
        self.plan.log(
            f"out of memory: going on with micro-batches of {trainer.micro_batch} sequences"
        )
