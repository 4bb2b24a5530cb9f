"""Work in a process of its own that is killed by SIGKILL where it renames, links or unlinks."""

import os
import signal
import sys
from collections.abc import Callable

POINTS = ("os.rename", "os.link", "os.remove")


def killed_at(point: int, work: Callable[[], object]) -> bool:
    """Does ``work`` in a forked process; tells whether it was killed, at its ``point``-th step.

    Steps are counted from 0, so that ``work`` must kill itself where -1 is given. A process that
    has fewer steps does its work to the end; one whose work fails fails the test.
    """
    child = os.fork()
    if child == 0:
        count = -1

        def kill(event: str, words: tuple[object, ...]) -> None:
            nonlocal count
            if event in POINTS:
                count += 1
                if count == point:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill)
        try:
            work()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0
