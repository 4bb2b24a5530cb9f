"""Temporary files and folders, whose names say which process owns them.

Whatever this package writes in steps is written under such a name beside its place. A process that
is killed leaves it behind, and ``sweep`` in the next process removes it.
"""

import hashlib
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

# It stands in place of the host if a process cannot be identified for certain.
_ELSEWHERE = "0" * 12
_NAME = re.compile(r"\..+\.([0-9a-f]{12})-(\d+)-(\d+)-[0-9a-f]{8}\.tmp(\.[^.]*)?")


def temporary(path: Path) -> Path:
    """Returns a new path beside ``path``, with its suffix; its name tells that we own it."""
    process = process_of(os.getpid())
    host, start = (_host(process[0]), process[1]) if process else (_ELSEWHERE, "0")
    owner = f"{host}-{os.getpid()}-{start}-{uuid4().hex[:8]}"
    return path.with_name(f".{path.stem[:40]}.{owner}.tmp{path.suffix}")


def sweep(folder: Path, locked: bool = False) -> None:
    """Removes the temporaries in ``folder`` whose processes are dead, as far as it can.

    It cannot know whether processes on other hosts live. Their temporaries are removed only if the
    caller has ``locked`` the folder and so is its only writer.
    """
    with suppress(OSError):
        for path in temporaries(folder):
            if _is_left_over(path.name, locked):
                discard(path)


def temporaries(folder: Path) -> list[Path]:
    """Returns the temporaries in ``folder``, whoever owns them."""
    with suppress(OSError):
        return [folder / name for name in os.listdir(folder) if _NAME.fullmatch(name)]
    return []


def discard(path: Path) -> None:
    """Removes a temporary file or folder, if it is there and can be removed."""
    for _ in range(2):  # a call that failed by itself mostly works again, and nobody comes later
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif os.path.lexists(path):
            with suppress(OSError):
                path.unlink()


def process_of(pid: int) -> tuple[str, str] | None:
    """Returns what identifies a process: boot and namespace, then start time; None off Linux."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid")
        # The command name in brackets may hold spaces; the 20th field after it is the start time.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # A zombie is dead, though it stays in a container that has no init process.
    return f"{boot} {namespace}", "dead" if fields[0] == "Z" else fields[19]


def lives(pid: int, start: str) -> bool | None:
    """Returns whether a process of this host lives; None if that cannot be seen."""
    process = process_of(pid)
    if process is not None:
        return process[1] == start
    try:
        os.kill(pid, 0)
    except PermissionError:  # another user's process, which /proc may hide (option hidepid)
        return None
    except OSError:
        return False
    return None  # it began at this very moment


def _is_left_over(name: str, locked: bool) -> bool:
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    here = process_of(os.getpid())
    host, pid, start = match[1], int(match[2]), match[3]
    if here is None or host != _host(here[0]):
        return locked
    alive = lives(pid, start)
    return locked if alive is None else not alive


def _host(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:12]
