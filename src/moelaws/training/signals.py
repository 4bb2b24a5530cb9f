"""Clean stops: a signal is noted, and the run stops between two steps."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from moelaws.training.loop import Callback, Trainer
from moelaws.training.ranks import Ranks


class Stopped(Exception):  # noqa: N818, it is no error
    """A signal asked the run to stop; its exit code is 128 + ``signum``."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.signum = signum
        self.saved = False  # whether a checkpoint was written


class Stop(Callback):
    """Notes SIGTERM, however often it comes, and the first SIGINT; a second one acts as usual."""

    def __init__(self) -> None:
        self.signum: int | None = None

    def check(self) -> None:
        """Raises Stopped once a signal has come."""
        if self.signum is not None:
            raise Stopped(self.signum)

    def check_all(self, ranks: Ranks) -> None:
        """Raises Stopped in all processes of a run once a signal has come to one of them."""
        if signum := ranks.maximum(self.signum or 0):
            raise Stopped(signum)

    def after_step(self, trainer: Trainer) -> None:
        self.check_all(trainer.ranks)


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Notes signals while the block runs; only the main thread can do so."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)}

    def note(signum: int, frame: FrameType | None) -> None:
        stop.signum = signum
        if signum == signal.SIGINT:
            signal.signal(signum, before[signal.SIGINT])

    for s in before:
        signal.signal(s, note)
    try:
        yield stop
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
