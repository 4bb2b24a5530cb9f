"""Freed memory: kept in the process, as a training step asks for the same again and again, until
there is too little of it."""

from __future__ import annotations

import ctypes

import torch

# glibc's mallopt parameters.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Tells glibc not to give freed blocks back to the system; elsewhere nothing is done.

    By default each tensor above some 100 kB is mapped anew, and its pages are faulted in and
    zeroed at every step: a tenth of the time of a small model's step.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)


def give_back(device: torch.device) -> None:
    """Gives freed memory back: blocks kept for the larger shapes of before cannot hold others."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
