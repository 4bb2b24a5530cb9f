"""The launcher: it loads libraries once, then forks a process for each command that it is sent.

Loading torch takes seconds, a fork a few hundredths of one. Nothing of this package is loaded
before the fork, so that each command runs the code that is there when it starts.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import io
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from moelaws.launcher.client import FOLDER, LENGTH, STARTED, STATUS

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_READ_WITHIN = 10.0  # seconds, for a command that is stopped while it asks


class Launcher:
    """Serves the commands that come to a socket until its ``lifeline`` is closed.

    Commands that are under way then are waited for.
    """

    def __init__(self, address: Path, lifeline: int) -> None:
        self.lifeline = lifeline
        self.listener = socket.socket(socket.AF_UNIX)
        # A name of its own first: who finds the address finds a launcher that listens.
        before = address.with_name(f"{address.name}.{os.getpid()}")
        self.listener.bind(str(before))
        self.listener.listen(128)
        os.rename(before, address)
        self.address = address
        self.waiting = selectors.DefaultSelector()
        self.waiting.register(lifeline, selectors.EVENT_READ, self._end)
        self.waiting.register(self.listener, selectors.EVENT_READ, self._take)
        self.running = 0
        self.ended = False

    def serve(self) -> dict[str, Any] | None:
        """Returns None at the end; in each process that it forks, the command to run there."""
        while self.running or not self.ended:
            ready = [key for key, _ in self.waiting.select()]
            # The end of a command closes its connection, from which a signal may have come too.
            for key in sorted(ready, key=lambda key: isinstance(key.fileobj, int)):
                if request := key.data():
                    return request  # type: ignore[no-any-return]
        return None

    def _end(self) -> None:
        self.waiting.unregister(self.lifeline)
        self.waiting.unregister(self.listener)
        self.listener.close()
        with suppress(OSError):
            self.address.unlink()
            self.address.parent.rmdir()  # by the last launcher in there
        self.ended = True

    def _take(self) -> dict[str, Any] | None:
        link, _ = self.listener.accept()
        child, launcher, streams = 0, os.getpid(), list[int]()
        with suppress(OSError, ValueError):  # a client that ended, or no memory for a fork
            request, streams = _received(link)
            # In another environment there are other libraries.
            if request["prefix"] == sys.prefix:
                child = os.fork()
                if not child:
                    return self._begun(launcher, link, request, streams)
        for stream in streams:
            os.close(stream)
        if child:
            self._follow(child, link)
        else:
            link.close()  # the client then runs its command by itself
        return None

    def _begun(
        self, launcher: int, link: socket.socket, request: dict[str, Any], streams: list[int]
    ) -> dict[str, Any]:
        """Makes a process that was just forked one of the command's own."""
        try:
            os.setpgid(0, 0)  # a terminal's signals come by way of the client
            _die_with(launcher)
            self._close_all(link)
            _become(request, streams)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        return request

    def _follow(self, child: int, link: socket.socket) -> None:
        process = os.pidfd_open(child)

        def pass_on() -> None:
            numbers = b""
            with suppress(OSError):
                numbers = link.recv(64)
            for number in numbers or (signal.SIGKILL,):  # the client was killed
                signal.pidfd_send_signal(process, number)
            if not numbers:
                self.waiting.unregister(link)

        def end() -> None:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            with suppress(OSError):
                link.sendall(STATUS.pack(status))
            with suppress(KeyError):
                self.waiting.unregister(link)
            self.waiting.unregister(process)
            link.close()
            os.close(process)
            self.running -= 1

        self.waiting.register(link, selectors.EVENT_READ, pass_on)
        self.waiting.register(process, selectors.EVENT_READ, end)
        self.running += 1
        with suppress(OSError):
            link.sendall(STARTED)

    def _close_all(self, link: socket.socket) -> None:
        """Closes what is the launcher's, in a process that it forked."""
        link.close()
        for key in list(self.waiting.get_map().values()):
            if isinstance(key.fileobj, int):
                os.close(key.fileobj)
            else:
                key.fileobj.close()  # type: ignore[attr-defined]
        self.waiting.close()


def _received(link: socket.socket) -> tuple[dict[str, Any], list[int]]:
    link.settimeout(_READ_WITHIN)
    head, streams, _, _ = socket.recv_fds(link, LENGTH.size, 3)
    try:
        (length,) = LENGTH.unpack(head)
        text = bytearray()
        while len(text) < length:
            if not (more := link.recv(length - len(text))):
                raise ValueError("the client ended")
            text += more
        request = json.loads(text.decode("utf-8", "surrogateescape"))
    except Exception as error:
        for stream in streams:
            os.close(stream)
        raise ValueError(str(error)) from None
    link.settimeout(None)
    return request, streams


def _die_with(parent: int) -> None:
    """Asks the kernel to kill this process where the launcher, its ``parent``, is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was killed before
        os._exit(1)


def _become(request: dict[str, Any], streams: list[int]) -> None:
    """Gives this process the arguments, environment, folder and streams of the command."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
        if stream > 2:
            os.close(stream)
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    os.environ.clear()
    os.environ.update(request["environment"])
    os.environ.pop(FOLDER)  # what this command starts, it starts itself
    os.chdir(request["folder"])
    os.umask(request["umask"])
    sys.argv[:], sys.orig_argv[:] = request["argv"], request["command"]
    name = " ".join(["moelaws", *sys.argv[1:2]])  # what `top` shows
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode())


def main() -> None:
    """Loads modules and serves: ``server.py ADDRESS FUNCTION MODULE ...``.

    FUNCTION, as in ``package.module:name``, is called in each fork. Standard input is the lifeline.
    A module that is not installed is left to the commands that may need it.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the commands decide, and this ends after them
    address, function, *modules = sys.argv[1:]
    for module in modules:
        with suppress(ImportError):
            importlib.import_module(module)
    if _has_threads():
        return  # a fork could take a lock along that nobody frees; the commands start themselves
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return  # a sandbox that forbids it, or a kernel before 5.3
    gc.collect()
    gc.freeze()  # a collection in a fork would copy the memory that all share
    if Launcher(Path(address), sys.stdin.fileno()).serve():
        home, _, name = function.partition(":")
        getattr(importlib.import_module(home), name)()


def _has_threads() -> bool:
    """Whether there are threads but jemalloc's, which Arrow brings and which expects forks."""
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    return len([name for name in names if not name.startswith("jemalloc")]) > 1


if __name__ == "__main__":
    main()
