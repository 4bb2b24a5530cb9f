"""Trains a batch of runs, each in its own process, some of them side by side.

The process that has loaded torch forks for each run, which takes hundredths of a second. So a run
that dies ends no other, and its memory is freed. CUDA starts in the forked processes alone.
"""

import gc
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection, get_context
from multiprocessing.context import ForkProcess
from pathlib import Path

from moelaws.accounting.cost import CPU, H100, estimate
from moelaws.records.batches import Order
from moelaws.records.memory import die_with
from moelaws.training.signals import stoppable

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK = 0.1  # seconds between two looks at whether a signal has come

Environment = Mapping[str, str]


def dearest_first(orders: Iterable[Order], device: str) -> list[Order]:
    """Returns ``orders`` by estimated time, so that no long run begins when the others end.

    As before, a run that goes on from a shorter one's trunk comes after it (``by_trunk``).
    """

    def place(order: Order) -> tuple[int, float]:
        steps = order.config.steps
        lengths = order.lengths or (steps,)
        longest = order.config.of_length(max(lengths))
        return lengths.index(steps), -estimate(longest, H100 if device == "cuda" else CPU).seconds

    return sorted(orders, key=place)


@dataclass
class Pool:
    """Trains runs by ``train``, each of the ``workers`` one at a time."""

    train: Callable[[Order], None]  # trains in this process, or ends it with an exit code
    workers: Sequence[Environment]  # variables of each worker's processes, such as their GPU
    log_of: Callable[[Order], Path]  # the file of a run's standard output and error
    stopped: int = 0  # the signal that ended the work
    running: dict[int, tuple[ForkProcess, Order, Environment]] = field(default_factory=dict)

    def run(self, orders: Iterable[Order]) -> dict[str, int]:
        """Trains ``orders``; returns run -> exit code of those that failed.

        A run that fails stops no other. After SIGTERM or the first SIGINT no more runs begin. Those
        that train are asked to write a checkpoint, and this function waits for them.
        """
        waiting, free = deque(orders), list(self.workers)
        failed: dict[str, int] = {}
        with stoppable() as stop:
            try:
                while self.running or (waiting and not self.stopped):
                    while waiting and free and not self.stopped:
                        self._start(waiting.popleft(), free.pop(0))
                    for ended in connection.wait(list(self.running), _LOOK):
                        assert isinstance(ended, int)
                        process, order, worker = self.running.pop(ended)
                        process.join()
                        free.append(worker)
                        if process.exitcode:
                            failed[order.config.run_id] = process.exitcode
                    if stop.signum is not None and not self.stopped:
                        self.stopped = stop.signum
                        # SIGTERM: a terminal sends SIGINT to all, and a second ends a run at once
                        for process, _, _ in self.running.values():
                            process.terminate()
            finally:
                for process, _, _ in self.running.values():
                    process.kill()
        return failed

    def _start(self, order: Order, worker: Environment) -> None:
        process = get_context("fork").Process(target=self._begin, args=(order, worker, os.getpid()))
        # Until the new process sets its own handlers, it would handle signals like its parent.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            process.start()
            self.running[process.sentinel] = process, order, worker
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _begin(self, order: Order, worker: Environment, parent: int) -> None:
        """Sets up this newly forked process for its run, and trains."""
        die_with(parent)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        log = self.log_of(order)
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
        except OSError as error:
            sys.exit(f"moelaws: {log}: cannot be written: {error.strerror}")
        os.environ.update(worker)
        gc.freeze()  # what is loaded stays, and is not looked through again and again
        self.train(order)
