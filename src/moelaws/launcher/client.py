"""A command handed on to a launcher that has loaded what it needs.

Python reads this file for every command, so it imports little.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
from contextlib import suppress
from types import FrameType

# The folder of the launchers' sockets. A workflow sets it for its jobs.
FOLDER = "MOELAWS_LAUNCHERS"
# Command -> the launcher that has loaded what it needs; ANALYSIS has what all others need.
TRAINING, ANALYSIS = "training", "analysis"
LAUNCHERS = dict.fromkeys(("train", "probe", "bench", "speed"), TRAINING)

STARTED = b"s"
LENGTH, STATUS = struct.Struct("!I"), struct.Struct("!i")
# What is passed on to the command. Of a SIGKILL the launcher learns from the closed connection.
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
             signal.SIGUSR2, signal.SIGCONT)  # fmt: skip


def hand_on() -> None:
    """Ends this process as its command ended in a launcher; returns where none took it."""
    folder = os.environ.get(FOLDER)
    if not folder or len(sys.argv) < 2:
        return
    status = launched(os.path.join(folder, LAUNCHERS.get(sys.argv[1], ANALYSIS)))
    if status is not None:
        _end_as(status)


def launched(address: str) -> int | None:
    """Has the launcher at ``address`` run this process' command, and waits for its end.

    It has this process' arguments, environment, folder and open standard streams, and gets the
    signals that this process gets.

    Returns:
        the exit code, negative for a signal; None where no launcher took the command.
    """
    with socket.socket(socket.AF_UNIX) as link:
        # A signal waits until the command is there to receive it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (*PASSED_ON, signal.SIGTSTP))
        try:
            if not _started(link, address):
                return None
            _pass_signals_on(link)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        status = link.recv(STATUS.size)
    if not status:
        print("moelaws: the process that started this command was killed", file=sys.stderr)
        return -signal.SIGKILL
    return int(STATUS.unpack(status)[0])


def _started(link: socket.socket, address: str) -> bool:
    try:
        request = {
            "argv": sys.argv,
            "command": sys.orig_argv,
            "prefix": sys.prefix,
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "umask": _umask(),
        }
        text = json.dumps(request).encode("utf-8", "surrogateescape")
        link.connect(address)
        socket.send_fds(link, [LENGTH.pack(len(text))], [0, 1, 2])
        link.sendall(text)
        return link.recv(1) == STARTED
    except OSError:  # no launcher, a folder that is gone, a closed stream
        return False


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _pass_signals_on(link: socket.socket) -> None:
    def pass_on(number: int, frame: FrameType | None) -> None:
        with suppress(OSError):  # it may just have ended
            link.send(bytes([number]))

    def stop(number: int, frame: FrameType | None) -> None:
        pass_on(signal.SIGSTOP, frame)
        os.kill(os.getpid(), signal.SIGSTOP)

    for number in PASSED_ON:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, pass_on)
    if signal.getsignal(signal.SIGTSTP) != signal.SIG_IGN:
        signal.signal(signal.SIGTSTP, stop)


def _end_as(status: int) -> None:
    """Ends this process as the command ended, by the same signal if it was one."""
    if status < 0:
        with suppress(OSError):  # SIGKILL has no other handler
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)
