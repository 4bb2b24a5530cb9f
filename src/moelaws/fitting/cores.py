"""Batches of work on several cores, with the results of one.

Each core has a process, forked from this one, so that the work and its arrays need no copy. Threads
would be no faster: a batch is many short calls of NumPy, and each of them passes Python's lock on.
How work is cut into batches never depends on the number of cores, and so neither do the results:
they are the same to the last digit.
"""

import os
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing import active_children, get_context
from typing import Any, TypeVar

from moelaws.records.memory import die_with
from moelaws.spec.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")
Done = Callable[[int], None]  # takes how many of the first items have ended

_LOOK = 0.2  # seconds between two looks at whether Ctrl-C was pressed
# A batch has at most BATCH parameter vectors, and rows times vectors up to CACHED stay in the cache
# of the processor. Of many rows it still has FEW vectors, since each call of NumPy has its price,
# unless rows times vectors would be above MAX_SIZE, for memory.
BATCH, CACHED, FEW, MAX_SIZE = 250, 16_000, 8, 125_000
LARGER = 4  # batches of refits, of which a few take a thousand steps

_count: ContextVar[int] = ContextVar("cores", default=1)
_work: Callable[[Any], Any]  # of a worker process


def batches(count: int, n: int, larger: int = 1) -> list[slice]:
    """Returns slices of ``count`` parameter vectors to work on at a time, over ``n`` rows.

    They are up to ``larger`` times as large where a few vectors of each take many more steps than
    the others, so that these few take them together.
    """
    size = max(1, min(larger * BATCH, max(larger * CACHED // n, min(FEW, MAX_SIZE // n))))
    return [slice(i, min(i + size, count)) for i in range(0, count, size)]


@contextmanager
def using_cores(count: int) -> Iterator[None]:
    """Lets fits inside the block use ``count`` cores, at least one; one is the default."""
    token = _count.set(count)
    try:
        yield
    finally:
        _count.reset(token)


def core_count() -> int:
    """Returns how many cores a fit may use here: one where there is no safe fork."""
    return _count.get() if sys.platform == "linux" else 1


def unseen(*_: object) -> None:
    """Takes progress that nobody watches."""


def each(
    work: Callable[[Item], Result], items: Iterable[Item], number: int, done: Done = unseen
) -> list[Result]:
    """Returns what ``work`` returns for each of the ``number`` ``items``, in their order.

    ``done`` is called in this process with how many of the first items have ended. The error of the
    first item that fails is raised, or a UserError where a process cannot start or ends early. At
    any error and at Ctrl-C the other processes are killed.
    """
    count = min(core_count(), number)
    results: list[Result] = []
    if count <= 1:
        for item in items:
            results.append(work(item))
            done(len(results))
        return results
    others = active_children()
    context = get_context("fork")
    pool = ProcessPoolExecutor(count, context, initializer=_begin, initargs=(work, os.getpid()))
    futures: deque[Future[Result]] = deque()
    pressed: list[int] = []  # Ctrl-C, which raises nothing within the pool

    def take() -> None:
        """Takes the result of the first item that has none yet."""
        _wait(futures[0], pressed)
        results.append(futures.popleft().result())
        done(len(results))

    is_main = threading.current_thread() is threading.main_thread()
    hears = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if hears:
            signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
        for item in items:
            futures.append(_submitted(pool, item, count))
            if len(futures) > 3 * count:  # the next item, which may be large, is made only then
                take()
        while futures:
            take()
        if pressed:
            raise KeyboardInterrupt
    except BaseException as error:
        for process in set(active_children()) - set(others):
            process.kill()
        if isinstance(error, BrokenProcessPool):
            raise UserError(
                "a process of this fit was killed or ended early, perhaps for lack of memory; give "
                "fewer --threads"
            ) from None
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        if hears:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    return results


def _wait(future: Future[Any], pressed: Sequence[int]) -> None:
    """Waits until the ``future`` is done; raises KeyboardInterrupt once Ctrl-C was pressed.

    It raises it here, where none of the pool's locks is held. Python's own handler could raise it
    while one is, which nobody would free.
    """
    while not future.done():
        wait([future], _LOOK)
        if pressed:
            raise KeyboardInterrupt


def _submitted(pool: ProcessPoolExecutor, item: Any, count: int) -> Future[Any]:
    """Submits an item; the first one starts the processes, which must not hear Ctrl-C."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with warnings.catch_warnings():
            # A fork copies the locks of other libraries' threads, but not the threads. The work
            # uses neither.
            warnings.simplefilter("ignore", DeprecationWarning)
            return pool.submit(_call, item)
    except OSError as error:
        raise UserError(
            f"cannot start {count} processes ({error.strerror}); give fewer --threads"
        ) from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(work: Callable[[Any], Any], parent: int) -> None:
    """Makes a worker of this process, which forks no more and ends with its parent."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    die_with(parent)
    _count.set(1)
    _work = work


def _call(item: Any) -> Any:
    return _work(item)
