"""The GPUs of this machine and who holds them; ``nvidia-smi`` lists them without starting CUDA."""

import fcntl
import os
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moelaws.spec.errors import UserError, listed

_FIELDS = "index,uuid,name,memory.total,memory.used,utilization.gpu"
_MIB = 2**20
# A GPU that uses more memory (bytes) or time (a fraction) than a desktop's screens is in use.
_USED_MEMORY, _USED_TIME = 2**31, 0.3
_OPENED = os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK  # of a lock
_LOOK = 0.5  # seconds between two looks for a free GPU

Chosen = Literal["all"] | Collection[int]


@dataclass(frozen=True)
class Gpu:
    """One GPU at the time when it was listed; numbers that the driver does not report are 0."""

    index: int  # by ``nvidia-smi``, in the order of the bus
    uuid: str  # its name for CUDA_VISIBLE_DEVICES, whatever the order
    name: str
    memory: float  # bytes
    used: float  # bytes
    busy: float  # fraction of the last moments in which it computed

    @property
    def is_used(self) -> bool:
        """Returns whether programs use it, beyond what screens take."""
        return self.used > _USED_MEMORY or self.busy > _USED_TIME


def list_gpus(chosen: Chosen = "all") -> tuple[Gpu, ...]:
    """Returns the ``chosen`` ones of the GPUs that CUDA_VISIBLE_DEVICES allows (unset: all)."""
    gpus = _visible([_parsed(line) for line in _query().splitlines() if line.strip()])
    if not gpus:
        raise UserError("no GPU was found on this machine; use device cpu")
    if chosen == "all":
        return gpus
    known = {gpu.index: gpu for gpu in gpus}
    if missing := sorted(set(chosen) - known.keys()):
        raise UserError(
            f"gpus names {listed(missing)}, but the GPUs that can be used are {listed(known)} "
            "(nvidia-smi lists them)"
        )
    return tuple(gpu for gpu in gpus if gpu.index in chosen)


def _query() -> str:
    """Returns the output of nvidia-smi, a line for each GPU."""
    try:
        return subprocess.run(
            ["nvidia-smi", f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=120, check=True,
        ).stdout  # fmt: skip
    except FileNotFoundError:
        raise UserError(
            "no GPU was found: the program nvidia-smi, which comes with NVIDIA's driver, is not on "
            "the PATH; use device cpu"
        ) from None
    except subprocess.CalledProcessError as error:
        said = (error.stdout + error.stderr).strip() or f"it ended with code {error.returncode}"
        raise UserError(f"nvidia-smi cannot list the GPUs: {said}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"nvidia-smi cannot list the GPUs: {error}") from None


def _parsed(line: str) -> Gpu:
    try:
        index, uuid, name, *numbers = (word.strip() for word in line.split(","))
        # A number that the driver does not report is a word, such as [N/A].
        memory, used, percent = (int(n) if n.isdecimal() else 0 for n in numbers)
        return Gpu(int(index), uuid, name, memory * _MIB, used * _MIB, percent / 100)
    except ValueError:
        raise UserError(f"nvidia-smi listed a GPU in an unknown form: {line!r}") from None


def _visible(gpus: list[Gpu]) -> tuple[Gpu, ...]:
    """Returns the ``gpus`` that CUDA_VISIBLE_DEVICES names, by index or the start of a UUID."""
    words = os.environ.get("CUDA_VISIBLE_DEVICES")
    if words is None:
        return tuple(gpus)
    visible: list[Gpu] = []
    for word in filter(None, (word.strip() for word in words.split(","))):
        matches = [gpu for gpu in gpus if str(gpu.index) == word or gpu.uuid.startswith(word)]
        if word == "-1":  # CUDA ignores all that follows
            break
        if not matches:
            raise UserError(
                f"CUDA_VISIBLE_DEVICES names {word}, which nvidia-smi does not list; unset it to "
                "use every GPU"
            )
        visible += (gpu for gpu in matches if gpu not in visible)
    return tuple(visible)


@contextmanager
def held(
    gpus: Sequence[Gpu], number: int, on_wait: Callable[[str], None]
) -> Iterator[tuple[Gpu, ...]]:
    """Holds ``number`` of the ``gpus`` while the block runs; waits until that many are free.

    A process that waits holds none, so two never wait for each other. A GPU is held by a lock on a
    file with its name, which the kernel frees however the process dies. (Snakemake cannot assign
    GPUs: it counts jobs only.) ``on_wait`` is called once, with a text, when waiting begins.
    """
    if len(gpus) < number:
        raise UserError(f"{number} GPUs are asked for, and {len(gpus)} can be used")
    folder = Path(tempfile.gettempdir()) / f"moelaws-gpus-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    about = folder.lstat()  # others may have put something of theirs there
    # A scratch folder may hand its set-group-ID bit down, which opens it to nobody.
    if (about.st_mode & ~stat.S_ISGID, about.st_uid) != (stat.S_IFDIR | 0o700, os.getuid()):
        raise UserError(
            f"{folder}, where locks of GPUs lie, is no folder that is yours alone (mode 700); "
            "remove it, or set TMPDIR to another folder"
        )
    waits = False
    while len(locks := _locked(folder, gpus, number)) < number:
        for descriptor in locks.values():
            os.close(descriptor)
        if not waits:
            names = listed(gpu.index for gpu in gpus)
            on_wait(f"waiting for {number} of the GPUs {names}, on which other jobs train")
            waits = True
        time.sleep(_LOOK)
    try:
        yield tuple(locks)
    finally:
        for descriptor in locks.values():
            os.close(descriptor)


def _locked(folder: Path, gpus: Sequence[Gpu], number: int) -> dict[Gpu, int]:
    """Locks up to ``number`` free GPUs; returns them with the descriptors of their locks."""
    locks: dict[Gpu, int] = {}
    for gpu in gpus:
        descriptor = os.open(folder / gpu.uuid, _OPENED, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        locks[gpu] = descriptor
        if len(locks) == number:
            break
    return locks
