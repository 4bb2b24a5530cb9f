"""Batches of work on several cores, with the results of one.

Each core has a process of its own, forked from this one, so that nothing is copied beforehand and
results come back through shared memory. Threads would not do: a batch is many short calls of NumPy,
and each of them passes Python's lock on. How work is cut into batches never depends on the number
of cores. So neither do results: they are the same to the last digit.
"""

from __future__ import annotations

import math
import mmap
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from moelaws.spec.errors import UserError

Item = TypeVar("Item")

_count: ContextVar[int] = ContextVar("cores", default=1)
_parent: ContextVar[int | None] = ContextVar("parent", default=None)


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


def shared(shape: tuple[int, ...], dtype: type = float) -> NDArray[Any]:
    """Returns an array of zeros that :func:`each` may fill."""
    size = math.prod(shape)
    if core_count() == 1:
        return np.zeros(shape, dtype)
    memory = mmap.mmap(-1, max(1, size * np.dtype(dtype).itemsize))
    return np.frombuffer(memory, dtype, size).reshape(shape)


def each(
    work: Callable[[Item], None],
    items: Iterable[Item],
    done: Callable[[Item], None] = lambda item: None,
) -> None:
    """Calls ``work`` with each of ``items``, which write to places of their own in shared arrays.

    ``items`` are drawn by every process anew, and must be the same. ``done`` is called here, in the
    order of the items, and so is raised what ``work`` raises: of the first item that fails. At any
    error and at Ctrl-C the other processes are killed.

    Raises:
        UserError: where the system kills a process, as it does for lack of memory.
    """
    count = min(core_count(), len(items) if isinstance(items, Sized) else core_count())
    if count <= 1:
        for item in items:
            work(item)
            done(item)
        return
    workers: list[tuple[int, Connection]] = []
    try:
        for first in range(count):
            workers.append(_fork(work, items, first, count))
        for i, item in enumerate(items):
            pid, receiving = workers[i % count]
            try:
                error = receiving.recv()
            except EOFError:
                raise _killed(pid) from None
            if error is not None:
                raise error
            done(item)
    finally:
        for pid, receiving in workers:
            receiving.close()
            _end(pid)


def keep_on() -> None:
    """Ends a process of :func:`each` whose parent was killed."""
    parent = _parent.get()
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def _fork(
    work: Callable[[Item], None], items: Iterable[Item], first: int, count: int
) -> tuple[int, Connection]:
    """Starts a process for each ``count``-th item from the ``first``; it tells when one is done."""
    receiving, sending = Pipe(duplex=False)
    parent = os.getpid()
    with warnings.catch_warnings():
        # Threads of other libraries stay behind, and their locks: nothing of them is used.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        sending.close()
        return pid, receiving
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
        _count.set(1)
        _parent.set(parent)
        for i, item in enumerate(items):
            if i % count == first:
                work(item)
                sending.send(None)
    except BaseException as error:
        sending.send(_sendable(error))
    finally:
        os._exit(0)


def _sendable(error: BaseException) -> BaseException:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _killed(pid: int) -> UserError:
    _, status = os.waitpid(pid, 0)
    return UserError(
        f"a process of this fit was killed ({signal.strsignal(os.WTERMSIG(status))}), perhaps for "
        "lack of memory; give fewer --threads"
    )


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):  # it was waited for
        pass
