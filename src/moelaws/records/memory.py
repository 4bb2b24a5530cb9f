"""This process: the peak of its memory, its freed blocks, and its end with its parent."""

import ctypes
import os
import re
import resource
import signal
import sys
from pathlib import Path

# glibc's mallopt parameters.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_PR_SET_PDEATHSIG = 1


def peak_memory() -> int:
    """Returns the peak of resident bytes since this program began.

    On Linux, ``getrusage`` also counts what the process that started this one held until then. That
    may be a workflow of thousands of jobs. The kernel's status of this process does not count it.
    """
    status = Path("/proc/self/status")
    if status.exists() and (peak := re.search(r"VmHWM:\s*(\d+) kB", status.read_text())):
        return int(peak[1]) * 1024
    maximum = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return maximum if sys.platform == "darwin" else maximum * 1024


def keep_freed_memory() -> None:
    """Tells glibc not to return freed blocks to the system; does nothing with another C library.

    A training step allocates the same blocks again and again, and so does a fit. By default each
    block above some 100 kB may be mapped anew, and its pages faulted in and zeroed. This takes a
    tenth of the time of a small model's step, and half of that of a fit to thousands of rows.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)


def die_with(parent: int) -> None:
    """Asks the kernel to kill this process if the process ``parent``, which started it, is killed.

    The parent may hold the locks of a run's GPUs, and others may take these when it is gone. The
    kernel watches the parent's thread that started this process: the main thread.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was killed before it could be watched
        os._exit(1)
