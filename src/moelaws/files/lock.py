"""The lock of a run: a file with host, process, job and heartbeat, for trainers on many nodes.

A process id means nothing on another node. So a lock from another node is stale once its heartbeat,
the file's modification time by the shared file system's own clock, is too old. A lock of this node
is stale as soon as its process is dead, if that can be seen.
"""

import fcntl
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

from pydantic import Field

from moelaws.files.layout import LOCK
from moelaws.files.leftovers import discard, lives, process_of, sweep, temporary
from moelaws.spec.base import Frozen, parse
from moelaws.spec.errors import UserError
from moelaws.spec.from_disk import read_bytes
from moelaws.spec.from_json import parse_json

HEARTBEAT = 10.0  # seconds between heartbeats
STALE = 90.0  # seconds without a heartbeat after which a lock from another node is broken


class TakenOver(Exception):  # noqa: N818, it is no error
    """Another trainer broke this one's lock, so this one may not write any more."""


class UnwritableError(UserError):
    """A folder cannot be locked because it cannot be written."""


class _Owner(Frozen):
    token: str
    host: str
    pid: Annotated[int, Field(ge=1, lt=2**31)]
    process: tuple[str, str] | None  # as ``process_of`` gives it
    job: str = ""  # of Slurm


@dataclass(frozen=True)
class Lock:
    """A lock that was acquired. ``held`` is false once another trainer has broken it."""

    path: Path
    token: str

    def held(self) -> bool:
        return bool(_read(self.path).get("token") == self.token)

    def check(self) -> None:
        """Raises TakenOver if another trainer holds it."""
        if not self.held():
            raise TakenOver


@contextmanager
def acquire(
    folder: Path,
    on_wait: Callable[[str], None] = lambda owner: None,
    heartbeat: float = HEARTBEAT,
    stale: float = STALE,
) -> Iterator[Lock]:
    """Holds ``folder/lock`` while the block runs; waits until another holder ends or dies.

    It calls ``on_wait`` once, with a description of the holder, when waiting begins, and removes
    what dead processes left half-written. Raises UnwritableError if ``folder`` cannot be written.
    """
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
        with suppress(OSError):  # a lock that stays is soon that of a dead process
            if lock.held():
                lock.path.unlink(missing_ok=True)


def holder(folder: Path, now: float | None = None) -> dict[str, Any]:
    """Returns who holds the lock of ``folder`` (token, host, pid, job); empty if nobody does.

    Pass the ``file_system_time`` as ``now`` for many folders, or for folders that are read-only.
    """
    path = folder / LOCK
    try:
        owner = _read(path)
        return owner if owner and not _is_dead(path, owner, STALE, now) else {}
    except OSError:  # this user may read the folder and not write it, such as a colleague's
        return {}


def file_system_time(folder: Path) -> float:
    """Returns the seconds by the clock of the file system that holds ``folder``.

    If the folder cannot be written, it returns those of this machine's clock.
    """
    try:
        return _touched_now(folder / "clock")
    except OSError:
        return time.time()


def _touched_now(place: Path) -> float:
    """Returns the time of a file that is touched beside ``place`` and removed again."""
    probe = temporary(place)
    try:
        probe.touch()
        return probe.stat().st_mtime
    finally:
        discard(probe)


def _try_create(lock: Lock) -> bool:
    """Creates the lock file with its content in one step, by a link, which fails if it exists.

    It makes the folder too, which whoever removes it may do while this process waits.
    """
    process, job = process_of(os.getpid()), os.environ.get("SLURM_JOB_ID", "")
    owner = _Owner(
        token=lock.token, host=socket.gethostname(), pid=os.getpid(), process=process, job=job
    )
    draft = temporary(lock.path)
    try:
        lock.path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(owner.model_dump_json())
        # NFS tries again when a reply is lost, so the name may exist because of this very link. The
        # draft may be gone, because a new holder on another host sweeps what it does not know.
        with suppress(FileExistsError, FileNotFoundError):
            os.link(draft, lock.path)
    except OSError as error:
        raise UnwritableError(f"{lock.path}: cannot be written: {error.strerror}") from None
    finally:
        discard(draft)
    return lock.held()


def _is_dead(path: Path, owner: dict[str, Any], stale: float, now: float | None = None) -> bool:
    if not owner:  # what is no lock is nobody's, unless the lock was freed just now
        return path.exists()
    here = process_of(os.getpid())
    if owner["process"] and here and owner["process"][0] == here[0]:
        alive = lives(owner["pid"], owner["process"][1])
        if alive is not None:
            return not alive
    try:
        # Compare with a file touched now, which has the file system's time, not this node's.
        now = _touched_now(path) if now is None else now
        # A heartbeat cannot be later than the clock by which it is dated.
        return abs(now - path.stat().st_mtime) > stale
    except FileNotFoundError:  # the lock was freed, or its new holder has swept the probe
        return False


def _break(path: Path, owner: dict[str, Any]) -> None:
    """Removes the lock if it is still that of ``owner``; several processes may try."""
    aside = temporary(path)
    with one_at_a_time(path.parent):
        if _read(path).get("token") != owner.get("token"):
            return  # another trainer broke it first, and this may be its fresh lock
        try:
            os.rename(path, aside)
        except FileNotFoundError:
            return
        if _read(aside).get("token") != owner.get("token"):
            # On a file system without flock two breakers may come here, so the lock is given back.
            # If a third process has taken it meanwhile, the second sees that it does not hold it.
            with suppress(FileExistsError, FileNotFoundError):
                os.link(aside, path)
        discard(aside)


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Lets one process at a time run the block; all at once on a file system without flock.

    The kernel frees this lock when its holder dies, so it can guard the breaking of a run's lock.
    It cannot be the run's lock, because that must work on file systems of many kinds.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # the folder may be written and not read
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
            continue  # a network file system may fail for a moment; the next beat tries again


def _read(path: Path) -> dict[str, Any]:
    """Returns what a lock says of its holder; empty if it is gone, or is no lock."""
    try:
        return parse(_Owner, parse_json(read_bytes(path), path), path).model_dump()
    except (FileNotFoundError, IsADirectoryError, UserError):
        return {}
