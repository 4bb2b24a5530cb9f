"""Batches of work on several threads, with the results of one.

NumPy works on its arrays without Python's lock, so threads fill as many cores and share all memory.
How work is cut into batches, and the order in which batches are begun and reported, never depends
on the number of threads. So neither do results: they are the same to the last digit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Event
from typing import TypeVar

Item = TypeVar("Item")

_count: ContextVar[int] = ContextVar("threads", default=1)
_given_up: ContextVar[Event | None] = ContextVar("given_up", default=None)


class GivenUpError(Exception):
    """Ends the work of a thread whose results nobody waits for any longer."""


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Lets fits inside the block use ``count`` threads; one is the default.

    Raises:
        ValueError: for a count below 1.
    """
    if count < 1:
        raise ValueError(f"{count} threads; at least one is needed")
    token = _count.set(count)
    try:
        yield
    finally:
        _count.reset(token)


def thread_count() -> int:
    """Returns how many threads a fit may use here."""
    return _count.get()


def each(
    work: Callable[[Item], None],
    items: Iterable[Item],
    done: Callable[[Item], None] = lambda item: None,
) -> None:
    """Calls ``work`` with each of ``items``, which write to places of their own.

    ``items`` are drawn in order, and only a few before they are worked on. ``done`` is called in
    the caller's thread, in the order of the items. The error of the first item that fails is raised
    there too. Then, and at Ctrl-C, the other threads end at their next :func:`keep_on`.
    """
    count = thread_count()
    if count == 1:
        for item in items:
            work(item)
            done(item)
        return
    given_up = Event()

    def alone(item: Item) -> None:
        _count.set(1)  # work within work stays on its thread
        _given_up.set(given_up)
        keep_on()
        work(item)

    waiting: deque[tuple[Item, Future[None]]] = deque()

    def await_first() -> None:
        item, future = waiting.popleft()
        future.result()
        done(item)

    with ThreadPoolExecutor(count) as pool:
        try:
            for item in items:
                # NumPy's error state is of the context.
                waiting.append((item, pool.submit(copy_context().run, alone, item)))
                if len(waiting) > 2 * count:
                    await_first()
            while waiting:
                await_first()
        finally:
            given_up.set()  # does nothing where all is done


def keep_on() -> None:
    """Raises :class:`GivenUpError` in a thread of :func:`each` whose caller has ended."""
    given_up = _given_up.get()
    if given_up is not None and given_up.is_set():
        raise GivenUpError
