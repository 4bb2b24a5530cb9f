"""Batches of work on several cores, with the results of one.

Each core has a process of its own, forked from this one, so that nothing is copied beforehand and
results come back through shared memory. Threads would not do: a batch is many short calls of NumPy,
and each of them passes Python's lock on. How work is cut into batches never depends on the number
of cores. So neither do results: they are the same to the last digit.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from moelaws.spec.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")

_count: ContextVar[int] = ContextVar("cores", default=1)


@contextmanager
def using_cores(count: int) -> Iterator[None]:
    """Lets fits inside the block use ``count`` cores; one is the default.

    Raises:
        ValueError: for a count below 1.
    """
    if count < 1:
        raise ValueError(f"{count} cores; at least one is needed")
    token = _count.set(count)
    try:
        yield
    finally:
        _count.reset(token)


def core_count() -> int:
    """Returns how many cores a fit may use here: one where there is no safe fork."""
    return _count.get() if sys.platform == "linux" else 1


def cores_at_work() -> int:
    """Returns how many of ``core_count`` the system lets this process use at the same time."""
    return min(core_count(), len(os.sched_getaffinity(0))) if sys.platform == "linux" else 1


def shared(shape: tuple[int, ...], dtype: type = float) -> NDArray[Any]:
    """Returns an array of zeros that :func:`each` may fill."""
    size = math.prod(shape)
    if core_count() == 1:
        return np.zeros(shape, dtype)
    memory = mmap.mmap(-1, max(1, size * np.dtype(dtype).itemsize))
    return np.frombuffer(memory, dtype, size).reshape(shape)


def each(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    number: int,
    done: Callable[[Item], None] = lambda item: None,
) -> list[Result]:
    """Calls ``work`` with each of ``items`` and returns what it returned, in their order.

    There are ``number`` items. They are drawn by every process anew, and must be the same. Large
    results are better written to places of their own in shared arrays. ``done`` is called here, in
    the order of the items, and so is raised what ``work`` raises: of the first item that fails. At
    any error and at Ctrl-C the other processes are killed.

    Raises:
        UserError: where a process cannot start or ends early, as where the system kills it for lack
            of memory.
    """
    count = min(core_count(), number)
    results: list[Result] = []
    if count <= 1:
        for item in items:
            results.append(work(item))
            done(item)
        return results
    workers: dict[Connection, BaseProcess] = {}
    # Nothing is sent here. It is at its end once this process has closed it or was killed.
    lifeline, hold = Pipe(duplex=False)
    with _Turns() as turns:
        try:
            with _starting(count):
                for _ in range(count):
                    receiving, worker = _worker(work, items, number, turns, lifeline, hold)
                    workers[receiving] = worker
            ended = _ended(workers, number)
            for item, (result, error) in zip(items, ended, strict=True):
                if error is not None:
                    raise error
                results.append(result)
                done(item)
        finally:
            hold.close()
            for worker in workers.values():
                worker.kill()
            for worker in workers.values():
                worker.join()
    return results


class _Turns:
    """Gives each of several processes the number of the next item that none has.

    A process that is killed meanwhile holds up no other: the kernel frees its lock.
    """

    def __enter__(self) -> _Turns:
        self.file = os.memfd_create("turns")
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.file)

    def __call__(self) -> int:
        fcntl.lockf(self.file, fcntl.LOCK_EX)
        turn = int.from_bytes(os.pread(self.file, 8, 0), "little")
        os.pwrite(self.file, (turn + 1).to_bytes(8, "little"), 0)
        fcntl.lockf(self.file, fcntl.LOCK_UN)
        return turn


def _ended(workers: Mapping[Connection, BaseProcess], number: int) -> Iterator[tuple[Any, Any]]:
    """Yields the result and the error of each item, in their order, as soon as it is there."""
    working, early, turn = dict(workers), dict[int, tuple[Any, Any]](), 0
    while turn < number:
        for receiving in wait(list(working)):
            assert isinstance(receiving, Connection)
            try:
                which, *ended = receiving.recv()
            except EOFError:
                worker = working.pop(receiving)
                worker.join()
                if worker.exitcode or not working:
                    raise _ended_early(worker.exitcode or 0) from None
                continue
            early[which] = (ended[0], ended[1])
        while turn in early:
            yield early.pop(turn)
            turn += 1


@contextmanager
def _starting(count: int) -> Iterator[None]:
    """Holds Ctrl-C back, which a process that has just been forked would report by itself."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot start {count} processes ({error.strerror}); give fewer --threads"
        ) from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _worker(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    number: int,
    turns: _Turns,
    lifeline: Connection,
    hold: Connection,
) -> tuple[Connection, BaseProcess]:
    """Starts a process; returns where it tells of each item that it has done, and the process."""
    receiving, sending = Pipe(duplex=False)
    words = (work, items, number, turns, sending, lifeline, hold)
    worker = get_context("fork").Process(target=_run, args=words)
    worker.daemon = True
    with warnings.catch_warnings():
        # Threads of other libraries stay behind, and their locks: nothing of them is used.
        warnings.simplefilter("ignore", DeprecationWarning)
        worker.start()
    sending.close()
    return receiving, worker


def _run(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    number: int,
    turns: _Turns,
    sending: Connection,
    lifeline: Connection,
    hold: Connection,
) -> None:
    """Does the ``work`` of one process: one item after the other that is not done yet."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    hold.close()
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    _count.set(1)
    turn, drawn = turns(), enumerate(items)
    try:
        while turn < number:
            item = next(item for own, item in drawn if own == turn)
            sending.send((turn, work(item), None))
            turn = turns()
    except BaseException as error:
        where = traceback.format_exc()
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
        if not isinstance(error, UserError):
            error.add_note(where)  # no pipe takes a traceback
        sending.send((turn, None, error))


def _end_with(lifeline: Connection) -> None:
    lifeline.poll(None)
    os._exit(1)


def _ended_early(exit_code: int) -> UserError:
    if exit_code >= 0:
        return UserError(f"a process of this fit ended early (exit code {exit_code})")
    return UserError(
        f"a process of this fit was killed ({signal.strsignal(-exit_code)}), perhaps for lack of "
        "memory; give fewer --threads"
    )
