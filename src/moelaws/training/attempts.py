"""Notes of what a process tries, for the next process if this one dies of lack of memory.

If torch lacks memory, it raises an error. Elsewhere lack of memory may end the process at any place
and without a message: the kernel sends SIGKILL, or a library exits. A file beside the checkpoint
says what the process was trying, so that the next one can try less.
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
    stage: Stage
    sequences: int
    lacked: bool  # whether memory had lacked for more sequences before
    processes: int  # how many processes in a row have begun this and not finished it

    def lacks_memory(self, smallest: int) -> bool:
        """Returns whether these deaths are taken as lack of memory.

        A process may be killed for any reason, and a single kill must not change the result. So it
        takes a second death at the same place, or one death after memory had lacked for more. The
        ``smallest`` attempt is always made twice, because nothing less can be tried.
        """
        return self.processes > 1 or (self.lacked and self.sequences > smallest)


class NoRoomError(MemoryError):
    """Earlier processes died of the smallest attempt; all processes of the run know it."""


class Attempts(Callback):
    """What this process tries, and what those before it died of.

    If a run has several processes, the note is of the first one alone.
    """

    def __init__(self, plan: TrainingPlan) -> None:
        self.plan, self.path = plan, plan.folders.checkpoint.with_name(FILE)
        self.stage: Stage = "training"  # what is tried now ...
        self.sequences = 0  # ... with this many sequences at a time
        self._noted = plan.ranks.is_first and self.path.exists()
        self._before: Attempt | None = None  # of earlier processes
        with suppress(UserError):  # an unreadable note counts as none
            self._before = parse(Attempt, read_json(self.path), self.path) if self._noted else None

    def died(self, stage: Stage) -> Attempt | None:
        """Returns the attempt that the processes before this one died of in ``stage``."""
        return self._before if self._before and self._before.stage == stage else None

    def largest(self, stage: Stage, whole: int, smallest: int) -> int:
        """Returns the most sequences to try at a time, fewer than earlier processes died of.

        Raises NoRoomError if they died of ``smallest``.
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
        """Notes what is tried now; on a full disk it goes on without a note."""
        self.stage, self.sequences = stage, sequences
        died = self.died(stage)
        before = died.processes if died and died.sequences == sequences else 0
        if self.plan.ranks.is_first:
            self._noted = True
            self._write(lacked, before + 1)

    def fail(self) -> None:
        """Notes for the next start that memory lacked in this process, the run's first or not."""
        self._write(lacked=True, processes=2)

    def _write(self, lacked: bool, processes: int) -> None:
        attempt = Attempt(
            stage=self.stage, sequences=self.sequences, lacked=lacked, processes=processes
        )
        with suppress(UserError):
            write_json(self.path, attempt.model_dump())

    def end(self) -> None:
        """Removes the note: the process lives on, or ends with a message."""
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
