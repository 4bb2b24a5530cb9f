"""The lock of a run: a file with host, process, job and heartbeat, for trainers on many nodes.

A process id means nothing on another node, so a lock from elsewhere is judged by its heartbeat,
the file's modification time as the shared file system's own clock gives it. A lock of this node is
judged at once by whether its process lives, where it can be seen.
"""

import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from moelaws.files.layout import LOCK
from moelaws.files.leftovers import discard, lives, process_of, sweep, temporary
from moelaws.spec.errors import UserError
from moelaws.spec.from_json import parse_json

HEARTBEAT = 10.0  # seconds between heartbeats
STALE = 90.0  # seconds without one after which a lock from another node is broken


class TakenOver(Exception):  # noqa: N818, it is no error
    """Another trainer broke this one's lock: nothing may be written any more."""


class UnwritableError(UserError):
    """A folder cannot be locked, for it cannot be written."""


@dataclass(frozen=True)
class Lock:
    """A held lock. ``held`` is false once another trainer has broken it."""

    path: Path
    token: str

    def held(self) -> bool:
        return bool(_read(self.path).get("token") == self.token)

    def check(self) -> None:
        """Raises TakenOver when another trainer holds it."""
        if not self.held():
            raise TakenOver


@contextmanager
def acquire(
    folder: Path,
    on_wait: Callable[[str], None] = lambda owner: None,
    heartbeat: float = HEARTBEAT,
    stale: float = STALE,
) -> Iterator[Lock]:
    """Holds ``folder/lock`` while the block runs; waits for another holder until it ends or dies.

    What dead processes left half-written in ``folder`` is removed.

    ``on_wait`` is called once with a description of the holder when waiting begins.

    An ``UnwritableError`` says that the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableError(f"{folder}: cannot be written: {error.strerror}") from None
    lock = Lock(folder / LOCK, uuid4().hex)
    waits = False
    while not _try_create(lock):
        owner = _read(lock.path)
        if _is_dead(lock.path, owner, stale):
            _break(lock.path, owner)
            continue
        if not waits:
            job = f", job {owner['job']}" if owner.get("job") else ""
            on_wait(f"{owner.get('host', '?')}, process {owner.get('pid', '?')}{job}")
            waits = True
        time.sleep(min(0.5, heartbeat))
    stop = threading.Event()
    threading.Thread(target=_beat, args=(lock, stop, heartbeat), daemon=True).start()
    try:
        sweep(folder, locked=True)
        yield lock
    finally:
        stop.set()
        with suppress(OSError):  # what is left is the lock of a dead process
            if lock.held():
                lock.path.unlink(missing_ok=True)


def holder(folder: Path, stale: float = STALE, now: float | None = None) -> dict[str, Any]:
    """Returns who holds the lock of ``folder`` (token, host, pid, job); empty if nobody does.

    ``now`` is the file system's time where the caller knows it (``file_system_time``), who then
    asks of many folders, and perhaps may not write to them.
    """
    path = folder / LOCK
    try:
        owner = _read(path)
        return owner if owner and not _is_dead(path, owner, stale, now) else {}
    except OSError:  # a folder that this user may read and not write, such as a colleague's
        return {}


def file_system_time(folder: Path) -> float:
    """Returns the time by the clock of the file system that holds ``folder``, in seconds.

    This machine's clock where the folder cannot be written to.
    """
    probe = temporary(folder / "clock")
    try:
        probe.touch()
        return probe.stat().st_mtime
    except OSError:
        return time.time()
    finally:
        discard(probe)


def is_abandoned(folder: Path, stale: float = STALE) -> bool:
    """Tells whether ``folder`` has a lock whose holder is dead."""
    path = folder / LOCK
    try:
        owner = _read(path)
        return bool(owner) and _is_dead(path, owner, stale)
    except OSError:  # nothing is known of it, so it may be in use
        return False


def _try_create(lock: Lock) -> bool:
    """Creates the lock file with its content in one step: a link fails where the name exists."""
    owner = {
        "token": lock.token,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "process": process_of(os.getpid()),
        "job": os.environ.get("SLURM_JOB_ID", ""),
    }
    draft = temporary(lock.path)
    try:
        draft.write_text(json.dumps(owner))
        # The name may also exist because of this very link: NFS asks again when a reply is lost.
        # The draft may be gone: a new holder on another host sweeps what it does not know.
        with suppress(FileExistsError, FileNotFoundError):
            os.link(draft, lock.path)
    except OSError as error:
        raise UnwritableError(f"{lock.path}: cannot be written: {error.strerror}") from None
    finally:
        discard(draft)
    return lock.held()


def _is_dead(path: Path, owner: dict[str, Any], stale: float, now: float | None = None) -> bool:
    here = process_of(os.getpid())
    if owner.get("process") and here and owner["process"][0] == here[0]:
        alive = lives(owner["pid"], owner["process"][1])
        if alive is not None:
            return not alive
    # The file system's clock, not this node's: compare with a file touched now.
    probe = temporary(path)
    try:
        if now is None:
            probe.touch()
            now = probe.stat().st_mtime
        return now - path.stat().st_mtime > stale
    except FileNotFoundError:  # the lock is free, or its new holder has swept the probe
        return False
    finally:
        discard(probe)


def _break(path: Path, owner: dict[str, Any]) -> None:
    """Removes the lock of ``owner``, if it is still that; several may try."""
    aside = temporary(path)
    with one_at_a_time(path.parent):
        if _read(path).get("token") != owner.get("token"):
            return  # another trainer broke it first, and this may be its fresh lock
        try:
            os.rename(path, aside)
        except FileNotFoundError:
            return
        if _read(aside).get("token") != owner.get("token"):
            # Where the file system knows no lock for breakers, two may come here: give it back.
            # Where a third one took it meanwhile, the second sees that its lock is not held.
            with suppress(FileExistsError, FileNotFoundError):
                os.link(aside, path)
        discard(aside)


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Lets one process after the other in; all at once where the file system has no such lock.

    The kernel gives it back when its holder dies. That is why it can guard the breaking of a lock,
    and why it cannot be the lock of a run, which must hold across file systems of many kinds.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # a folder that may be written and not read
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _beat(lock: Lock, stop: threading.Event, interval: float) -> None:
    while not stop.wait(interval):
        try:
            if not lock.held():
                return
            os.utime(lock.path)
        except OSError:
            continue  # a hiccup of a network file system; the next beat tries again


def _read(path: Path) -> dict[str, Any]:
    try:
        data = parse_json(path.read_bytes(), path)
    except (FileNotFoundError, UserError):
        return {}
    return data if isinstance(data, dict) else {}
