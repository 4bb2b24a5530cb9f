"""Keep freed memory in the process: a training step asks for the same again and again."""

from __future__ import annotations

import ctypes

# glibc's mallopt parameters.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Tell glibc not to give freed blocks back to the system; elsewhere nothing is done.

    By default each tensor above some 100 kB is mapped anew, and its pages are faulted in and
    zeroed at every step: a tenth of the time of a small model's step.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
