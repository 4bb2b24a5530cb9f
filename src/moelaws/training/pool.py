"""A batch of runs: each trains in a process of its own, so many side by side.

The process that has loaded torch forks for each run, which takes hundredths of a second. So a run
that dies takes no other with it, and what it held of memory goes with it. CUDA starts in the forked
processes alone.
"""

import ctypes
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import connection, get_context
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import FrameType

from moelaws.records.batches import Order

_PR_SET_PDEATHSIG = 1
_SIGNALS = (signal.SIGTERM, signal.SIGINT)

Environment = Mapping[str, str]


@dataclass
class Pool:
    """Trains runs by ``train``, one for each of the ``workers`` at a time."""

    train: Callable[[Order], None]  # in this process, or ends it with an exit code
    workers: Sequence[Environment]  # of each worker's processes, such as their GPU
    log_of: Callable[[Order], Path]  # where a run's standard output and error go
    stopped: int = 0  # the signal that ended the work
    running: dict[int, tuple[ForkProcess, Order, Environment]] = field(default_factory=dict)

    def run(self, orders: Iterable[Order]) -> dict[str, int]:
        """Trains each of ``orders`` in turn; returns run -> exit code of those that failed.

        A run that fails stops no other. After SIGTERM or the first SIGINT no more runs begin, and
        those that train are asked to write a checkpoint and are waited for.
        """
        waiting, free = deque(orders), list(self.workers)
        failed: dict[str, int] = {}
        with self._signals():
            while self.running or (waiting and not self.stopped):
                while waiting and free and not self.stopped:
                    self._start(waiting.popleft(), free.pop(0))
                for ended in connection.wait(list(self.running)):
                    assert isinstance(ended, int)
                    process, order, worker = self.running.pop(ended)
                    process.join()
                    free.append(worker)
                    if process.exitcode:
                        failed[order.config.run_id] = process.exitcode
        return failed

    def _start(self, order: Order, worker: Environment) -> None:
        process = get_context("fork").Process(target=self._begin, args=(order, worker, os.getpid()))
        # A signal between the fork and what the process makes of it would be the parent's.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            process.start()
            self.running[process.sentinel] = process, order, worker
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _begin(self, order: Order, worker: Environment, parent: int) -> None:
        """Makes this process, which was just forked, one of the run's own, and trains."""
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was killed before
            os._exit(1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        log = self.log_of(order)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.environ.update(worker)
        self.train(order)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        before = {number: signal.getsignal(number) for number in _SIGNALS}

        def stop(number: int, frame: FrameType | None) -> None:
            self.stopped = number
            if number == signal.SIGINT:  # a second one acts as it would have without us
                signal.signal(number, before[signal.SIGINT])
            # As SIGTERM: a terminal sends SIGINT to all, and a second one ends a run at once.
            for process, _, _ in self.running.values():
                process.terminate()

        for number in _SIGNALS:
            signal.signal(number, stop)
        try:
            yield
        finally:
            for process, _, _ in self.running.values():
                process.kill()
            for number, handler in before.items():
                signal.signal(number, handler)
