"""Which GPUs of this machine a job trains on: a locked file for each, held until the job ends.

Snakemake counts how many jobs run at once, and hands out no indices. The kernel frees a lock
however its process dies.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from moelaws.gpus.listing import Gpu
from moelaws.spec.errors import UserError

_LOOK = 0.5  # seconds between two looks


@contextmanager
def held(
    gpus: Sequence[Gpu], number: int, on_wait: Callable[[str], None]
) -> Iterator[tuple[Gpu, ...]]:
    """Holds ``number`` of the ``gpus`` while the block runs; waits until so many are free.

    Who finds too few holds none meanwhile, so that two never wait for each other.

    Args:
        on_wait: is called once with what is waited for, when waiting begins.
    """
    if len(gpus) < number:
        raise UserError(f"{number} GPUs are asked for, and {len(gpus)} can be used")
    folder = Path(tempfile.gettempdir()) / f"moelaws-gpus-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    waits = False
    while len(locks := _locked(folder, gpus, number)) < number:
        for descriptor in locks.values():
            os.close(descriptor)
        if not waits:
            names = ", ".join(str(gpu.index) for gpu in gpus)
            on_wait(f"waiting for {number} of the GPUs {names}, on which other jobs train")
            waits = True
        time.sleep(_LOOK)
    try:
        yield tuple(locks)
    finally:
        for descriptor in locks.values():
            os.close(descriptor)


def _locked(folder: Path, gpus: Sequence[Gpu], number: int) -> dict[Gpu, int]:
    """Returns up to ``number`` GPUs that were free, with the descriptors that lock them."""
    locks: dict[Gpu, int] = {}
    for gpu in gpus:
        descriptor = os.open(folder / gpu.uuid, os.O_RDONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        locks[gpu] = descriptor
        if len(locks) == number:
            break
    return locks
