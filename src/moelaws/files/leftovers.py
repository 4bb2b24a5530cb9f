"""Temporary files and folders: their names say which process owns them, so dead ones' can go.

Whatever this package writes in steps is written under such a name, beside its place. A process
that is killed leaves it behind; ``sweep`` removes it once the next process comes by.
"""

import hashlib
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

_ELSEWHERE = "0" * 12  # stands for the host where a process cannot be named for certain
_NAME = re.compile(r"\..+\.([0-9a-f]{12})-(\d+)-(\d+)-[0-9a-f]{8}\.tmp(\.[^.]*)?")


def temporary(path: Path) -> Path:
    """Returns a new name beside ``path``, with its suffix, that this process owns."""
    process = process_of(os.getpid())
    host, start = (_host(process[0]), process[1]) if process else (_ELSEWHERE, "0")
    owner = f"{host}-{os.getpid()}-{start}-{uuid4().hex[:8]}"
    return path.with_name(f".{path.stem[:40]}.{owner}.tmp{path.suffix}")


def sweep(folder: Path, locked: bool = False) -> None:
    """Removes the temporaries in ``folder`` whose processes are dead; what cannot be stays.

    Nothing is known here of processes on other hosts. Their temporaries go only where the caller
    has ``locked`` the folder: it is then the only writer.
    """
    with suppress(OSError):
        for name in os.listdir(folder):
            if _is_left_over(name, locked):
                discard(folder / name)


def temporaries(folder: Path) -> list[Path]:
    """Returns the temporaries in ``folder``, whoever owns them."""
    with suppress(OSError):
        return [folder / name for name in os.listdir(folder) if _NAME.fullmatch(name)]
    return []


def discard(path: Path) -> None:
    """Removes a temporary file or folder, if it is there and can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def process_of(pid: int) -> list[str] | None:
    """Returns what names one process for certain: boot, namespace, start time. None off Linux."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid")
        # Fields after the parenthesised command name, which may hold spaces; 20th is start time.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # A zombie is dead, though a container without an init process keeps it.
    return [f"{boot} {namespace}", "dead" if fields[0] == "Z" else fields[19]]


def lives(pid: int, start: str) -> bool | None:
    """Tells whether that process of this host lives; None where it may not be seen."""
    process = process_of(pid)
    if process is not None:
        return process[1] == start
    try:
        os.kill(pid, 0)
    except PermissionError:  # another user's, which /proc may hide (its option hidepid)
        return None
    except OSError:
        return False
    return None  # it began this very moment


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
