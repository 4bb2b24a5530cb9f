"""The trunk of a run: the steps that it shares with runs of other length, trained once.

The run that trains them carries the trunk. It holds the trunk's lock, writes its checkpoints to the
trunk's folder, and keeps the state at each branch point, where a run of the batch begins to decay.
At its own branch point it leaves, and trains on as any run. The next run begins at the last
kept state that lies before its own branch point, and carries the trunk on from there.

No state depends on the length of the run that wrote it. What is counted in parts of a run's length,
the load of experts, is counted for each length of the batch.
"""

import shutil
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from moelaws.files.lock import Lock, acquire
from moelaws.spec.run import RunConfig
from moelaws.training.ranks import Ranks

LIMIT = 2e10  # bytes of the states that a trunk keeps; beyond these the earliest ones go
LATEST = "latest.json"


class Trunk:
    """A run's trunk: where its states lie, and whether this run still carries it."""

    def __init__(self, config: RunConfig, folder: Path, lengths: tuple[int, ...]) -> None:
        """Takes the ``lengths`` of the batch's runs that share the trunk; none if it is alone."""
        self.config, self.folder = config, folder
        self.branches = {n: config.of_length(n).branch_step for n in lengths}
        self.lock: Lock | None = None  # in the process that holds it
        self.holding = ExitStack()

    def join(self, on_wait: Callable[[str], None]) -> None:
        """Waits until no other run carries the trunk, and holds it while ``holding`` is open."""
        self.lock = self.holding.enter_context(acquire(self.folder, on_wait))

    def carried(self, ranks: Ranks) -> bool:
        """Returns whether this run holds the lock still; all its processes must ask together."""
        return bool(ranks.broadcast(self.lock is not None and self.lock.held()))

    def is_branch(self, step: int) -> bool:
        """Returns whether the state after ``step`` is one that another run goes on from."""
        if step not in self.branches.values() or step > self.config.branch_step:
            return False
        own = self.config.steps
        return any(n != own and branch >= step for n, branch in self.branches.items())

    def state(self, step: int) -> Path:
        return self.folder / str(step) / LATEST

    def last(self, step: int) -> int:
        """Returns the step of the last state up to ``step``; 0 if there is none."""
        return max((n for n in self._steps() if n <= step), default=0)

    def tidy(self, step: int) -> None:
        """Removes states between branch points but for that of ``step``, and what is too much."""
        kept = []
        for n in self._steps():
            if n == step or n in self.branches.values():
                kept.append(n)
            else:
                self._remove(n)
        with suppress(OSError):  # somebody may have removed them
            size = {n: sum(f.stat().st_size for f in self.state(n).parent.iterdir()) for n in kept}
            for n in kept:
                if sum(size.values()) > LIMIT and n != step:
                    self._remove(n)
                    del size[n]

    def leave(self) -> None:
        """Lets the next run carry the trunk."""
        self.lock = None
        self.holding.close()

    def _steps(self) -> list[int]:
        with suppress(OSError):
            return sorted(int(path.name) for path in self.folder.iterdir() if path.name.isdecimal())
        return []

    def _remove(self, step: int) -> None:
        shutil.rmtree(self.state(step).parent, ignore_errors=True)
